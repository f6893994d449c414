"""A position in HLO text that moves token by token, for what `--strict` looks at."""

from __future__ import annotations

import re
from typing import NoReturn

from hlo_inspect.hlo import scan

SYNTAX = "HI001"
ATTRIBUTE = "HI011"  # unknown to the opcode, missing, twice, or of a value of the wrong kind
OPERANDS = "HI012"  # too many or few, or of other shapes than printed
SHAPE = "HI013"  # a shape or layout that makes no sense, or is missing
LITERAL = "HI014"  # a constant that does not fit its shape
DEVICES = "HI015"  # replica groups and shardings
INTERFACE = "HI016"  # parameters and results of a computation
ASYNC = "HI017"  # asynchronous operations that do not belong together

NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
WORD = re.compile(r"[A-Za-z_][\w.\-]*+", re.ASCII)
INTEGER = re.compile(r"-?\d++(?![.\w])", re.ASCII)
STRING = re.compile(r"\"((?:[^\"\\]++|\\.)*+)\"|'((?:[^'\\]++|\\.)*+)'")  # lines may end in it, but not be escaped

_HEX = "[0-9A-Fa-f]"
_ESCAPE = re.compile(
    rf"\\(?:[nrtabfv\\'\"?]|x0*{_HEX}{{1,2}}(?!{_HEX})|[0-3][0-7]{{2}}|[0-7]{{1,2}}(?![0-7])"
    rf"|(?:u|U0000)(?![dD][89A-Fa-f]){_HEX}{{4}}|U00(?:0[1-9A-Fa-f]|10){_HEX}{{4}})"
)
"""The escapes that `absl::CUnescape` takes: a byte is no larger than 255, and half of a pair is no character."""
_ATTRIBUTE_NAME = re.compile(r"([A-Za-z_][\w.\-]*+)=", re.ASCII)
_MIN_INT64, _MAX_UINT64 = -(2**63), 2**64 - 1
_MAX_DIGITS = 20


class RefusedError(scan.ScanError):
    """Text that XLA's parser refuses; `code` is the rule that a finding on it has."""

    def __init__(self, code: str, message: str, position: int) -> None:
        super().__init__(message, position)
        self.code = code


class Tokens:
    """The tokens of `text[position:end]`. `position` is always at one, past white space and comments."""

    def __init__(self, text: str, position: int, end: int) -> None:
        self.text = text
        self.end = end
        self.position = 0
        self.move(position)

    def move(self, position: int) -> None:
        """Goes to the first token at `position` or behind it."""
        self.position = min(scan.skip_space(self.text, position), self.end)

    def refuse(self, code: str, message: str, position: int | None = None) -> NoReturn:
        raise RefusedError(code, message, self.position if position is None else position)

    def at(self, *starts: str) -> bool:
        return self.text.startswith(starts, self.position, self.end)

    def at_end(self) -> bool:
        return self.position >= self.end

    def take(self, mark: str) -> bool:
        """Passes a punctuation mark, if it is there."""
        if not self.text.startswith(mark, self.position, self.end):
            return False
        self.move(self.position + len(mark))
        return True

    def expect(self, mark: str, code: str = SYNTAX, what: str = "") -> None:
        if not self.take(mark):
            self.refuse(code, f"expected {mark!r}{what}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Passes what `pattern` matches here, if it does."""
        match = pattern.match(self.text, self.position, self.end)
        if match is not None:
            self.move(match.end())
        return match

    def word(self, code: str, what: str) -> str:
        word = self.match(WORD)
        return word[0] if word else self.refuse(code, f"expected {what}")

    def name(self, code: str, what: str) -> str:
        """The name of an instruction or computation, with `%` in front of it or not."""
        name = self.match(NAME)
        return name[1] if name else self.refuse(code, f"expected {what}")

    def attribute_name(self, code: str, what: str = "an attribute") -> str:
        name = self.match(_ATTRIBUTE_NAME)
        return name[1] if name else self.refuse(code, f"expected {what}")

    def integer(self, code: str) -> int:
        """An integer of 64 bits, signed or not."""
        number = INTEGER.match(self.text, self.position, self.end)
        if number is None or len(number[0]) > _MAX_DIGITS:
            self.refuse(code, "expected an integer")
        value = int(number[0])
        if not _MIN_INT64 <= value <= _MAX_UINT64:
            self.refuse(code, "expected an integer of 64 bits")
        self.move(number.end())
        return value

    def string(self, code: str) -> str:
        """The contents of a quoted string, escapes as they stand; one that C does not have is refused."""
        quoted = STRING.match(self.text, self.position, self.end)
        if quoted is None:
            self.refuse(code, "expected a string")
        body = quoted[1] if quoted[1] is not None else quoted[2]
        if "\\" in body and "\\" in _ESCAPE.sub("", body):
            self.refuse(code, "the string has an escape that C does not have")
        self.move(quoted.end())
        return body

    def list(self, opening: str, closing: str, code: str) -> _Items:
        """To be iterated: each step stands at an item of a list that is separated by commas."""
        return _Items(self, opening, closing, code)


class _Items:
    """`for _ in tokens.list("{", "}", code): tokens.integer(code)` reads `{1,2}`; an empty list has no steps."""

    def __init__(self, tokens: Tokens, opening: str, closing: str, code: str) -> None:
        self._tokens, self._opening, self._closing, self._code = tokens, opening, closing, code
        self._count = 0

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> int:
        tokens = self._tokens
        if self._count == 0:
            tokens.expect(self._opening, self._code)
            if tokens.take(self._closing):
                raise StopIteration
        elif not tokens.take(","):
            tokens.expect(self._closing, self._code)
            raise StopIteration
        self._count += 1
        return self._count - 1
