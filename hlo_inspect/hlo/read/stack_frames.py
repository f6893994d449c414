"""The stack-frame tables that may follow the header of a module: where in the program an instruction comes from."""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.hlo.read import tokens
from hlo_inspect.lazy_pattern import lazy_pattern

TABLE = lazy_pattern(
    r"[ \t]*+(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*\n(?:\s*+\d+[ \t][^\n]*\n)*+", re.ASCII
)
"""A table; blank lines may stand between its rows, as between all lines of some mails."""

_ROW = lazy_pattern(r"^[ \t]*+\d+[ \t]+(.*)$", re.ASCII | re.MULTILINE)
_FIELD = lazy_pattern(r"(\w+)=(\d{1,18})", re.ASCII)

MAX_FRAMES = 32
"""JAX writes ten; of more the innermost are kept."""


class SourceLine(NamedTuple):
    """A line of the program that was compiled."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class StackFrames:
    """The four tables that metadata points into by `stack_frame_id`. Rows count from 1; they are parsed when first asked
    for. `user_lines` is where an analysis notes which line of a stack it takes for the user's, by frame.
    """

    def __init__(self) -> None:
        self.user_lines: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[str]] = {}
        self._stacks: dict[int, tuple[SourceLine, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the text has none of the tables."""
        return not self._texts

    @property
    def tables(self) -> list[str]:
        """The texts of the tables."""
        return list(self._texts.values())

    def add(self, table: str) -> None:
        name = table.split(None, 1)[0]
        self._texts[name] = table

    def stack(self, frame_id: int) -> tuple[SourceLine, ...]:
        """The lines of a frame and of those that it was called from, innermost first; without those that the tables do not
        have.
        """
        missing: list[int] = []
        while frame_id not in self._stacks and self._row("StackFrames", frame_id) and len(missing) < MAX_FRAMES:
            missing.append(frame_id)
            caller = self._cells("StackFrames", frame_id).get("parent_frame_id", 0) - 1  # printed is one more than the number
            frame_id = caller if caller < frame_id else 0  # callers are numbered first
        stack = self._stacks.get(frame_id, ())
        for one in reversed(missing):
            line = self._source_line(one)
            stack = self._stacks[one] = (line, *stack[: MAX_FRAMES - 1]) if line is not None else stack
        return stack

    def _source_line(self, frame_id: int) -> SourceLine | None:
        location = self._cells("StackFrames", frame_id).get("file_location_id", 0)
        fields = self._cells("FileLocations", location)
        file = self._row("FileNames", fields.get("file_name_id", 0))
        function = self._row("FunctionNames", fields.get("function_name_id", 0))
        return SourceLine(tokens.unquote(file), fields.get("line", 0), tokens.unquote(function)) if file else None

    def _cells(self, table: str, number: int) -> dict[str, int]:
        return {name: int(value) for name, value in _FIELD.findall(self._row(table, number))}

    def _row(self, table: str, number: int) -> str:
        """A row of a table behind its number; empty where there is none."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = _ROW.findall(self._texts.get(table, ""))
        return rows[number - 1] if 0 < number <= len(rows) else ""
