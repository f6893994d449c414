"""Options of the commands that compile, and the compiler that they choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from hlo_inspect.cli import completion
from hlo_inspect.compiler.program import FlagValue, flag_value, read_program
from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.errors import reading
from hlo_inspect.inspection.compilations import DEFAULT_LIMITS, Compilations
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Unit
from hlo_inspect.report.units import parse_quantity
from hlo_inspect.worker_process import Limits

Command = TypeVar("Command", bound=Callable[..., Any])


def _quantity(unit: Unit) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    """Return the callback of an option that takes a quantity of this unit."""

    def parsed(_context: click.Context, option: click.Parameter, text: str | None) -> float | None:
        try:
            return None if text is None else float(parse_quantity(text, unit))
        except ValueError as error:
            raise click.BadParameter(str(error), param=option) from error

    return parsed


def _flags(_context: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, FlagValue]:
    flags: dict[str, FlagValue] = {}
    for text in texts:
        name, equals, value = text.removeprefix("--").partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is no flag; write it like xla_cpu_enable_fast_math=true", param=option)
        flags[name] = flag_value(value)
    return flags


def _sizes(_context: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, size = text.partition("=")
        if not name.isidentifier() or not (size.isascii() and size.isdigit() and len(size) < 10):
            raise click.BadParameter(f"{text!r} is no size; write it like b=512", param=option)
        sizes[name] = int(size)
    return sizes


_OPTIONS = (
    click.option(
        "--on",
        metavar="TARGET",
        default="cpu",
        show_default=True,
        help="Compile for cpu, for a topology of TPUs such as tpu-v5e:2x4, or for GPUs such as h100-sxm:8.",
    ),
    click.option(
        "--target-config",
        metavar="FILE",
        shell_complete=completion.files,
        help="Describe the GPU by a GpuTargetConfigProto as text, such as the .gpu_target_config.pbtxt of a dump.",
    ),
    click.option(
        "--set",
        "sizes",
        metavar="SYMBOL=N",
        multiple=True,
        callback=_sizes,
        help="Set a symbolic size of a file of jax.export, for example b=512.",
    ),
    click.option(
        "--flag",
        "flags",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_flags,
        help="Set a flag of XLA in place of the dump's, for example xla_cpu_enable_fast_math=true.",
    ),
    click.option(
        "--compile-timeout",
        metavar="SECONDS",
        default=f"{DEFAULT_LIMITS.seconds:g}",
        show_default=True,
        callback=_quantity("seconds"),
        help="End a compile that takes longer.",
    ),
    click.option(
        "--compile-memory",
        metavar="SIZE",
        callback=_quantity("bytes"),
        help="End a compile whose process needs more memory, for example 8GiB.",
    ),
)


def _text(path: str | None) -> str:
    if path is None:
        return ""
    with reading(path):
        return Path(path).read_text(encoding="utf-8")


def compile_options(command: Command) -> Command:
    """Add the options of a compile; the command gets `compilations_of`, which opens the compiler for a program."""

    @wraps(command)
    def run(
        on: str,
        target_config: str | None,
        sizes: dict[str, int],
        flags: dict[str, FlagValue],
        compile_timeout: float,
        compile_memory: float | None,
        **arguments: Any,  # noqa: ANN401
    ) -> int:
        target = parse_target(on, _text(target_config))
        limits = Limits(compile_timeout, None if compile_memory is None else int(compile_memory))

        def compilations_of(path: str, module: str | None, folder: str | None) -> Compilations:
            return Compilations(read_program(path, module), target, limits, flags, folder, sizes)

        return int(command(compilations_of=compilations_of, **arguments))

    for option in reversed(_OPTIONS):
        run = option(run)
    return run  # type: ignore[return-value]  # with other arguments


OpenCompiler = Callable[[str, str | None, str | None], Compilations]
"""Function from a path, the name of a module and the folder for XLA's files to the compiler of that program."""


def without_places(report: Report) -> Report:
    """Return a report on a text that is not kept: its findings have no place in a file."""
    return replace(report, findings=tuple(finding._replace(location=None) for finding in report.findings))
