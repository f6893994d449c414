"""Memory spaces that only `entry_computation_layout` states: those of parameters and outputs.

Before optimizations, `S(5)` puts an array on the host there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import operands_of
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
        _place_rows(entry.rows, dict(_output_rows(entry.rows, result)) | dict(_parameter_rows(entry.rows, parameters)))


def _parameter_rows(rows: Rows, parameters: tuple[Shape, ...]) -> Iterator[tuple[int, Shape]]:
    """Yield the rows of parameters with the shapes that the header states."""
    for row, opcode in enumerate(rows.opcodes):
        number = rows.tails[row].partition(")")[0] if opcode == "parameter" else ""
        if number.isdigit() and len(number) < 10 and int(number) < len(parameters):
            yield row, parameters[int(number)]


def _output_rows(rows: Rows, result: Shape) -> Iterator[tuple[int, Shape]]:
    """Yield the row of the root with its stated shape; of a tuple also the rows of its operands."""
    root = max(rows.column.marked, default=len(rows) - 1)
    yield root, result
    if rows.opcodes[root] != "tuple" or not isinstance(result, TupleShape):
        return
    try:
        names = [operand.name for operand in operands_of(rows.tails[root])]
    except tokens.ScanError:
        return
    index = {name: row for row, name in enumerate(rows.names)}
    for name, shape in zip(names, result.elements, strict=False):
        if name in index:
            yield index[name], shape


def _place_rows(rows: Rows, stated: dict[int, Shape]) -> None:
    """Replace the shapes of rows that the header puts elsewhere. Other computations may share the old heads."""
    heads = list(rows.column.heads)
    for row, shape in stated.items():
        heads[row] = heads[row]._replace(shape=_placed(heads[row].shape, shape))
    rows.column = HeadColumn(heads, rows.column.marked)


def _placed(shape: Shape | None, stated: Shape) -> Shape | None:
    """Return a shape in the stated memory spaces, as far as it states none itself."""
    if isinstance(shape, TupleShape) and isinstance(stated, TupleShape) and len(shape.elements) == len(stated.elements):
        return TupleShape(tuple([_placed(*pair) or pair[0] for pair in zip(shape.elements, stated.elements, strict=True)]))
    if not isinstance(shape, ArrayShape) or not isinstance(stated, ArrayShape) or shape.memory_space:
        return shape
    layout = (shape.layout or stated.layout or Layout())._replace(memory_space=stated.memory_space)
    return replace(shape, layout=layout) if stated.memory_space else shape
