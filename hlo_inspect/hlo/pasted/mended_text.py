"""The text of one writer as it is mended, line by line, and where it stands in the input: prefixes are taken off, wrapped lines
joined.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import IO, cast

from hlo_inspect.hlo.module import Computation, Module, Problems
from hlo_inspect.hlo.pasted.mended_line import Line
from hlo_inspect.hlo.read.open_computation import read_skipped

PIECE_CHARS = 1 << 18
SPOOLED_CHARS = 1 << 22
"""The text of a rank is kept in memory so far while that of another is read, and in a file from there on."""


class SourceMap:
    """The lines and columns of the input that the characters of a text come from.

    An entry says where the text from a line and an offset in it comes from. It holds for the rest of the line, and for the
    lines below it, each one line further down in the input, up to the next entry. `lines` are those of the entries.
    """

    def __init__(self) -> None:
        self.lines = array("Q")
        self._offsets = array("Q")
        self._to_lines = array("Q")
        self._to_columns = array("Q")

    def add(self, line: int, offset: int, to_line: int, to_column: int) -> None:
        """The text from `line` and the 0-based `offset` comes from `to_line` and `to_column`. Entries come in order."""
        if self.lines and not offset and not self._offsets[-1]:
            continues = to_line - self._to_lines[-1] == line - self.lines[-1]
            if continues and to_column == self._to_columns[-1] and line > self.lines[-1]:
                return
        self.lines.append(line)
        self._offsets.append(offset)
        self._to_lines.append(to_line)
        self._to_columns.append(to_column)

    def place(self, line: int, column: int = 1) -> tuple[int, int]:
        """The line and column in the input of a 1-based line and column of the text."""
        low = bisect_right(self.lines, line) - 1
        while low >= 0 and self.lines[low] == line and self._offsets[low] >= column:
            low -= 1
        if low < 0:
            return line, column
        below = line - self.lines[low]
        offset = 0 if below else self._offsets[low]
        return self._to_lines[low] + below, self._to_columns[low] + column - 1 - offset


class MendedText:
    """The text of one writer, where it comes from, and `notes` on what was undone in it. All but the first are kept until that
    one is read.
    """

    def __init__(self, *notes: str) -> None:
        self.notes = dict.fromkeys(notes)
        self.places = SourceMap()
        self.lines = 1  # number of the next one
        self.out: list[str] = []
        self.size = 0
        self.spool: IO[str] | None = None

    def emit(self, line: Line) -> None:
        """Adds a line."""
        for index, number, column in line.origins:
            self.places.add(self.lines, index, number, column)
        self.lines += 1
        self.out.append(line.text)
        self.size += len(line.text) + 1

    def taken(self) -> str:
        """The text since the last call."""
        if not self.out:
            return ""
        self.out.append("")
        text, self.out, self.size = "\n".join(self.out), [], 0
        return text

    def keep(self) -> None:
        if self.spool is None:
            from tempfile import SpooledTemporaryFile

            kept = SpooledTemporaryFile(SPOOLED_CHARS, "w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
            self.spool = cast("IO[str]", kept)
        self.spool.write(self.taken())

    def kept(self) -> Iterator[str]:
        """The text that was kept, in pieces that end with a line."""
        self.keep()
        spool = self.spool
        if spool is None:
            return
        spool.seek(0)
        while lines := spool.readlines(PIECE_CHARS):
            yield "".join(lines)
        spool.close()


def relocate(module: Module, places: SourceMap) -> None:
    """Turns every line and column that a module has kept into that of the input."""
    if not places.lines:  # all of it stands where it was
        return
    read_skipped(module)  # as their lines stand in the mended text
    module.first_line = places.place(module.first_line)[0]
    module.problems = _relocated(module.problems, places)
    for computation in module.computations.values():  # the entry is one of them
        _relocate_computation(computation, places)


def _relocated(problems: Problems, places: SourceMap) -> Problems:
    found = Problems()
    found.left_out = problems.left_out
    for problem in problems:
        location = problem.location
        if location.line is not None:
            line, column = places.place(location.line, location.column or 1)
            location = location._replace(line=line, column=column if location.column is not None else None)
        found.add(problem._replace(location=location), problem.times)
    return found


def _relocate_computation(computation: Computation, places: SourceMap) -> None:
    scalars = [(row, places.place(line)[0]) for row, line in computation.scalar_rows()]
    computation.line = places.place(computation.line)[0]
    if scalars:
        computation.keep_scalars(scalars)
    for instruction in computation.instructions:
        instruction.line = places.place(instruction.line)[0]
    if computation.rows:
        computation.rows.lines = [places.place(line)[0] for line in computation.rows.lines]
