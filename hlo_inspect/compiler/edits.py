"""Edits of StableHLO in the compiler's process: donation and sharding of arguments, constraints on what loops carry.

Nothing but the attributes and constraints that an edit names changes, and MLIR verifies the module after each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

_SIDES = {"arguments": "arg_attrs", "results": "res_attrs"}


def apply_edit(module: Any, edit: Mapping[str, Any]) -> None:  # noqa: ANN401 - jaxlib has no types
    """Apply an edit: `donate`, `shard` or `constrain`. Raise MLIRError if the module is wrong then."""
    kind = edit["kind"]
    if kind == "donate":
        _set(module, "arg_attrs", {number: {"jax.buffer_donor": "true"} for number in edit["arguments"]})
    elif kind == "shard":
        shardings = {int(number): _sharding(module, axes) for number, axes in edit["shardings"].items()}
        _set(module, _SIDES[edit["side"]], {number: {"sdy.sharding": text} for number, text in shardings.items()})
    else:
        _constrain(module, edit["dimensions"], _sharding(module, edit["axes"]))
    module.operation.verify()


def main_of(module: Any) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return the function @main."""
    return next(
        own for own in module.body.operations if "sym_name" in own.attributes and own.attributes["sym_name"].value == "main"
    )


def _sharding(module: Any, axes: Sequence[Sequence[str]]) -> str:  # noqa: ANN401 - jaxlib has no types
    """Return the text of a sharding by the axes of each dimension, of the program's mesh."""
    mesh = next(own for own in module.body.operations if own.operation.name == "sdy.mesh").attributes["sym_name"].value
    dimensions = ", ".join("{" + ", ".join(f'"{name}"' for name in names) + "}" for names in axes)
    return f"#sdy.sharding<@{mesh}, [{dimensions}]>"


def _set(module: Any, side: str, changes: Mapping[int, Mapping[str, str]]) -> None:  # noqa: ANN401 - jaxlib has no types
    """Set attributes of arguments or results, by their numbers and the texts of the attributes."""
    ir, main = import_module("jaxlib.mlir.ir"), main_of(module)
    with module.context:
        kind = main.attributes["function_type"].value
        count = len(kind.inputs if side == "arg_attrs" else kind.results)
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


def ends_of_loops(operation: Any) -> list[Any]:  # noqa: ANN401 - jaxlib has no types
    """Return the last operation of each loop's body."""
    pending, ends = [operation], []
    while pending:
        current = pending.pop()
        if current.name == "stablehlo.while":
            ends.append(list(current.regions[1].blocks[0].operations)[-1].operation)
        pending += [inner.operation for region in current.regions for block in region for inner in block]
    return ends
