"""MLIR's bindings of jaxlib, in the compiler's process: StableHLO parsed, and the parts of it that others ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from hlo_inspect.compiler.program import BYTECODE

ARGUMENTS, RESULTS = "arg_attrs", "res_attrs"
"""Attributes of a function that hold those of its arguments and results."""
_DIALECTS = ("chlo", "mhlo", "stablehlo", "sdy", "mpmd")
_LOCATION = re.compile(r'loc\("([^"]*)"')


@cache
def _context() -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return an MLIR context with the dialects that JAX writes."""
    ir = import_module("jaxlib.mlir.ir")
    registry, context = ir.DialectRegistry(), ir.Context()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    for name in _DIALECTS:
        dialect = import_module(f"jaxlib.mlir.dialects.{name}")
        register = getattr(dialect, "register_mhlo_dialect", None) or dialect.register_dialect
        register(context)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    return context


def parse(data: bytes) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Parse StableHLO, as text or bytecode."""
    module = data if data.startswith(BYTECODE) else data.decode(errors="backslashreplace")
    return import_module("jaxlib.mlir.ir").Module.parse(module, _context())


def operations(operation: Any) -> Iterator[Any]:  # noqa: ANN401 - jaxlib has no types
    """Yield an operation and all those in its regions."""
    pending = [operation]
    while pending:
        current = pending.pop()
        yield current
        pending += [inner.operation for region in current.regions for block in region for inner in block]


def meshes(module: Any) -> list[Any]:  # noqa: ANN401 - jaxlib has no types
    return [operation for operation in module.body.operations if operation.operation.name == "sdy.mesh"]


def main_of(module: Any) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return the function @main. Raise ValueError if the module has none."""
    for own in module.body.operations:
        if symbol(own) == "main":
            return own
    raise ValueError("the module has no function @main")


def ends_of_loops(operation: Any) -> list[Any]:  # noqa: ANN401 - jaxlib has no types
    """Return the last operation of each loop's body."""
    loops = (inner for inner in operations(operation) if inner.name == "stablehlo.while")
    return [list(loop.regions[1].blocks[0].operations)[-1].operation for loop in loops]


def argument_names(main: Any) -> list[str]:  # noqa: ANN401 - jaxlib has no types
    """Return the names of a function's arguments, which are those of their locations; empty for one without."""
    matches = [_LOCATION.match(str(argument.location)) for argument in main.regions[0].blocks[0].arguments]
    return [match[1] if match is not None else "" for match in matches]


def attribute(operation: Any, name: str) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return an attribute, None if the operation has none of that name. MLIR's attributes have no `get` in every jaxlib."""
    attributes = operation.attributes
    return attributes[name] if name in attributes else None  # noqa: SIM401 - as above


def symbol(operation: Any) -> str:  # noqa: ANN401 - jaxlib has no types
    name = attribute(operation, "sym_name")
    return "" if name is None else str(name.value)
