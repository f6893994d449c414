r"""The mended text of one writer: its lines, and their positions in the input.

A line keeps the origins of its pieces. `unescaped` undoes escapes such as `\n`. `JoinedLine` collects the lines that continue
a line wrapped at a fixed column.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import IO, NamedTuple, cast

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import Computation, Module, Problems
from hlo_inspect.hlo.read.open_computation import read_skipped
from hlo_inspect.lazy_pattern import lazy_pattern

_ESCAPES = lazy_pattern(r"(?:\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|[0-7]{1,3}|.))++", re.DOTALL)

MIN_WIDTH = 40
WIDTH_WINDOW = 200
"""Number of lines of a module that are read ahead to find the column of its line ends."""

FRESH = lazy_pattern(
    r"\s*+(?:(?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]++=[ \t]|ENTRY[ \t]|HloModule[ \t]|\}|$"
    r"|%?[A-Za-z_][\w.\-]*+ (?:\([^\n]*)?\{(?:$|\n)|%?[A-Za-z_][\w.\-]*+ \("
    r"|(?:FileNames|FunctionNames|FileLocations|StackFrames)(?:$|\n)|\d+ [\"{])",
    re.ASCII,
)
"""Pattern of the start of a line that continues no other."""

Origins = tuple[tuple[int, int, int], ...]
"""Origins of a line's pieces: index in its text; line and 1-based column in the input."""


class Line(NamedTuple):
    """A line, as far as it is mended. `width` is the length of the input's line in which it ends."""

    text: str
    origins: Origins
    width: int

    @classmethod
    def from_input(cls, text: str, number: int) -> Line:
        """Create a line as the input has it."""
        return cls(text, ((0, number, 1),), len(text))

    @classmethod
    def joined(cls, lines: Sequence[Line]) -> Line:
        """Join consecutive lines."""
        origins: list[tuple[int, int, int]] = []
        length = 0
        for line in lines:
            origins += [(length + index, number, column) for index, number, column in line.origins]
            length += len(line.text)
        return cls("".join([line.text for line in lines]), tuple(origins), lines[-1].width)

    def part(self, start: int, end: int | None = None) -> Line:
        """Return the line between two indices of its text."""
        first = bisect_right(self.origins, start, key=itemgetter(0))
        last = len(self.origins) if end is None else bisect_left(self.origins, end, key=itemgetter(0))
        inside = [(index - start, number, column) for index, number, column in self.origins[first:last]]
        return self._replace(text=self.text[start:end], origins=(self._origin(start, 0), *inside))

    def _origin(self, index: int, new_index: int) -> tuple[int, int, int]:
        """Return the origin of the character at `index`, for a text that has it at `new_index`."""
        begin, number, column = self.origins[bisect_right(self.origins, index, key=itemgetter(0)) - 1]
        return new_index, number, column + index - begin

    def substituted(self, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> Line:
        """Return the line with each match replaced."""
        pieces: list[str] = []
        origins: dict[int, tuple[int, int, int]] = {}  # the last origin of an index
        length = done = 0
        for match in pattern.finditer(self.text):
            for start, piece in ((done, self.text[done : match.start()]), (match.start(), replacement(match))):
                origins[length] = self._origin(start, length)
                pieces.append(piece)
                length += len(piece)
            done = match.end()
        if not pieces:
            return self
        origins[length] = self._origin(done, length)
        return self._replace(text="".join([*pieces, self.text[done:]]), origins=tuple(origins.values()))


def unescaped(line: Line) -> Iterator[Line]:
    """Yield the lines of a text with line ends and quotes escaped, once or more, as in strings of C, Python and JSON."""
    for _ in range(3):
        line = line.substituted(_ESCAPES, lambda match: tokens.unquote(f'"{match[0]}"'))
        if "\n" in line.text or "\\n" not in line.text:
            break
    start = 0
    for text in line.text.split("\n"):
        yield line.part(start, start + len(text))
        start += len(text) + 1


def wrapped_width(text: str, without_prefix: Callable[[str], str]) -> int:
    """Return the column at which the lines of a text are wrapped, or 0. The text begins with a header."""
    lines = text.split("\n", WIDTH_WINDOW)[:WIDTH_WINDOW]
    width = max(map(len, lines))
    if width < MIN_WIDTH:
        return 0
    broken = [len(line) for line in lines[:-1]].count(width)
    if broken < 2:
        return 0
    continued = {True: 0, False: 0}  # True: lines of full width
    for line, following in pairwise(lines):
        continued[len(line) == width] += JoinedLine(Line.from_input(line, 0)).is_continued_by(without_prefix(following))
    # In hand-wrapped text, narrower lines continue on the next line, too.
    is_wrapped = continued[True] > max(1, continued[False]) and continued[True] >= 0.7 * broken
    return width if is_wrapped else 0


class JoinedLine:
    """A line and the lines that continue it, to be joined when all are known."""

    def __init__(self, line: Line) -> None:
        self.lines: list[Line] = []
        self._braces = self._parentheses = 0
        self._opens_block = False
        self.add(line)

    def add(self, line: Line) -> None:
        """Add a line that continues it."""
        self.lines.append(line)
        self._braces += line.text.count("{") - line.text.count("}")
        self._parentheses += line.text.count("(") - line.text.count(")")
        if line.text and not line.text.isspace():
            self._opens_block = f" {line.text.rstrip()}".endswith(" {")  # or a list of lists in the header

    def is_continued_by(self, text: str) -> bool:
        """Return True if the next line continues this one, which has the full width."""
        is_fresh = FRESH.match(text) is not None
        if self._opens_block and is_fresh:
            return False
        return self._braces > 0 or self._parentheses > 0 or not is_fresh


PIECE_CHARS = 1 << 18
SPOOLED_CHARS = 1 << 22
"""Characters of another rank's text that stay in memory while the first rank's is read; more go to a file."""


class SourceMap:
    """Map from positions of a text to lines and columns of the input.

    An entry has the origin of the text from a line and offset on. It holds for the rest of the line, and until the next entry
    for the lines below, each one line further down in the input. `lines` are the lines of the entries.
    """

    def __init__(self) -> None:
        self.lines = array("Q")
        self._offsets = array("Q")
        self._to_lines = array("Q")
        self._to_columns = array("Q")

    def add(self, line: int, offset: int, to_line: int, to_column: int) -> None:
        """Add an entry, in order: the text from `line` and the 0-based `offset` comes from `to_line` and `to_column`."""
        if self.lines and not offset and not self._offsets[-1]:
            continues = to_line - self._to_lines[-1] == line - self.lines[-1]
            if continues and to_column == self._to_columns[-1] and line > self.lines[-1]:
                return
        self.lines.append(line)
        self._offsets.append(offset)
        self._to_lines.append(to_line)
        self._to_columns.append(to_column)

    def place(self, line: int, column: int = 1) -> tuple[int, int]:
        """Return line and column in the input for a 1-based line and column of the text."""
        low = bisect_right(self.lines, line) - 1
        while low >= 0 and self.lines[low] == line and self._offsets[low] >= column:
            low -= 1
        if low < 0:
            return line, column
        below = line - self.lines[low]
        offset = 0 if below else self._offsets[low]
        return self._to_lines[low] + below, self._to_columns[low] + column - 1 - offset


class MendedText:
    """The text of one writer, its `places` in the input, and `notes` on its repairs.

    The reader takes the first text directly. Other texts are kept until the first one ends.
    """

    def __init__(self, *notes: str) -> None:
        self.notes = dict.fromkeys(notes)
        self.places = SourceMap()
        self.lines = 1  # number of the next line
        self.out: list[str] = []
        self.size = 0
        self.spool: IO[str] | None = None

    def emit(self, line: Line) -> None:
        """Add a line."""
        for index, number, column in line.origins:
            self.places.add(self.lines, index, number, column)
        self.lines += 1
        self.out.append(line.text)
        self.size += len(line.text) + 1

    def taken(self) -> str:
        """Remove and return the text since the last call."""
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
        """Yield the kept text in pieces that end with a line."""
        self.keep()
        spool = self.spool
        if spool is None:
            return
        spool.seek(0)
        while lines := spool.readlines(PIECE_CHARS):
            yield "".join(lines)
        spool.close()


def relocate(module: Module, places: SourceMap) -> None:
    """Convert every line and column in a module to its place in the input."""
    if not places.lines:  # the text is unchanged
        return
    read_skipped(module)  # while lines count in the mended text
    module.first_line = places.place(module.first_line)[0]
    module.problems = _relocated(module.problems, places)
    module.unread = {word: places.place(line)[0] for word, line in module.unread.items()}
    for computation in module.computations.values():  # the entry is one of them
        _relocate_computation(computation, places)


def _relocated(problems: Problems, places: SourceMap) -> Problems:
    relocated = Problems()
    relocated.left_out = problems.left_out
    for problem in problems:
        location = problem.location
        if location.line is not None:
            line, column = places.place(location.line, location.column or 1)
            location = location._replace(line=line, column=column if location.column is not None else None)
        relocated.add(problem._replace(location=location), problem.times)
    return relocated


def _relocate_computation(computation: Computation, places: SourceMap) -> None:
    scalars = [(row, places.place(line)[0]) for row, line in computation.scalar_rows()]
    computation.line = places.place(computation.line)[0]
    if scalars:
        computation.keep_scalars(scalars)
    for instruction in computation.instructions:
        instruction.line = places.place(instruction.line)[0]
    if computation.rows:
        computation.rows.lines = [places.place(line)[0] for line in computation.rows.lines]
