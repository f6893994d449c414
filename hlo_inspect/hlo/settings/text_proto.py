"""Protocol buffers as text, the form of the files that XLA writes beside a module.

A field is `name: value`, `name { … }` or `name: [value, …]`; `#` begins a comment. Values stay as the text has them, strings
without quotes, because no schema says their types. https://protobuf.dev/reference/protobuf/textformat-spec/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hlo_inspect.errors import InputError, Location, reading
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_BYTES = 1 << 24
"""Largest file that is read; XLA's files of one compile have some 13 kB to 100 kB."""
MAX_DEPTH = 100
"""Deepest message that is read, as protobuf's own parser does by default."""

_SPACE = lazy_pattern(r"(?:[ \t\r\n,;]++|#[^\n]*+)*+")
_NAME = lazy_pattern(r"\w++|\[[\w./\-]++\]", re.ASCII)
"""A name, the number of a field that the printer does not know, or the name of an extension."""
_COLON = lazy_pattern(r"[ \t\r\n]*+:?+[ \t\r\n]*+")
_VALUE = lazy_pattern(r"""[^\s"'{}<>\[\],;:#]++""")
_STRING = lazy_pattern(r""""((?:[^"\\\n]++|\\[^\n])*+)"|'((?:[^'\\\n]++|\\[^\n])*+)'""")
_RAW_STRING = lazy_pattern(r'"([^\n]*)"[ \t\r]*+(?=\n)')
_CLOSING = {"{": "}", "<": ">"}


class Message:
    """The fields of a message in the order of the text: names, and values or messages."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: list[tuple[str, str | Message]] = []

    def values(self, name: str) -> list[str]:
        """Return the values of a field that has no fields of its own."""
        return [value for field, value in self.fields if field == name and isinstance(value, str)]

    def messages(self, name: str) -> list[Message]:
        return [value for field, value in self.fields if field == name and isinstance(value, Message)]

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yield a name and a value for each field without fields of its own. A map's entry has its key as last name.

        Names of nested fields are joined with dots. The depth is at most `MAX_DEPTH`.
        """
        for name, value in self.fields:
            if isinstance(value, str):
                yield name, value
                continue
            keys = value.values("key")
            is_map = len(keys) == 1 and {field for field, _ in value.fields} <= {"key", "value"}
            for inner, text in value.entries():
                if not is_map:
                    yield f"{name}.{inner}", text
                elif inner != "key":
                    yield f"{name}.{keys[0]}{inner.removeprefix('value')}", text


def joined_entries(message: Message) -> dict[str, str]:
    """Return the values of a message by name. Those of a repeated name are joined with commas."""
    values: dict[str, list[str]] = {}
    for name, value in message.entries():
        values.setdefault(name, []).append(value)
    return {name: ", ".join(texts) for name, texts in values.items()}


def read_file(path: Path, limit: int = MAX_BYTES) -> str:
    """Return the text of a file. Raise InputError if it cannot be read or has more than `limit` bytes."""
    with reading(str(path)), path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"is larger than {limit >> 20} MiB", Location(str(path)))
    return data.decode(errors="backslashreplace").replace("\r\n", "\n")


def parse_text_proto(text: str, path: str) -> Message:
    """Parse a text proto. Raise InputError with line and column if it is malformed or not complete."""
    message, fault = _TextProtoParser(text, path).parse()
    if fault is not None:
        raise fault
    return message


def parse_lines(text: str, path: str) -> tuple[Message, InputError | None]:
    """Parse lines of unescaped strings, as those of `.debug_options`. Skip unreadable lines; return the error of the first."""
    return _TextProtoParser(text, path, by_line=True).parse()


class _FaultError(ValueError):
    """Text that does not fit the grammar at a position."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class _TextProtoParser:
    """Parser of a text. `by_line`: an outer string ends at the last quote of its line, and a fault ends with its line."""

    def __init__(self, text: str, path: str, *, by_line: bool = False) -> None:
        self._text = text
        self._path = path
        self._by_line = by_line
        self._position = 0
        self._open: list[tuple[Message, str, int]] = []

    def parse(self) -> tuple[Message, InputError | None]:
        """Return the message and the first fault."""
        whole, outer = self._text, Message()
        faults: list[_FaultError] = []
        self._text = whole[: whole.rfind("\n") + 1]
        while not faults or (self._by_line and self._next_line()):
            try:
                self._read_fields(outer)
                break
            except _FaultError as fault:
                faults.append(fault)
        if not whole.strip():
            faults = [_FaultError("is empty", 0)]
        elif not faults and not whole.endswith("\n"):  # XLA ends each file with a line end
            faults = [_FaultError("ends inside a line: the file is not complete", len(whole))]
        if not faults:
            return outer, None
        position = faults[0].position
        place = Location(self._path, whole.count("\n", 0, position) + 1, position - whole.rfind("\n", 0, position))
        return outer, InputError(faults[0].message, place)

    def _next_line(self) -> bool:
        """Move to the next line; return False at the end of the text."""
        self._open.clear()
        line_end = self._text.find("\n", self._position)
        self._position = line_end + 1
        return line_end >= 0

    def _read_fields(self, outer: Message) -> None:
        """Read fields up to the end of the text. Raise _FaultError at the first fault."""
        text = self._text
        while True:
            self._skip(_SPACE)
            message = self._open[-1][0] if self._open else outer
            if self._position == len(text):
                if self._open:
                    first_line = text.count("\n", 0, self._open[0][2]) + 1
                    self._position = len(text)
                    raise self._error(f"ends inside the message of line {first_line}: the file is not complete")
                return
            if self._open and text[self._position] == self._open[-1][1]:
                self._open.pop()
                self._position += 1
                continue
            name = _NAME.match(text, self._position)
            if name is None:
                raise self._error("expected the name of a field")
            self._position = name.end()
            self._read_value(message, name[0])

    def _read_value(self, message: Message, name: str) -> None:
        """Read what follows the name of a field; a message stays open."""
        text = self._text
        has_colon = ":" in self._skip(_COLON)
        start = text[self._position : self._position + 1]
        if start in _CLOSING:
            if len(self._open) >= MAX_DEPTH:
                raise self._error(f"messages are nested more than {MAX_DEPTH} deep")
            inner = Message()
            message.fields.append((name, inner))
            self._open.append((inner, _CLOSING[start], self._position))
            self._position += 1
        elif not has_colon:
            raise self._error(f"expected `:` or `{{` after {name}")
        elif start == "[":
            self._read_list(message, name)
        else:
            message.fields.append((name, self._scalar()))

    def _read_list(self, message: Message, name: str) -> None:
        self._position += 1
        self._skip(_SPACE)
        while not self._text.startswith("]", self._position):
            message.fields.append((name, self._scalar()))
            self._skip(_SPACE)
        self._position += 1

    def _scalar(self) -> str:
        """Return a number, a word or a string without its quotes. Adjacent strings are one."""
        if self._text[self._position : self._position + 1] not in ('"', "'"):
            value = _VALUE.match(self._text, self._position)
            if value is None:
                raise self._error("expected a value")
            self._position = value.end()
            return value[0]
        if self._by_line and not self._open:
            return self._string(_RAW_STRING)
        parts = [self._string(_STRING)]
        self._skip(_SPACE)
        while self._text[self._position : self._position + 1] in ('"', "'"):
            parts.append(self._string(_STRING))
            self._skip(_SPACE)
        return "".join(parts)

    def _string(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise self._error("a string is not closed")
        self._position = match.end()
        return match[1] if match[1] is not None else match[2]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            return ""
        self._position = match.end()
        return match[0]

    def _error(self, message: str) -> _FaultError:
        return _FaultError(message, self._position)
