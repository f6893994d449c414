"""Edits of StableHLO in the compiler's process: another mesh, donation, shardings, constraints on what loops carry.

Nothing but what an edit names changes, and MLIR verifies the module after each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any

from hlo_inspect.compiler.mlir import ARGUMENTS, RESULTS, ends_of_loops, main_of, meshes, symbol

_SIDES = {"arguments": ARGUMENTS, "results": RESULTS}


def apply_edit(module: Any, edit: Mapping[str, Any]) -> None:  # noqa: ANN401 - jaxlib has no types
    """Apply an edit: `mesh`, `donate`, `shard` or `constrain`. Raise MLIRError if the module is wrong then."""
    kind = edit["kind"]
    if kind == "mesh":
        _set_mesh(module, edit["sizes"])
    elif kind == "donate":
        _set(module, ARGUMENTS, {number: {"jax.buffer_donor": "true"} for number in edit["arguments"]})
    elif kind == "shard":
        shardings = {int(number): _sharding(module, axes) for number, axes in edit["shardings"].items()}
        _set(module, _SIDES[edit["side"]], {number: {"sdy.sharding": text} for number, text in shardings.items()})
    else:
        _constrain(module, edit["dimensions"], _sharding(module, edit["axes"]))
    module.operation.verify()


def _set_mesh(module: Any, sizes: Mapping[str, int]) -> None:  # noqa: ANN401 - jaxlib has no types
    """Give the axes of the mesh these sizes, and the module their number of partitions."""
    ir, sdy = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.dialects.sdy")
    with module.context, ir.Location.unknown():
        for mesh in meshes(module):
            axes = map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh.attributes["mesh"]).axes)
            mesh.attributes["mesh"] = sdy.MeshAttr.get([sdy.MeshAxisAttr.get(axis.name, sizes[axis.name]) for axis in axes])
            if "stablehlo.mesh" in mesh.attributes:  # the same mesh in another dialect, which would be stale
                del mesh.attributes["stablehlo.mesh"]
        kind = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(kind, prod(sizes.values()))


def _sharding(module: Any, axes: Sequence[Sequence[str]]) -> str:  # noqa: ANN401 - jaxlib has no types
    """Return the text of a sharding by the axes of each dimension, of the program's mesh."""
    mesh = symbol(meshes(module)[0])
    dimensions = ", ".join("{" + ", ".join(f'"{name}"' for name in names) + "}" for names in axes)
    return f"#sdy.sharding<@{mesh}, [{dimensions}]>"


def _set(module: Any, side: str, changes: Mapping[int, Mapping[str, str]]) -> None:  # noqa: ANN401 - jaxlib has no types
    """Set attributes of arguments or results, by their numbers and the texts of the attributes."""
    ir, main = import_module("jaxlib.mlir.ir"), main_of(module)
    with module.context:
        kind = main.attributes["function_type"].value
        count = len(kind.inputs if side == ARGUMENTS else kind.results)
        listed = list(main.attributes[side]) if side in main.attributes else [ir.DictAttr.get({})] * count
        for number, texts in changes.items():
            own = {item.name: item.attr for item in ir.DictAttr(listed[number])}
            listed[number] = ir.DictAttr.get(own | {name: ir.Attribute.parse(text) for name, text in texts.items()})
        main.attributes[side] = ir.ArrayAttr.get(listed)


def _constrain(module: Any, dimensions: Sequence[int], sharding: str) -> None:  # noqa: ANN401 - jaxlib has no types
    """Put a sharding constraint on each value of these dimensions that a loop hands to its next iteration."""
    ir, sdy = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.dialects.sdy")
    with module.context, ir.Location.unknown():
        for end in ends_of_loops(module.operation):
            for position, value in enumerate(end.operands):
                if list(ir.RankedTensorType(value.type).shape) == list(dimensions):
                    with ir.InsertionPoint(end):
                        pinned = sdy.ShardingConstraintOp(value, ir.Attribute.parse(sharding))
                    end.operands[position] = pinned.result
