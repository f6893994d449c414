"""The tasks of jaxlib's process: XLA's own parser, and HLO text for serialized HLO and StableHLO.

Some inputs abort jaxlib, so it runs in a process of its own, `python -m hlo_inspect.xla_worker`.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from hlo_inspect.worker_process import Task, WorkerProcess, run_tasks


class Worker(WorkerProcess):
    """Process of jaxlib for these tasks. Its greeting says which jaxlib this is and which of its functions are missing."""

    def __init__(self) -> None:
        super().__init__(__name__)


_MODULES = ("_hlo", "_jax", "xla_extension")  # where jaxlib has kept its classes of HLO: from 0.10 on, from 0.6 on, before
_WITHOUT_SHAPE = re.compile(
    r"^[ \t]*+(?:ROOT\s++)?%?[A-Za-z_][\w.\-]*+\s*+=\s*+[a-z][a-z0-9\-]*+\s*+\(", re.ASCII | re.MULTILINE
)


def _jaxlib(name: str) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return a function or class of jaxlib. Raise LookupError if this jaxlib lacks it."""
    for module in _MODULES:
        try:
            return getattr(import_module(f"jaxlib.{module}"), name)
        except ModuleNotFoundError as error:
            if error.name != f"jaxlib.{module}":
                raise
        except AttributeError:
            continue
    raise LookupError(name)


def check(data: bytes) -> str:
    """Parse HLO text; return nothing, or XLA's print with all constants and inferred shapes if the text leaves shapes out."""
    text = data.decode()
    module = _jaxlib("hlo_module_from_text")(text)
    if not _WITHOUT_SHAPE.search(text):
        return ""
    options = _jaxlib("HloPrintOptions")()
    options.print_large_constants = True
    return str(module.to_string(options))


def print_proto(data: bytes) -> str:
    """Return the text of an `HloModuleProto`, without large constants."""
    return str(_jaxlib("HloModule").from_serialized_hlo_module_proto(data).to_string())


def print_mlir(data: bytes) -> str:
    """Convert StableHLO, as text or bytecode, to HLO text."""
    module = data if data.startswith(b"ML\xefR") else data.decode(errors="backslashreplace")
    computation = _jaxlib("mlir").mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    return str(computation.as_hlo_module().to_string())


TASKS: dict[str, Task] = {"check": check, "proto": print_proto, "mlir": print_mlir}
NEEDED = ("hlo_module_from_text", "HloModule", "HloPrintOptions", "mlir")


def greeting() -> dict[str, Any]:
    """Return the first message of the process: version and missing functions of jaxlib, or the error of its import."""
    try:
        version = import_module("jaxlib").__version__
        missing = [name for name in NEEDED if not _has(name)]
    except Exception as error:  # an import that fails can raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None, "version": version, "missing": missing}


def _has(name: str) -> bool:
    try:
        _jaxlib(name)
    except LookupError:
        return False
    return True


if __name__ == "__main__":
    run_tasks(TASKS, greeting)
