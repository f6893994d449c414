"""The texts of a table on a page: headings, cells, sums.

A unit is in the cells or in the heading, not in both. Sizes and times have theirs in the cells ("2.00 MiB" below "operand").
FLOPs have theirs in the heading ("631.4 G" below "flops"), and so have counts that are `rounded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.errors import UsageError, did_you_mean, printable
from hlo_inspect.report.table import Column, Row, Table, Unit, Value
from hlo_inspect.report.units import as_unit, format_like, format_rounded, format_value

_UNIT_WORDS = {"bytes": ("bytes", "size"), "seconds": ("s", "time")}
"""The word of a unit in the names of columns, and the heading of a column with that name alone."""

Texts = tuple[str, ...]

BAR_WIDTH, NARROW_BAR_WIDTH = 24, 12
_SHARE_WIDTH = 6


class Cells(NamedTuple):
    """A table in texts, with the columns that a page can have.

    `folded` are rows of sums at the end of `rows`, `left_out` is the line of the rows that a filter hides.
    """

    columns: tuple[Column, ...]
    header: Texts
    rows: tuple[Texts, ...]
    total: Texts | None
    folded: int
    left_out: Texts | None


def format_table(table: Table, raw_bytes: bool, bar_width: int = BAR_WIDTH) -> Cells:
    """Format a table, with bars of that width."""

    def texts(row: Row, *, of_sums: bool = False) -> Texts:
        return tuple(
            cell_in_own_unit(row, index, table.columns, raw_bytes)
            if column.unit_of
            else cell(row[index], column, raw_bytes, of_sums)
            for index, column in enumerate(table.columns)
        )

    values = table.page_cells
    rows = list(map(texts, values))
    if table.others:
        rows[-1] = texts(values[-1], of_sums=True)
    header = tuple(heading(column, raw_bytes) for column in table.columns)
    for index, column in enumerate(table.columns):
        if column.bar:
            rows = _with_bars(rows, index, [row[index] for row in table.rows], bar_width, is_stacked=column.bar == "stacked")
            header = (*header[:index], _text_and_bar(header[index], "", bar_width), *header[index + 1 :])
    sums, left_out = table.sums, None
    if table.left_out is not None:
        label = f"[{table.left_out.rows:,} filtered out]"
        left_out = texts(table.labelled(table.left_out.sums, label), of_sums=True)
    return Cells(
        columns=table.columns,
        header=header,
        rows=tuple(rows),
        total=texts(table.labelled(sums, "total"), of_sums=True) if sums and rows else None,
        folded=1 if table.others else 0,
        left_out=left_out,
    )


def _text_and_bar(text: str, bar: str, bar_width: int) -> str:
    return f"{text:>{_SHARE_WIDTH}}  {bar:<{bar_width}}"


def _with_bars(
    rows: Sequence[Texts], position: int, shares: Sequence[Value], bar_width: int, *, is_stacked: bool
) -> list[Texts]:
    """Return the rows with bars beside the shares of one column; a share that is not 0 is never invisible."""
    drawn = []
    begin = 0.0
    for row, value in zip(rows, shares, strict=True):
        share = float(value) if isinstance(value, int | float) else 0.0
        first = min(round(begin * bar_width), bar_width - 1)
        last = min(max(round((begin + share) * bar_width), first + 1), bar_width) if share > 0 else first
        begin += share if is_stacked else 0.0
        bar = _text_and_bar(row[position], " " * first + "█" * (last - first), bar_width)
        drawn.append((*row[:position], bar, *row[position + 1 :]))
    return drawn


def heading(column: Column, raw_bytes: bool = False) -> str:
    """Return the name of a column on a page, without a unit that its cells have."""
    words = (column.page_name or column.name).split("_")
    if column.unit in _UNIT_WORDS and not (raw_bytes and column.unit == "bytes"):
        unit, alone = _UNIT_WORDS[column.unit]
        words = [word for word in words if word != unit] or [alone]
    return printable(" ".join(words))


def find_column(name: str, table: Table) -> int:
    """Return the position of a column, by its name or a heading that it has on some page.

    Headings are also those with `--bytes`, and the heading made of the name alone. Raise UsageError with the nearest names.
    """
    names = [column.name for column in table.columns]
    headings = [heading(column) for column in table.columns]
    in_bytes = [heading(column, raw_bytes=True) for column in table.columns]
    plain = [heading(column._replace(page_name="")) for column in table.columns]
    wanted = name.strip()
    like_a_name = wanted.replace(" ", "_").replace("-", "_")
    for labels, spelt in ((names, wanted), (names, like_a_name), (headings, wanted), (in_bytes, wanted), (plain, wanted)):
        if spelt in labels:
            return labels.index(spelt)
    hint = did_you_mean(wanted, names) or f"; there are: {', '.join(names)}"
    raise UsageError(f"no column {wanted!r} in the table {table.name!r}{hint}")


def cell_in_own_unit(row: Row, index: int, columns: Sequence[Column], raw_bytes: bool) -> str:
    """Return a cell of a column in which each row has its own unit."""
    others = {column.name: value for column, value in zip(columns, row, strict=True)}
    unit, like = as_unit(others.get(columns[index].unit_of)), others.get(columns[index].like)
    if row[index] is None and (columns[index].optional or others.get(columns[index].unit_of) is None):
        return ""
    return _signed(format_like(row[index], unit, str(like or ""), raw_bytes), row[index], columns[index])


def cell(value: Value, column: Column, raw_bytes: bool, of_sums: bool) -> str:
    """Return a cell. It is empty, not unknown, in an optional column, and among sums of a column that is not summed."""
    if value is None and (column.optional or (of_sums and not column.summed)):
        return ""
    if column.rounded and isinstance(value, float):
        return format_rounded(value)
    unit: Unit = "flops" if column.rounded and column.unit == "count" else column.unit
    text = _signed(format_value(value, unit, raw_bytes), value, column)
    return text.replace("FLOP", "").rstrip() if unit == "flops" else text


def _signed(text: str, value: Value, column: Column) -> str:
    """Return the text of a difference with its sign."""
    if not column.signed or not isinstance(value, int | float) or value <= 0:
        return text
    return f"< +{text.removeprefix('< ')}" if text.startswith("< ") else f"+{text}"
