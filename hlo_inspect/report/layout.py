"""Tables as text in a given width: the columns of a page, and the width of each.

Columns with a low `detail` take their room first, columns with equal cells later. A page has no column without a value.
If rows would look equal, the column that tells most of them apart takes the room of others. Only text is shortened, and only
as far as it has to be. A sentence is wrapped, a list is cut at its end, a path loses its beginning, a name its middle. A figure
is never cut, so a table of many figures can be wider than requested. Widths are terminal cells: a CJK character takes two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.errors import printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.cells import BAR_WIDTH, NARROW_BAR_WIDTH, Cells, Texts, format_table, heading
from hlo_inspect.report.table import Column, Table, Unit
from hlo_inspect.report.units import UNKNOWN

GAP = 2  # blanks between columns
NARROW = lazy_pattern("[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u03ff\u2010-\u2027\u2190-\u2211\u2500-\u257f]*+")
"""Text of characters that take one cell each, among them all that pages have: rich need not be imported for them."""

PAGE_WIDTH = 120  # chooses the columns if the output has no width of its own

WIDE_PAGE = 100  # columns from which bars have their full width
_VERY_WIDE_PAGE = 160  # columns from which no text stands below its row

_MACHINE_ONLY = 9  # the `detail` of a column that only JSON and CSV have
_EQUAL_DETAIL = 2  # added to the `detail` of a column whose cells are equal
_COMPARED_ROWS = 1_000  # at most so many rows of a page decide which columns it has
_USUAL: dict[Unit, int] = {
    "text": 16,
    "bytes": 9,
    "flops": 7,
    "seconds": 7,
    "count": 7,
    "number": 6,
    "share": 6,
    "bool": 3,
    "flops_per_s": 14,
    "bytes_per_s": 10,
}
# columns of one name hold the same kind of texts or figures in all tables
_USUAL_BY_NAME = {
    "aliased_output": 8,
    "axis": 6,
    "bound": 7,
    "bound_by": 7,
    "computation": 20,
    "compute_s": 9,
    "dtype": 5,
    "kind": 14,
    "memory_s": 9,
    "name": 18,
    "names": 20,
    "op_name": 40,
    "opcode": 14,
    "partition_spec": 20,
    "path": 24,
    "phase": 9,
    "reduction": 9,
    "replica_groups": 20,
    "role": 13,
    "root": 12,
    "rule": 8,
    "scope": 28,
    "shape": 18,
    "share": 8,
    "source": 28,
    "status": 6,
}
_SHORTEST = 8  # text is shortened to this at most, or to its heading; a sentence is wrapped to _SHORTEST_LINE
_SHORTEST_LINE = 16
_SHORT_TEXT = 12
_LONGEST_VALUE = 2000
"""Limit of the characters of a value that takes several lines; a longer one is shortened."""
_BREAKS = "-_./"
_PART = lazy_pattern(r"(?:[^\s,\[{]|\[[^\[\]]*\]|\{[^{}]*\}|[\[{])+[\s,]*|[\s,]+")
"""Pattern of a part of a value with the blanks and commas behind it; brackets around no others stay whole."""
_BLANKS_OF_A_SENTENCE = 3


class Grid(NamedTuple):
    """A table ready to print: the cells of the columns that fit, and the names of those that do not.

    `title_lines` is the title as wrapped to its place. A cell that is wrapped holds line ends. The last `folded` rows are sums;
    `left_out` is the line of the rows that a filter hides. A grid without rows says `nothing` in their place. `has_unknown`
    says that a cell, or a column left out, is unknown. `below` are the lines under each row.
    """

    title: str
    title_lines: Texts
    header: Texts
    right: tuple[bool, ...]
    widths: tuple[int, ...]
    rows: tuple[Texts, ...]
    total: Texts | None
    folded: int
    left_out: Texts | None
    hidden: tuple[str, ...]
    nothing: str
    has_unknown: bool
    below: tuple[Texts, ...]

    @property
    def is_empty(self) -> bool:
        return not self.rows and self.left_out is None

    @property
    def width(self) -> int:
        body = cell_width(self.nothing) if self.is_empty else sum(self.widths) + GAP * (len(self.widths) - 1)
        lines_below = (self.indent + cell_width(line) for lines in self.below for line in lines)
        return max([*map(cell_width, self.title_lines), body, *lines_below])

    @property
    def indent(self) -> int:
        """Blanks before the lines below a row: they begin below the second column."""
        return self.widths[0] + GAP


def make_grid(table: Table, width: int | None, raw_bytes: bool = False, *, keeps_files: bool = False) -> Grid:
    """Lay out `table`, already cut to the rows to show, in at most `width` terminal cells if its figures let it.

    With `keeps_files` the names of files are whole too.

    Without a width it has the columns of `PAGE_WIDTH`. Each cell is then whole, even if it is longer and breaks the columns of
    its row.
    """
    bar_width = BAR_WIDTH if (width or PAGE_WIDTH) >= WIDE_PAGE else NARROW_BAR_WIDTH
    cells = format_table(table, raw_bytes, bar_width)
    below = next((index for index, column in enumerate(cells.columns) if column.below and not column.is_chosen), None)
    if width is None or width >= _VERY_WIDE_PAGE:
        below = None
    valued = [index for index in _valued_columns(cells) if index != below]
    usual = [_usual_width(column, index, cells, raw_bytes) for index, column in enumerate(cells.columns)]
    kept = _chosen(usual, cells, valued, width or PAGE_WIDTH)
    total = cells.total if cells.total and any(cells.total[index] for index in kept if cells.columns[index].summed) else None
    sums = [line for line in (total, cells.left_out) if line]
    lines = [tuple(line[index] for index in kept) for line in (cells.header, *cells.rows, *sums)]
    columns = list(zip(*lines, strict=True))
    widths = [max(map(cell_width, column)) for column in columns]
    if width is None:
        widths = [min(wide, PAGE_WIDTH) for wide in widths]
    else:
        shown = [cells.columns[index] for index in kept]
        keeps_words = any(column.wraps for column in shown)
        shortest = [
            max(map(cell_width, texts)) if keeps_files and column.is_file else _shortest(texts, column, keeps_words)
            for texts, column in zip(columns, shown, strict=True)
        ]
        widths = _squeezed(widths, shortest, width - GAP * (len(kept) - 1))
        wraps = [column.wraps for column in shown]
        lines = [tuple(map(fit, line, widths, wraps)) for line in lines]
    header, *rows = lines
    room = (width or PAGE_WIDTH) - widths[0] - GAP
    title = printable(table.title)
    return Grid(
        title=title,
        title_lines=(title,) if width is None else tuple(wrap(title, width)),
        header=header,
        right=tuple(cells.columns[index].unit not in ("text", "bool") for index in kept),
        widths=tuple(widths),
        rows=tuple(rows[: len(cells.rows)]),
        total=rows[len(cells.rows)] if total else None,
        folded=cells.folded,
        left_out=rows[-1] if cells.left_out else None,
        hidden=tuple(printable(column.name) for index, column in enumerate(cells.columns) if index not in (*kept, below)),
        nothing="none before the text ends" if table.lacks_rows else table.nothing,
        has_unknown=_has_unknown(cells, kept, valued, total),
        below=() if below is None else tuple(tuple(wrap(row[below], room)) for row in cells.rows),
    )


def _usual_width(column: Column, index: int, cells: Cells, raw_bytes: bool) -> int:
    """Return the width that a column asks for: a usual one for texts, and that of the longest figure, which is never cut."""
    usual = column.width or _USUAL_BY_NAME.get(column.name) or _USUAL[column.unit]
    if column.unit not in ("text", "bool"):
        usual = max((cell_width(row[index]) for row in (*cells.rows, *filter(None, [cells.total]))), default=usual)
    return max(cell_width(heading(column, raw_bytes)), usual)


def _valued_columns(cells: Cells) -> list[int]:
    """Return the positions of the columns that a page can have: the first, those asked for, and those with a known value."""
    return [
        index
        for index, column in enumerate(cells.columns)
        if index == 0
        or column.is_chosen
        or (column.detail < _MACHINE_ONLY and (not cells.rows or any(row[index] not in ("", UNKNOWN) for row in cells.rows)))
    ]


def _has_unknown(cells: Cells, kept: Sequence[int], valued: Sequence[int], total: Texts | None) -> bool:
    """Return True if a cell of the page is unknown, or all cells of a column that it leaves out for that."""
    left_out = {index for index, column in enumerate(cells.columns) if column.detail < _MACHINE_ONLY} - set(valued)
    positions = (*kept, *left_out)
    return any(row[index] == UNKNOWN for row in (*cells.rows, *([total] if total else [])) for index in positions)


def _chosen(usual: Sequence[int], cells: Cells, valued: Sequence[int], width: int) -> list[int]:
    """Return the positions of the columns to show: the first, those without a `detail`, and others while they fit.

    The least detailed come before the others. Equal cells make a column `_EQUAL_DETAIL` more detailed, and if there is no room
    for all columns without a `detail`, the first to go.
    """
    rows = cells.rows[: len(cells.rows) - cells.folded][:_COMPARED_ROWS]
    equal = {index for index in valued if len(rows) > 1 and len({row[index] for row in rows}) == 1}
    fixed = [index for index in valued if index == 0 or cells.columns[index].is_chosen]
    fixed += [index for index in valued if index not in fixed and cells.columns[index].detail == 0 and index not in equal]

    def rank(index: int) -> tuple[int, int]:
        detail = cells.columns[index].detail
        return detail + (_EQUAL_DETAIL if detail and index in equal else 0), index

    others = sorted(set(valued) - set(fixed), key=rank)
    kept = _fitting(usual, fixed, others, width)
    readable = [min(wide, _SHORT_TEXT) if cells.columns[index].unit == "text" else wide for index, wide in enumerate(usual)]
    while (column := _telling_apart(rows, usual, kept, [index for index in others if index not in kept])) is not None:
        others.remove(column)
        for detail in (1, 0):
            wanted = [*fixed, *(index for index in kept if index not in fixed and cells.columns[index].detail <= detail)]
            if _room(readable, wanted) + GAP + usual[column] <= width:
                break
        else:
            continue
        fixed = [*wanted, column]
        others = [index for index in others if index not in fixed]
        kept = _fitting(usual, fixed, others, width)
    return sorted(kept)


def _room(usual: Sequence[int], columns: Sequence[int]) -> int:
    return sum(usual[index] + GAP for index in columns) - GAP


def _fitting(usual: Sequence[int], fixed: Sequence[int], others: Sequence[int], width: int) -> list[int]:
    """Return the fixed columns and those of the others, in their order, that fit beside them."""
    kept = list(fixed)
    used = _room(usual, kept)
    for index in others:
        if used + GAP + usual[index] <= width:
            used += GAP + usual[index]
            kept.append(index)
    return kept


def _telling_apart(rows: Sequence[Texts], usual: Sequence[int], kept: Sequence[int], hidden: Sequence[int]) -> int | None:
    """Return the hidden column with which the most rows look different, the narrowest of several; None if no row does."""

    def looks(columns: Sequence[int]) -> int:
        return len({tuple(row[index] for index in columns) for row in rows})

    most = looks(kept)
    if most == len(rows) or not hidden:
        return None
    best = max(hidden, key=lambda index: (looks([*kept, index]), -usual[index]))
    return best if looks([*kept, best]) > most else None


def _shortest(cells: Sequence[str], column: Column, keeps_words: bool) -> int:
    """Return the least width of a column: for text its heading, for lines of text a short line, for figures their full width.

    With `keeps_words` short texts stay whole: other columns take several lines.
    """
    natural = max(map(cell_width, cells))
    if column.unit != "text" or (keeps_words and natural <= _SHORT_TEXT):
        return natural
    is_line = column.wraps or any(map(_is_sentence, cells))
    return max(cell_width(cells[0]), min(natural, _SHORTEST_LINE if is_line else _SHORTEST))


def _squeezed(natural: Sequence[int], shortest: Sequence[int], room: int) -> list[int]:
    """Return widths that add up to `room` at most, taken cell by cell from the widest column that may be shorter."""
    widths = [min(wide, max(short, room)) for wide, short in zip(natural, shortest, strict=True)]
    while sum(widths) > room:
        soft = [index for index, wide in enumerate(widths) if wide > shortest[index]]
        if not soft:
            break
        widths[max(soft, key=lambda index: widths[index])] -= 1
    return widths


def cell_width(text: str) -> int:
    if text.isascii() or NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int, wraps: bool = False) -> str:
    """Fit `text` into lines of at most `width` cells: a sentence in several, anything else shortened to one.

    With `wraps` any text takes several lines.
    """
    if cell_width(text) <= width:
        return text
    if wraps:
        return "\n".join(_value_lines(shorten(text, _LONGEST_VALUE), width))
    if _is_sentence(text):
        return "\n".join(shorten(line, width) for line in wrap(text, width))
    return shorten(text, width)


def wrap(text: str, width: int) -> list[str]:
    """Break a sentence into lines of at most `width` characters.

    A longer word begins a line, and breaks after a `/` in the second half of a line: most such words are paths.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if len(joined) > width and line:
            lines.append(line)
            joined = word
        *whole, line = _broken(joined, width) if joined else ("",)
        lines += whole
    return [line.rstrip() for line in (*lines, line) if line.strip()]


def _broken(word: str, width: int) -> Iterator[str]:
    begin = 0
    while len(word) - begin > width:
        end = word.rfind("/", begin + width // 2, begin + width) + 1 or begin + width
        yield word[begin:end]
        begin = end
    yield word[begin:]


def _value_lines(text: str, width: int) -> Iterator[str]:
    """Break a value after blanks and commas, and a longer part anywhere."""
    line = ""
    for part in _PART.findall(text):
        if line and cell_width(line + part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
        while cell_width(line.rstrip()) > width:
            head = _head(line, width)
            end = max((head.rfind(mark, len(head) // 2) for mark in _BREAKS), default=-1) + 1 or len(head)
            yield line[:end]
            line = line[end:]
    yield line.rstrip()


def _is_sentence(text: str) -> bool:
    return text.count(" ") >= _BLANKS_OF_A_SENTENCE and text[0] not in "([{"


def shorten(text: str, width: int) -> str:
    """Shorten `text` to `width` cells.

    A list ("{0,1}, …") is cut at its end, a path at its beginning, a name in the middle. The path of an array in a pytree keeps
    the keys at its end whole: "…['mlp']['kernel']".
    """
    if cell_width(text) <= width:
        return text
    key = text.find("['", len(text) - width + 1) if text.endswith("']") else -1
    if key > 0:
        return "…" + text[key:]
    tail = 0 if text[0] in "([{" else width - 1 if "/" in text else (width - 1) // 2
    return _head(text, width - 1 - tail) + "…" + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    if text.isascii() or NARROW.fullmatch(text):
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks
