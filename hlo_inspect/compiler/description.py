"""Description of StableHLO, in the compiler's process: name, meshes, arguments, results, and what fixes its mesh."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from hlo_inspect.compiler.mlir import (
    ARGUMENTS,
    RESULTS,
    argument_names,
    attribute,
    ends_of_loops,
    main_of,
    meshes,
    operations,
    parse,
    symbol,
)

_MANUAL = "sdy.manual_computation"
_FLOATING = re.compile(r"b?f\d")


def describe(data: bytes) -> str:
    """Return the description of StableHLO as JSON. Meshes and shardings have their texts, arrays their dimensions."""
    module = parse(data)
    operation, main = module.operation, main_of(module)
    kind = main.attributes["function_type"].value
    count = attribute(operation, "mhlo.num_partitions")
    arguments = _arrays(main, kind.inputs, ARGUMENTS)
    for own, name in zip(arguments, argument_names(main), strict=True):
        own.update({"name": name} if name else {})
    description = {
        "name": symbol(operation),
        "partitions": int(str(count).partition(" ")[0]) if count is not None else 1,
        "meshes": [mesh.operation.get_asm() for mesh in meshes(module)],
        "is_manual": any(inner.name == _MANUAL for inner in operations(operation)),
        "arguments": arguments,
        "carried": [list(kind.shape) for kind in _carried(module)],
        "results": _arrays(main, kind.results, RESULTS),
    }
    return json.dumps(description)


def _arrays(main: Any, types: Sequence[Any], attributes: str) -> list[dict[str, Any]]:  # noqa: ANN401 - jaxlib has no types
    """Return dimensions and texts of the shardings of arguments or results."""
    listed = list(main.attributes[attributes]) if attributes in main.attributes else [{}] * len(types)
    arrays = []
    for kind, own in zip(types, listed, strict=True):
        shape = import_module("jaxlib.mlir.ir").RankedTensorType(kind).shape if "tensor<" in str(kind) else []
        texts = {name: str(own[name]) for name in ("sdy.sharding", "mhlo.sharding") if name in own}
        if "jax.result_info" in own:
            texts["name"] = str(own["jax.result_info"].value)
        arrays.append({"dimensions": list(shape), **texts})
    return arrays


def _carried(module: Any) -> Iterator[Any]:  # noqa: ANN401 - jaxlib has no types
    """Yield the types of the floating-point arrays that loops carry."""
    ir = import_module("jaxlib.mlir.ir")
    for end in ends_of_loops(module.operation):
        kinds = (ir.RankedTensorType(value.type) for value in end.operands if "tensor<" in str(value.type))
        yield from (kind for kind in kinds if _FLOATING.match(str(kind.element_type)))
