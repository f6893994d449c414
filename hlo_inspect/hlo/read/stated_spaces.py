"""Memory spaces that only `entry_computation_layout` states: those of parameters and outputs.

Before optimizations, `S(5)` puts an array on the host there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hlo_inspect.hlo.instruction import operand_names
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.rows import HeadColumn, Rows
from hlo_inspect.hlo.values.shapes import ArrayShape, Layout, Shape, TupleShape


def apply_stated_spaces(module: Module) -> None:
    """Put parameters and outputs of the entry into the memory spaces of the header, unless their own lines have one."""
    entry, layout = module.entry, module.header.entry_layout
    if entry is None or layout is None or not isinstance(layout[0], TupleShape):
        return
    parameters, result = layout[0].elements, layout[1]
    for instruction in entry.instructions:
        number = instruction.parameter_number if instruction.opcode == "parameter" else None
        if number is not None and number < len(parameters):
            instruction.shape = _placed(instruction.shape, parameters[number])
        if instruction.is_root:
            instruction.shape = _placed(instruction.shape, result)
    if entry.rows:
        heads = list(entry.rows.column.heads)  # other computations may share them
        for row, shape in dict(_stated_rows(entry.rows, parameters, result)).items():
            heads[row] = heads[row]._replace(shape=_placed(heads[row].shape, shape))
        entry.rows.column = HeadColumn(heads, entry.rows.column.marked)


def _stated_rows(rows: Rows, parameters: tuple[Shape, ...], result: Shape) -> Iterator[tuple[int, Shape]]:
    """Yield rows with their stated shapes: the root, of a tuple its operands, then the parameters."""
    root = max(rows.column.marked, default=len(rows) - 1)
    yield root, result
    if rows.opcodes[root] == "tuple" and isinstance(result, TupleShape):
        index = {name: row for row, name in enumerate(rows.names)}
        names = operand_names(rows.tails[root]) or ()
        yield from ((index[name], shape) for name, shape in zip(names, result.elements, strict=False) if name in index)
    for row, opcode in enumerate(rows.opcodes):
        number = rows.tails[row].partition(")")[0] if opcode == "parameter" else ""
        if number.isdigit() and len(number) < 10 and int(number) < len(parameters):
            yield row, parameters[int(number)]


def _placed(shape: Shape | None, stated: Shape) -> Shape | None:
    """Return a shape in the stated memory spaces, as far as it states none itself."""
    if isinstance(shape, TupleShape) and isinstance(stated, TupleShape) and len(shape.elements) == len(stated.elements):
        return TupleShape(tuple([_placed(*pair) or pair[0] for pair in zip(shape.elements, stated.elements, strict=True)]))
    if not isinstance(shape, ArrayShape) or not isinstance(stated, ArrayShape) or shape.memory_space:
        return shape
    layout = (shape.layout or stated.layout or Layout())._replace(memory_space=stated.memory_space)
    return replace(shape, layout=layout) if stated.memory_space else shape
