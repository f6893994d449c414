"""Tables as text in a given width: which columns fit, what is shortened, and how wide each is.

Columns with a high `detail` go first. Only text is shortened; a figure is never cut, so a table of many figures can be wider
than asked. Widths are terminal cells: a CJK character takes two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_inspect.errors import printable
from hlo_inspect.report.model import Column, Row, Table, Value
from hlo_inspect.report.units import UNKNOWN, format_bounded

GAP = 2  # blanks between columns

_MACHINE_ONLY = 9  # the `detail` of a column that only JSON and CSV have
_READABLE = 24  # text is shortened to this before a column is dropped for it,
_SHORTEST = 8  # and to this when there is none left to drop


@dataclass(frozen=True, slots=True)
class Grid:
    """A table ready to print: formatted and shortened cells of the columns that fit, and the headings of those that do not."""

    title: str
    header: tuple[str, ...]
    right: tuple[bool, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] | None
    folded: bool
    hidden: tuple[str, ...]

    @property
    def width(self) -> int:
        body = sum(self.widths) + GAP * (len(self.widths) - 1) if self.rows else 0
        return max(cell_width(self.title), body)

    @property
    def has_unknown(self) -> bool:
        return any(UNKNOWN in row for row in (*self.rows, self.total or ()))


def make_grid(table: Table, width: int, raw_bytes: bool = False) -> Grid:
    """`table`, already cut to the rows to show, in at most `width` cells where its figures let it."""
    header, columns, rows, total = _formatted(table, raw_bytes)
    lines = [header, *rows, *([total] if total else [])]
    natural = [min(max(map(cell_width, cells)), width) for cells in zip(*lines, strict=True)]
    kept = _fitting(columns, natural, width)
    elastic = [columns[i].unit == "text" for i in kept]
    widths = _squeezed([natural[i] for i in kept], elastic, width - GAP * (len(kept) - 1))

    def cut(cells: Sequence[str]) -> tuple[str, ...]:
        return tuple(shorten(cells[i], wide) if soft else cells[i] for i, wide, soft in zip(kept, widths, elastic, strict=True))

    return Grid(
        title=printable(table.title),
        header=cut(header),
        right=tuple(columns[i].unit not in ("text", "bool") for i in kept),
        widths=tuple(widths),
        rows=tuple(map(cut, rows)),
        total=cut(total) if total else None,
        folded=table.others > 0,
        hidden=tuple(header[i] for i, column in enumerate(columns) if i not in kept and column.detail < _MACHINE_ONLY),
    )


_Cells = tuple[str, ...]


def _formatted(table: Table, raw_bytes: bool) -> tuple[_Cells, tuple[Column, ...], list[_Cells], _Cells | None]:
    """Heading, columns, rows and total of the columns that a page can have. A column of lower bounds is none of them: a bound
    stands in the cell of the unknown value.
    """
    bounds = table.bound_columns
    pages = [at for at in range(len(table.columns)) if at not in bounds.values() and _has_something_to_say(table, at)]
    columns = tuple(table.columns[at] for at in pages)

    def cells(row: Row, at_least: Sequence[Value], *, of_sums: bool = False) -> _Cells:
        return tuple(_cell(row[at], at_least[at], table.columns[at], raw_bytes, of_sums) for at in pages)

    rows = [cells(row, [row[bounds[at]] if at in bounds else None for at in range(len(row))]) for row in table.rows]
    if table.others:
        rows[-1] = cells(table.rows[-1], table.others_at_least, of_sums=True)
    total = table.total
    total_cells = cells(_labelled(total), table.total_at_least, of_sums=True) if total is not None and rows else None
    return tuple(printable(column.name.replace("_", " ")) for column in columns), columns, rows, total_cells


def _cell(value: Value, at_least: Value, column: Column, raw_bytes: bool, of_sums: bool) -> str:
    """Empty, not unknown, where there is no such thing: in an optional column, and among sums where nothing is summed."""
    if value is None and at_least is None and (column.optional or (of_sums and not column.summed)):
        return ""
    return format_bounded(value, at_least, column.unit, raw_bytes)


def _has_something_to_say(table: Table, at: int) -> bool:
    """Whether a page needs the column: one that is empty in every row may be dropped."""
    column = table.columns[at]
    return (
        column.detail == 0
        or not table.rows
        or any(row[at] != "" and not (row[at] is None and column.optional) for row in table.rows)
    )


def _labelled(total: Row) -> Row:
    return total if total[0] is not None else ("total", *total[1:])


def _fitting(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    """The columns to show, as positions: the first, and those that remain when the most detailed are dropped until all fit."""
    needed = [min(wide, _READABLE) if column.unit == "text" else wide for column, wide in zip(columns, natural, strict=True)]
    kept = [i for i, column in enumerate(columns) if i == 0 or column.detail < _MACHINE_ONLY]
    while sum(needed[i] for i in kept) + GAP * (len(kept) - 1) > width:
        optional = [i for i in kept[1:] if columns[i].detail > 0]
        if not optional:
            break
        kept.remove(max(optional, key=lambda i: (columns[i].detail, i)))
    return kept


def _squeezed(natural: Sequence[int], elastic: Sequence[bool], room: int) -> list[int]:
    """Widths that add up to `room` at most, taken cell by cell from the widest text."""
    widths = list(natural)
    while sum(widths) > room:
        soft = [i for i, is_elastic in enumerate(elastic) if is_elastic and widths[i] > _SHORTEST]
        if not soft:
            break
        widths[max(soft, key=lambda i: widths[i])] -= 1
    return widths


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` cells. A list ("{0,1}, …") is cut at its end, names and paths in the middle."""
    if cell_width(text) <= width:
        return text
    tail = 0 if text[0] in "([{" else (width - 1) // 2
    return _head(text, width - 1 - tail) + "…" + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks
