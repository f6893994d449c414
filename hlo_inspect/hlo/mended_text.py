"""The text of one writer as it is mended, line by line, and where each of its lines stands in the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, cast

from hlo_inspect.hlo.mended_line import Line
from hlo_inspect.hlo.places import Places

PIECE_CHARS = 1 << 18
SPOOLED_CHARS = 1 << 22
"""The text of a rank is kept in memory so far while that of another is read, and in a file from there on."""


class MendedText:
    """The text of one writer, and where it comes from. All but the first are kept until that one is read."""

    def __init__(self) -> None:
        self.sample = ""  # what one of its lines began with
        self.places = Places()
        self.lines = 1  # number of the next one
        self.out: list[str] = []
        self.size = 0
        self.spool: IO[str] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of the text of another writer than the first."""
        return (f'of several writers these are the lines that begin as "{self.sample}"',)

    def emit(self, line: Line, rest: list[tuple[int, int, int]]) -> None:
        """Adds a line; `rest` are offset, line and column of what was joined to it."""
        for offset, column in line.columns:
            self.places.add(self.lines, offset, line.number, column)
        for offset, number, column in rest:
            self.places.add(self.lines, offset, number, column)
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
