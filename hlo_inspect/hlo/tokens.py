"""Scanner of HLO text below the grammar: space, comments, strings, brackets, comma-separated attributes.

Each function takes a text and a position. Its time is linear in the text that it passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.lazy_pattern import lazy_pattern

Row = tuple[str, str, str, str]
"""An instruction: `"ROOT "` or `""`, name, head (`shape opcode`), tail (the text after the opening parenthesis)."""

SPACE = lazy_pattern(r"(?:[ \t\r\n]++|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+)*+")
NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"  # faster than with \w
"""The name of an instruction or a computation, without its mark."""

IDENTIFIER = lazy_pattern(NAME, re.ASCII)

# The start of an attribute, after its comma; `device_ids=` continues a mesh.
ATTRIBUTE = lazy_pattern(r"([A-Za-z_][\w.\-]*+)=", re.ASCII)

DICTIONARIES = frozenset({"backend_config", "frontend_attributes"})
"""Attributes with free text in braces, in which nested braces are balanced."""

# The start of an instruction, a computation or a module: such a line never continues the previous one.
FRESH_LINE = lazy_pattern(
    r"[ \t]*+(?:(?:ROOT[ \t]++)?(?:%[A-Za-z_][\w.\-]*+[ \t]*+|[A-Za-z_][\w.\-]*+[ \t]++)=[ \t][^\n]*\("
    r"|ENTRY[ \t]|HloModule[ \t]"
    r"|%?[A-Za-z_][\w.\-]*+[ \t](?:\([^\n]*\)[ \t]->[^\n]*)?\{[ \t]*\n)",
    re.ASCII,
)

_TOKEN = lazy_pattern(
    r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\\n]++|\\.)*+\'|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+|[()\[\]{}\n,]|["]|/\*',
    re.ASCII | re.DOTALL,
)
_WITHOUT_COMMAS = lazy_pattern(
    r'\[[^()\[\]{}"\'\n/]*+\]|\{[^()\[\]{}"\'\n/]*+\}|' + _TOKEN.pattern.replace("\\n,]", "\\n]"), re.ASCII | re.DOTALL
)
"""`_TOKEN` without commas; innermost brackets such as `[2,3]` and `{1,0}`, the most common, match whole."""

_STRING_OR_COMMENT = lazy_pattern(
    r'("(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\\n]++|\\.)*+\')|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+', re.DOTALL
)
_BRACE = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"|[{}\n]', re.DOTALL)
_CLOSES = {")": "(", "]": "[", "}": "{"}
_ATOM = lazy_pattern(r"[^\s,(){}\[\]\"'/]++|/(?![*/])|'[^'\n]*'|\"(?:[^\"\\]++|\\.)*+\"", re.DOTALL)


_REMARK = lazy_pattern(r"[ \t]*+\n\s*+[\[({][ \t]*+(?:\.\.\.|\u2026|[a-z]++[ \])}])", re.ASCII)
"""Pattern of a line about lines that were left out, such as `[truncated]`."""


class ScanError(ValueError):
    """Text that does not fit the grammar; `position` is the 0-based index of the fault."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class IncompleteError(ScanError):
    """The text ends inside an item: with more text it may be valid."""


def skip_space(text: str, position: int) -> int:
    """Return the index after white space and comments. Raise IncompleteError for an open comment."""
    match = SPACE.match(text, position)
    end = match.end() if match else position
    if text.startswith("/*", end):
        raise IncompleteError("a comment is not closed", end)
    return end


def without_comments(text: str) -> str:
    """Return `text` with its comments blanked, so that positions stay."""
    if "/*" not in text and "//" not in text:
        return text
    return _STRING_OR_COMMENT.sub(lambda match: match[1] or " " * len(match[0]), text)


def balanced_end(text: str, start: int, *, holds_lines: bool = False) -> int:
    """Return the index after the bracket that closes the bracket at `start`.

    A bracket may stay open over line ends, as in literals, but not past a line that starts an instruction. `holds_lines` lifts
    this limit, for a computation in place or a quoted module. Raise ScanError if it is not closed.
    """
    stack: list[tuple[str, int]] = []
    for match in _WITHOUT_COMMAS.finditer(text, start):
        token = match[0]
        if token in "([{":
            stack.append((token, match.start()))
        elif token[0] in "[{":
            if not stack:
                return match.end()
        elif token in ")]}":
            if stack[-1][0] != _CLOSES[token]:
                raise _mismatch(text, stack[-1], match)
            stack.pop()
            if not stack:
                return match.end()
        elif token in {'"', "/*"}:
            raise IncompleteError("a string is not closed" if token == '"' else "a comment is not closed", match.start())
        elif token[0] in "\n\"'" and "\n" in token and not holds_lines:
            _refuse_fresh_line(text, match, stack[-1])
    raise IncompleteError(f"{stack[-1][0]!r} is not closed", stack[-1][1])


def _mismatch(text: str, opened: tuple[str, int], closing: re.Match[str]) -> ScanError:
    """Return the fault of a mismatched pair.

    On different lines, the opening bracket is at fault: the closing bracket may be right.
    """
    bracket, position = opened
    if text.find("\n", position, closing.start()) >= 0:
        return ScanError(f"{bracket!r} is not closed", position)
    return ScanError(f"{closing[0]!r} does not close {bracket!r}", closing.start())


def _refuse_fresh_line(text: str, token: re.Match[str], opened: tuple[str, int]) -> None:
    line_end = text.find("\n", token.start())
    while token.start() <= line_end < token.end():
        if FRESH_LINE.match(text, line_end + 1):
            unclosed = opened if token[0] == "\n" else (token[0][:1], token.start())
            raise ScanError(f"{unclosed[0]!r} is not closed", unclosed[1])
        line_end = text.find("\n", line_end + 1)


def _dict_end(text: str, start: int) -> int:
    """Return the index after a `{…}` of JSON or MLIR; only braces outside double quotes count."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        token = match[0]
        if token == "\n":
            if FRESH_LINE.match(text, match.end()):
                break
            continue
        depth += (token == "{") - (token == "}")
        if depth == 0:
            return match.end()
    raise IncompleteError("'{' is not closed", start)


def value_end(text: str, start: int, *, name: str = "", holds_lines: bool = False, single: bool = False) -> int:
    """Return the index after the value of attribute `name` that starts at `start`.

    A value is a run of atoms and brackets without white space. After blanks a bracket can continue it (`mesh['a'=2] {'a'}`,
    `<=[8]`, `T(1,0)`). After a comma, anything but an attribute can (`calls=%a, %b`, `mesh[…], device_ids=(…) {…}`). A
    `single` value ends with the run.
    """
    begin = skip_space(text, start)
    if name in DICTIONARIES and text.startswith("{", begin):
        return _dict_end(text, begin)
    position = _chunk_end(text, begin, holds_lines=holds_lines)
    if name == "literal":  # a shape, then a value, which may be a number
        position = _chunk_end(text, skip_space(text, position), holds_lines=holds_lines)
    while not single:
        after = skip_space(text, position)
        if text.startswith(("{", "[", "(", "<=", "T("), after) and not _REMARK.match(text, position):
            position = _chunk_end(text, after, holds_lines=holds_lines)
            continue
        if text[after : after + 1] != ",":
            return position
        following = skip_space(text, after + 1)
        attribute = ATTRIBUTE.match(text, following)
        if attribute is not None and attribute[1] != "device_ids":
            return position
        line_end = -1 if attribute else text.rfind("\n", after, following)
        following = skip_space(text, attribute.end()) if attribute else following
        if line_end >= 0 and (text.startswith("}", following) or FRESH_LINE.match(text, line_end + 1)):
            return position  # the comma ends its line, and continues nothing
        position = _chunk_end(text, following, holds_lines=holds_lines)
    return position


def _chunk_end(text: str, start: int, *, holds_lines: bool) -> int:
    position = start
    while position < len(text):
        if text[position] in "([{":
            position = balanced_end(text, position, holds_lines=holds_lines)
            continue
        atom = _ATOM.match(text, position)
        if atom is None:
            break
        if text[position] == '"' and not holds_lines:
            _refuse_fresh_line(text, atom, ('"', position))
        position = atom.end()
    if position == start:
        raise (IncompleteError if start >= len(text) else ScanError)("expected a value", start)
    return position


def split_items(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the extents between top-level commas of `text[start:end]`; an empty text has no items."""
    end = len(text) if end is None else end
    depth = 0
    item = start
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "," and depth == 0:
            yield item, match.start()
            item = match.end()
    if text[item:end].strip() or item > start:
        yield item, end


COMMON_VALUES = (
    r"%?(?:[\w.\-]++|\0\d++\0)",  # a word, or a hole of `attribute_forms`
    r'"(?:[^"\\\n]++|\\.)*+"',
    r'\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{[^{}"\n]*+\})*+\}',
    r"\[[\d,]++\]<=\[[\d,]++\](?:T\([\d,]++\))?",
    r"mesh\[['\w=,]++\](?:, device_ids=\(\[[\d,]++\](?:T\([\d,]++\))?\))? \{['\w,]*+\}",
)
_COMMON = rf", ([A-Za-z_][\w.\-]*+)=({'|'.join(COMMON_VALUES)})(?=, (?!device_ids=)[a-z]"
COMMON_ATTRIBUTE = lazy_pattern(rf"{_COMMON}|$)", re.ASCII)
"""Pattern of comma, name and value of an attribute in the common forms.

Its value is a word, a string, braces nested at most once, or groups. `attributes` reads other forms by the grammar.
"""
COMMON_HEADER_ATTRIBUTE = lazy_pattern(rf"{_COMMON}|\n)", re.ASCII)
"""`COMMON_ATTRIBUTE` for a module's header, which ends with its line."""


def attributes(text: str, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield name and value text of each attribute of a tail `, name=value, name=value`.

    Raise ScanError if anything else follows.
    """
    position = start
    while True:
        common = COMMON_ATTRIBUTE.match(text, position)
        if common is not None:
            yield common[1], common[2]
            position = common.end()
            continue
        position = skip_space(text, position)
        if position == len(text):
            return
        if not text.startswith(",", position):
            raise ScanError("expected ','", position)
        position = skip_space(text, position + 1)
        match = ATTRIBUTE.match(text, position)
        if match is None:
            raise ScanError("expected an attribute", position)
        end = value_end(text, match.end(), name=match[1], holds_lines=True)
        yield match[1], text[skip_space(text, match.end()) : end]
        position = end


_ESCAPE = lazy_pattern(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|([0-7]{1,3})|(.))", re.DOTALL)
_MLIR_BYTE = lazy_pattern(r"(\\\\)|\\([0-9A-Fa-f]{2})", re.ASCII)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unquote(text: str) -> str:
    r"""Return the contents of a quoted string without C escapes; return a text without quotes as it is.

    XLA escapes each byte of UTF-8; bytes that are not UTF-8 become `\xNN`.
    """
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        return text
    body = text[1:-1]
    if "\\" not in body:
        return body
    if body.count("\\") == body.count("\\'"):  # as in the paths of JAX's arguments
        return body.replace("\\'", "'")
    return _ESCAPE.sub(_unescaped, body).encode(errors="surrogateescape").decode(errors="backslashreplace")


def unquote_mlir(text: str) -> str:
    r"""Return the contents of a string as MLIR prints it: `\22` is a byte in two hexadecimal digits."""
    return unquote(_MLIR_BYTE.sub(lambda match: match[1] or f"\\x{match[2]}", text))


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, unicode, octal, char = match.groups()
    if char:
        return _SIMPLE_ESCAPES.get(char, char)
    if unicode:
        code = int(unicode, 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)  # half of a surrogate pair is no character
    byte = int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF
    return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
