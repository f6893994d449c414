"""The fast path: the lines that XLA's printers write, many at a time.

A line is matched whole, strings included, so that brackets and equal signs inside of strings cannot mislead; whoever uses
the rows compares their number with the number of lines. What does not match goes to the grammar.
"""

from __future__ import annotations

import re

Row = tuple[str, str, str, str]
"""An instruction: `"ROOT "` or nothing, name, head (`shape opcode`), and the rest from behind the opening parenthesis."""

_SHAPE = r"(?:\((?:[^)\n]++|\)(?! ))*+\)|[a-z][^ \n]*+)"
_TAIL = r'[^"\n]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^"\n]*+)*+'
_NAME = r"[A-Za-z_][\w.\-]*+"

ROW = re.compile(rf"\n[ \t]*+(ROOT )?%?({_NAME}) = ({_SHAPE} [a-z][a-z0-9\-]*+)\(({_TAIL})(?=\n)", re.ASCII)
"""One instruction a line; starts at the line end before it."""

COMPUTATION = re.compile(rf"(ENTRY )?+%?({_NAME}) (?:\([^\n]*\) -> [^\n]* )?\{{[ \t]*\n", re.ASCII)
CLOSER = re.compile(r'\}[ \t]*+(?:, execution_thread="[^"\n]*+")?[ \t]*+(?://[^\n]*+)?\n(?!\s*+,)')
ROOT_OPCODE = re.compile(rf"ROOT %?{_NAME} = {_SHAPE} ([a-z][a-z0-9\-]*+)\(", re.ASCII)
SMALL = re.compile(
    rf"\n%?({_NAME}) [^\n]*\{{\n"
    rf"((?:  (?!ROOT )[^\n]*+\n){{0,255}}+  ROOT %?{_NAME} = ({_SHAPE}) ([a-z][a-z0-9\-]*+)\([^\n]*\n)",
    re.ASCII,
)
"""Name, lines, and the root's shape and opcode of a computation of at most 256 lines, starting at the line end before it."""

CALLS = re.compile(r", calls=%?([A-Za-z_][\w.\-]*+)", re.ASCII)

_OPEN_COMMENT = re.compile(r"/\*(?:[^*\n]++|\*(?!/))*+\n")
_STRING = re.compile(r'(")(?:[^"\\\n]++|\\.)*+"|/\*(?:[^*\n]++|\*(?!/))*+\*/|//[^\n]*+')
_DEFINITION = re.compile(r"(?:^|[\s)}\]])%?[A-Za-z_][\w.\-]*+\s+=\s|%[A-Za-z_][\w.\-]*+\s*=", re.ASCII)
_NEXT = re.compile(r"\s*+(?!T\()[%}A-Za-z_]", re.ASCII)  # what does not continue the line before it


def find_rows(text: str, start: int, end: int, *, balanced: bool) -> list[Row] | None:
    """The rows of the whole lines in `text[start:end]`, `None` where one of them is not as printers write it.

    `text[start - 1]` has to be a line end. `balanced` asks for the brackets to be closed too, which who skips lines can spare.
    """
    rows: list[Row] = ROW.findall(text, start - 1, end)
    if len(rows) != text.count("\n", start, end) or text.count(" = ", start, end) != len(rows):
        return None
    if text.find("{\n", start, end) >= 0:  # a computation in place, whose lines are rows too
        return None
    return rows if not balanced or is_balanced(text, start, end) else None


def is_balanced(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` opens as many brackets as it closes, and no comment that goes on behind its line."""
    for opening, closing in ("()", "{}", "[]"):
        if text.count(opening, start, end) != text.count(closing, start, end):
            return False
    return text.find("/*", start, end) < 0 or _OPEN_COMMENT.search(text, start, end) is None


def is_whole(tail: str) -> bool:
    """Whether a row's tail closes the operands and every other bracket, those in strings aside."""
    return _closes(tail) or _closes(_STRING.sub(r"\1", tail))


def _closes(tail: str) -> bool:
    return tail.count("(") + 1 == tail.count(")") and tail.count("{") == tail.count("}") and tail.count("[") == tail.count("]")


def find_row(text: str, start: int) -> tuple[Row, int] | None:
    """The row of the line that starts at `start` and the index of its line end; `None` for a line that does not hold one
    instruction, or not all of it.
    """
    match = ROW.match(text, start - 1)
    if match is None:
        return None
    plain = _STRING.sub(r"\1", match[4])
    if not _closes(plain) or "/*" in plain or _DEFINITION.search(plain) or plain.rstrip().endswith((",", "=")):
        return None
    if not _NEXT.match(text, match.end()):
        return None
    return (match[1] or "", match[2], match[3], match[4]), match.end()
