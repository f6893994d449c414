"""Rows of many computations as arrays, without an object for a row.

`Columns` holds offsets into one text. Their first use cuts names and texts out of it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias, cast, overload

IS_ROOT, IS_USED, USES_ELEMENTS = 1, 2, 4
"""Flags of rows: the root; an operand of another row; one of whose operands is an element of a tuple, as `name#1`."""

IS_ENTRY, CALLS_AHEAD = 1, 2
"""Flags of computations: the entry; one that calls a computation which no earlier line of the text defines."""

Numbers: TypeAlias = "array[int]"


class Texts(Sequence[str]):
    """Texts of a column, cut out of the whole when they are read."""

    __slots__ = ("_ends", "_rows", "_starts", "_text")

    def __init__(self, text: str, starts: Numbers, ends: Numbers, rows: range) -> None:
        """Take the extents of `text` with these indices."""
        self._text = text
        self._starts = starts
        self._ends = ends
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        row = self._rows[index]
        if isinstance(row, range):
            return tuple(self)[cast("slice", index)]
        return self._text[self._starts[row] : self._ends[row]]

    def __iter__(self) -> Iterator[str]:
        rows = self._rows
        extent = slice(rows.start, rows.stop)
        return map(self._text.__getitem__, map(slice, self._starts[extent], self._ends[extent]))


class Columns:
    """Arrays of the rows of whole computations.

    Those of rows have an item for each row. Rows are numbered over all computations, in the order of the text.
    `names`: the distinct names of computations and callees. `callees` and `computation_names` are indices of it. `defined` has
    the computation of each, or -1.
    `row_classes`, `computation_classes`: numbers that are equal if texts differ in names and metadata only; -1 for the entry.
    `head_texts`: the distinct texts `shape opcode`; `heads` are indices of it.
    The first computation begins at `start` of `text`, which has the line number `line`.
    """

    def __init__(self, arrays: Mapping[str, Numbers], text: str, start: int, line: int) -> None:
        self.text = text
        self.start = start
        self.line = line
        self.count = len(arrays["first_row"])
        self.name_start, self.name_end = arrays["name_start"], arrays["name_end"]
        self.tail_start, self.tail_end = arrays["tail_start"], arrays["line_end"]
        self.attributes_start = arrays["attributes"]
        self.heads = arrays["head"]
        self.row_flags = arrays["row_flags"]
        self.operand_end, self.operands = arrays["operand_end"], arrays["operands"]
        self.call_end, self.callees, self.roles = arrays["call_end"], arrays["callee"], arrays["role"]
        self.attribute_forms, self.metadata = arrays["attribute_form"], arrays["metadata"]
        self.row_classes, self.computation_classes = arrays["row_class"], arrays["computation_class"]
        self.computation_names, self.computation_flags = arrays["computation_name"], arrays["computation_flags"]
        self.roots, self.heads_forms = arrays["root"], arrays["heads_form"]
        self.defined = arrays["defined"]
        self.first_row = arrays["first_row"]
        self.first_row.append(len(self.heads))
        self._lines, self._ends = arrays["computation_line"], arrays["computation_end"]
        self._signatures = arrays["first_line_start"], arrays["first_line_end"]
        self._metadata_start, self._metadata_length = arrays["metadata_start"], arrays["metadata_length"]
        self._head_row_end, self._head_rows = arrays["head_row_end"], arrays["head_rows"]
        self._arrays = arrays

    def _texts(self, name: str) -> list[str]:
        text, starts, lengths = self.text, self._arrays[f"{name}_start"], self._arrays[f"{name}_length"]
        return [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]

    @cached_property
    def head_texts(self) -> list[str]:
        return self._texts("heads")

    @cached_property
    def names(self) -> list[str]:
        return self._texts("names")

    def metadata_text(self, number: int) -> str:
        """Return the text of metadata with an index in `metadata`, which is -1 for rows without."""
        if number < 0:
            return ""
        start = self._metadata_start[number]
        return self.text[start : start + self._metadata_length[number]]

    @cached_property
    def form_texts(self) -> list[str]:
        """The distinct texts of attributes without metadata and names; `attribute_forms` are indices of it."""
        text = self._arrays["form_bytes"].tobytes().decode()
        starts, lengths = self._arrays["attribute_forms_start"], self._arrays["attribute_forms_length"]
        return [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]

    def cut(self, count: int) -> None:
        """Leave out the computations from an index on. Their rows are not forgotten, but no extent has them."""
        self.count = count

    # -- computations ---------------------------------------------------------------------------------------------------

    def computations(self) -> Iterator[tuple[int, int, int, int, int, int, int]]:
        """Yield name, line, first row, row after the last one, root, form of heads and flags of each computation."""
        rows = zip(self.first_row, self.first_row[1:], self.roots, self.heads_forms, self.computation_flags, strict=False)
        named = zip(self.computation_names[: self.count], self._lines, rows, strict=False)
        return ((name, line, *row) for name, line, row in named)

    def name(self, computation: int) -> str:
        return self.names[self.computation_names[computation]]

    def line_of(self, computation: int) -> int:
        """Return the line of a computation; its rows are on the lines after it, one each."""
        return self.line + self._lines[computation]

    def lines(self) -> list[int]:
        """Return `line_of` all computations."""
        first = self.line
        return [first + line for line in self._lines[: self.count]]

    def extent(self, computation: int) -> tuple[int, int]:
        """Return the first row of a computation and the row after its last one."""
        return self.first_row[computation], self.first_row[computation + 1]

    def signature(self, computation: int) -> str:
        """Return the first line of a computation."""
        starts, ends = self._signatures
        return self.text[starts[computation] : ends[computation]]

    def end(self) -> tuple[int, int]:
        """Return the length of the computations, and the number of their lines."""
        last = self.count - 1
        first, end = self.extent(last)
        return self._ends[last] - self.start, self._lines[last] + end - first + 2

    def computation_of(self, row: int) -> int:
        return bisect_right(self.first_row, row) - 1

    # -- rows -----------------------------------------------------------------------------------------------------------

    def row_name(self, row: int) -> str:
        return self.text[self.name_start[row] : self.name_end[row]]

    def tail(self, row: int) -> str:
        """Return the text of a row after the opening parenthesis."""
        return self.text[self.tail_start[row] : self.tail_end[row]]

    def operands_of(self, row: int) -> Numbers:
        """Return the rows that the operands of a row name."""
        return self.operands[self.operand_end[row - 1] if row else 0 : self.operand_end[row]]

    def row_of_call(self, call: int) -> int:
        """Return the row that calls a computation, by the index in `callees`."""
        return bisect_right(self.call_end, call)

    def rows_of_head(self, head: int) -> Numbers:
        """Return the rows with a head, in the order of the text."""
        return self._head_rows[self._head_row_end[head - 1] if head else 0 : self._head_row_end[head]]


class Extent(NamedTuple):
    """The rows of one computation in columns: from `first` to before `last`."""

    columns: Columns
    first: int
    last: int

    @property
    def classes(self) -> Numbers:
        """The classes of the rows."""
        return self.columns.row_classes[self.first : self.last]

    @property
    def computation_class(self) -> int:
        """The class of the computation."""
        return self.columns.computation_classes[self.columns.computation_of(self.first)]

    def names(self) -> Texts:
        columns = self.columns
        return Texts(columns.text, columns.name_start, columns.name_end, range(self.first, self.last))

    def tails(self) -> Texts:
        columns = self.columns
        return Texts(columns.text, columns.tail_start, columns.tail_end, range(self.first, self.last))

    @property
    def metadata_numbers(self) -> Numbers:
        """A number for each distinct text of metadata, -1 for rows without."""
        return self.columns.metadata[self.first : self.last]

    def metadata(self, row: int) -> str:
        """Return the text of the metadata of a row, counted in the computation; empty without."""
        return self.columns.metadata_text(self.columns.metadata[self.first + row])

    def operand_rows(self) -> list[tuple[int, ...] | None]:
        """Return the operand rows of each row, counted in the computation; None if a row uses elements of tuples."""
        columns, first, last = self
        start = columns.operand_end[first - 1] if first else 0
        operands = [row - first for row in columns.operands[start : columns.operand_end[last - 1]]]
        rows: list[tuple[int, ...] | None] = []
        begin = 0
        for stop in columns.operand_end[first:last]:
            rows.append(tuple(operands[begin : stop - start]))
            begin = stop - start
        for index, flags in enumerate(columns.row_flags[first:last]):
            if flags & USES_ELEMENTS:
                rows[index] = None
        return rows
