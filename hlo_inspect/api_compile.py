"""`hlo_inspect.compile` and `prove`: reports of programs that are compiled for a target."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from os import PathLike
from typing import Any

from hlo_inspect.compiler.program import FlagValue, LoweredProgram, read_program
from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.errors import UsageError
from hlo_inspect.inspection import proving
from hlo_inspect.inspection.compilations import DEFAULT_LIMITS, Compilations
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request, check_names
from hlo_inspect.worker_process import Limits


def compile(  # noqa: A001 - as in re and in JAX
    program: object,
    *arguments: object,
    on: str = "cpu",
    flags: Mapping[str, FlagValue] | None = None,
    timeout: float | None = DEFAULT_LIMITS.seconds,
    memory: int | None = None,
    folder: str | PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - those of `inspect`
) -> Report:
    """Compile a program for a target, without its devices, and return the report on what comes out.

    `program` is what JAX lowered, a function of `jax.jit` with its `arguments`, an `Exported`, or a path as in the command
    `compile`. `on` is `cpu`, a topology of TPUs as `tpu-v5e:2x4`, or GPUs. `flags` are flags of XLA by name. A compile ends
    after `timeout` seconds, or when it needs more than `memory` bytes. XLA's files stay in `folder`. The `options` are those
    of `inspect`.

    Raise CompileError if the compiler refuses the program, InputError if it is no StableHLO, and MissingExtraError if a
    compiler is missing.
    """
    check_names(list(options))
    kept = None if folder is None else str(folder)
    target = parse_target(on)
    with Compilations(_lowered(program, arguments), target, Limits(timeout, memory), flags or {}, kept) as compilations:
        description = compilations.describe()
        compiled = compilations.compile(description)
        request = compilations.on_target(Request(**{"mesh": description.mesh_text, **options}))
        with Inspection(request) as inspection:
            (report,) = inspection.reports(str(compiled.text))
    return report


def prove(
    program: object,
    *arguments: object,
    on: str = "cpu",
    folder: str | PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - those of `inspect`
) -> Report:
    """Compile a program as it is and with the remedy of each finding, and return the report with the table `proofs`.

    The arguments are those of `compile`; `thresholds=["replicated-weight=1MiB"]` proves smaller findings.
    """
    check_names(list(options))
    kept = None if folder is None else str(folder)
    with Compilations(_lowered(program, arguments), parse_target(on), DEFAULT_LIMITS, {}, kept) as compilations:
        return proving.prove(compilations, compilations.on_target(Request(**options)))


def _lowered(program: object, arguments: tuple[object, ...]) -> LoweredProgram:
    """Return the StableHLO of an object of JAX, or that of a path. Raise UsageError for all else."""
    if isinstance(program, str | PathLike):
        return read_program(str(program))
    lower = getattr(program, "lower", None)
    if callable(lower):
        program = lower(*arguments)
    for name in ("mlir_module", "as_text"):
        text_of = getattr(program, name, None)
        if callable(text_of):
            located = {"debug_info": True} if "debug_info" in signature(text_of).parameters else {}
            if isinstance(text := text_of(**located), str):
                return LoweredProgram(type(program).__name__, text.encode())
    raise UsageError(f"{type(program).__name__} is no program; pass what jax.jit(f).lower(…) returns, or a path")
