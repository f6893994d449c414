"""Elements of tuples in one form: a row each, though dump files of July 2026 and later write `x#1` in place of the row.

That short form tells neither the position of a get-tuple-element, nor its attributes, nor if it is repeated or unused. So an
element stands before its first user, equal elements are one row, and unused elements have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo_inspect.graph.canonical.spelling import ELEMENT, Spelling
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Operand, operands_end
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import Head, HeadColumn, Rows
from hlo_inspect.hlo.values.shapes import subshape

# -- rows for `x#1` -----------------------------------------------------------------------------------------------------------


def with_elements(view: View) -> View:
    """Return a view with a row for each `x#1` of the text, behind all rows of the text."""
    rows = [row for row in range(len(view.rows)) if _has_path(view, row)]
    if not rows:
        return view
    elements, tails = _Elements(view), list(view.tails)
    for row in rows:
        operands = ", ".join([elements.text(operand) for operand in view.operands(row)])
        tails[row] = operands + tails[row][operands_end(tails[row]) :]
    return View(elements.computation(tails))


def _has_path(view: View, row: int) -> bool:
    if view.opcodes[row] in LITERAL_OPCODES or view.whole_operands(row) is not None:
        return False
    return any(operand.path and view.index(operand.name or "") is not None for operand in view.operands(row))


class _Elements:
    """The rows that a text leaves out, each made once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._names: dict[tuple[str, int], str] = {}
        self._heads: dict[str, Head] = {}
        self._lines: list[int] = []
        self._items = TupleItems()

    def text(self, operand: Operand) -> str:
        """Return the text of an operand, with the name of a row in place of a tuple index."""
        name, shape = operand.name, f"{operand.shape} " if operand.shape else ""
        if name is None:
            return operand.shape
        row = self._view.index(name)
        if row is None or not operand.path:
            return f"{shape}%{name}{''.join(f'#{index}' for index in operand.path)}"
        for index in operand.path:
            name = self._element(name, index, row)
        return f"%{name}"

    def _element(self, name: str, index: int, row: int) -> str:
        """Return the name of an element of `name`, which is an instruction or an element of the instruction in `row`."""
        made = self._names.get((name, index))
        if made is None:
            made = f"{name}.element.{index}"
            while made in self._heads or self._view.index(made) is not None:
                made += "_"
            whole = self._heads.get(name) or self._view.heads[row]
            shape = subshape(whole.shape, (index,)) if whole.shape is not None else None
            text = self._items.get(whole.text.rpartition(" ")[0], index)
            self._names[name, index] = made
            self._heads[made] = Head(ELEMENT, shape, text=f"{text} {ELEMENT}")
            self._lines.append(self._view.lines[row])
        return made

    def computation(self, tails: Sequence[str]) -> Computation:
        """Return the computation with these tails and the rows that were made."""
        view, column = self._view, self._view.rows.column
        marked = column.marked or frozenset(range(len(view.rows))[-1:])
        made = [f"%{name}), index={index}" for name, index in self._names]
        heads = HeadColumn([*view.heads, *self._heads.values()], marked)
        rows = Rows([*view.names, *self._heads], heads, [*tails, *made], [*view.lines, *self._lines])
        return view.computation.with_rows(rows)


class TupleItems:
    """Texts of the elements of tuple shapes. Each text is taken apart once."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def get(self, shape: str, index: int) -> str:
        """Return the text of an element; empty if the text is no tuple, or has no such element."""
        items = self._known.get(shape)
        if items is None:
            text = tokens.without_comments(shape).strip()
            is_tuple = text.startswith("(") and text.endswith(")")
            extents = tokens.split_items(text, 1, len(text) - 1) if is_tuple else ()
            items = self._known[shape] = [text[start:end].strip() for start, end in extents]
        return items[index] if index < len(items) else ""


# -- rows that `x#1` can stand for --------------------------------------------------------------------------------------------


def equal_elements(
    spellings: Sequence[Spelling],
    operands: Sequence[Sequence[int | None]],
    predecessors: Sequence[Sequence[int]],
    root: int | None,
) -> dict[int, int]:
    """Return the rows that `x#1` can stand for, each with the first equal one.

    The root stays a row, as do those with control dependencies, or with a shape that is not that of the element.
    """
    rows = {row: False for row, spelling in enumerate(spellings) if spelling.opcode == ELEMENT and row != root}
    awaited = {row for before in predecessors for row in before} if rows else ()
    items, first, equal = TupleItems(), dict[tuple[int, int], int](), dict[int, int]()
    for row in operands_first(rows, lambda row: [used for used in operands[row] if used is not None and used in rows]):
        index, used = _index(spellings[row]), operands[row][0] if len(operands[row]) == 1 else None
        is_circular = used is not None and not rows.get(used, True)  # no legal text has such rows
        rows[row] = True
        if index is None or used is None or predecessors[row] or row in awaited or is_circular:
            continue
        if spellings[row].shape == items.get(spellings[used].shape, index):
            equal[row] = first.setdefault((equal.get(used, used), index), row)
    return equal


def _index(spelling: Spelling) -> int | None:
    text = "" if spelling.rest else dict(spelling.attributes).get("index", "")
    return int(text) if len(text) < 10 and text.isdecimal() and text.isascii() else None


def rows_with_elements(operands: Sequence[Sequence[int | None]], elements: Mapping[int, int]) -> Sequence[int]:
    """Return the rows in the order of the text, each element before its first user; none that is unused or not the first."""
    if not elements:
        return range(len(operands))
    rows: list[int] = []
    placed: set[int | None] = set()
    for row, used in enumerate(operands):
        if row in elements:
            continue
        for operand in used:
            chain: list[int] = []
            element = operand
            while element is not None and element in elements and element not in placed:
                placed.add(element)
                chain.append(element)
                element = operands[element][0]
            rows += reversed(chain)
        rows.append(row)
    return rows
