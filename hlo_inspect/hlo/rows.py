"""The fast path: the lines that XLA's printers write, many at a time.

One expression finds the rows of many lines; that each line is one row, and nothing but that, is counted over all of them
together, brackets and equal signs inside of strings aside. What does not come out right goes to the grammar.
"""

from __future__ import annotations

import re

Row = tuple[str, str, str, str]
"""An instruction: `"ROOT "` or nothing, name, head (`shape opcode`), and the rest from behind the opening parenthesis."""

_SHAPE = r"(?:\((?:[^)\n]++|\)(?! ))*+\)|[a-z][^ \n]*+)"
_NAME = r"[A-Za-z_][\w.\-]*+"
_HEAD = rf"{_SHAPE} [a-z][a-z0-9\-]*+"

ROW = re.compile(rf"\n[ \t]*+(ROOT )?%?({_NAME}) = ({_HEAD})\(([^\n]*+)", re.ASCII)
"""One instruction a line; starts at the line end before it."""

ITEM = re.compile(
    rf"\n(?:  (ROOT )?+%?({_NAME}) = ({_HEAD})\(|"
    r'\}(?:, execution_thread="[^"\n]*+")?+\n\n)([^\n]*+)',
    re.ASCII,
)
"""The same for an indented instruction, or the last line of a computation with the first one of the next, which is its last
part and has nothing before it.
"""

START = re.compile(rf"(ENTRY )?+%?({_NAME}) (?:\{{|\([^\n]*\) -> [^\n]* \{{)", re.ASCII)
"""The first line of a computation as printers write it: `"ENTRY "` or nothing, and its name."""

COMPUTATION = re.compile(rf"(ENTRY )?+%?({_NAME}) (?:\([^\n]*\) -> [^\n]* )?\{{[ \t]*\n", re.ASCII)
CLOSER = re.compile(r'\}[ \t]*+(?:, execution_thread="[^"\n]*+")?[ \t]*+(?://[^\n]*+)?\n(?!\s*+,)')
ROOT_OPCODE = re.compile(rf"ROOT %?{_NAME} = {_SHAPE} ([a-z][a-z0-9\-]*+)\(", re.ASCII)
_FIRST_LINE = rf"(?!ENTRY )%?{_NAME} (?:\([^\n]*)?\{{\n"
FIRST_LINE = re.compile(_FIRST_LINE, re.ASCII)
"""The first line of a computation that is not the entry."""

_SCALAR_ROOT = rf"  ROOT %?{_NAME} = (?=\(*+[a-z]\w*+\[\])({_SHAPE}) ([a-z][a-z0-9\-]*+)\([^\n]*+\n"
BLOCK = re.compile(
    rf"%?({_NAME})[^\n]*+\n(?:  (?!ROOT )[^\n]*+\n)*+(?:{_SCALAR_ROOT})?+(?:  [^\n]*+\n)*+"
    rf'\}}(?:, execution_thread="[^"\n]*+")?+\n++(?={_FIRST_LINE})',
    re.ASCII,
)
"""What begins with a `FIRST_LINE` and ends before another one, as printers write it: the computation's name and, where its root
is a scalar or a tuple that starts with one, shape and opcode of that.
"""

DEFINITION = re.compile(rf"\n[ \t]*+(?:ROOT )?%?({_NAME}) = ({_HEAD})\(", re.ASCII)
"""Name and head of an instruction; starts at the line end before it."""

CALLS = re.compile(r", calls=%?([A-Za-z_][\w.\-]*+)", re.ASCII)

_OPEN_COMMENT = re.compile(r"/\*(?:[^*\n]++|\*(?!/))*+\n")
_STRING = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|/\*(?:[^*\n]++|\*(?!/))*+\*/|//[^\n]*+')
_ESCAPED = re.compile(r'\\"')
_BACKSLASHES = re.compile(r"\\\\")
_DEFINITIONS = (re.compile(r"=(?<=\s=)\s"), re.compile(r"%[A-Za-z_][\w.\-]*+\s*=", re.ASCII))
_NO_MARKS = bytes(set(range(256)) - set(b'"\n(){}[]*'))
_NEXT = re.compile(r"\s*+(?!T\()[%}A-Za-z_]", re.ASCII)  # what does not continue the line before it


def find_rows(text: str, start: int, end: int) -> list[Row] | None:
    """The rows of the whole lines in `text[start:end]`, `None` where one of them is not as printers write it.

    `text[start - 1]` has to be a line end.
    """
    rows: list[Row] = ROW.findall(text, start - 1, end)
    if len(rows) != text.count(" = ", start, end):
        return None
    marks = find_marks(text, start, end)
    if marks is None or len(rows) != marks.count(b"\n") or b"{\n" in marks:  # a computation in place, whose lines are rows too
        return None
    return rows


def pick_rows(text: str, start: int, end: int, lines: list[int]) -> list[tuple[int, Row]] | None:
    """The rows of the lines of `text[start:end]` that begin at `lines`, with these; `None` where one of them is not as printers
    write it, or stands in a string or a comment that goes over lines.
    """
    found: list[tuple[int, Row]] = []
    if not lines:
        return found
    has_backslashes = _BACKSLASHES.search(text, start, end) is not None  # only reading the strings tells what they escape
    if (has_backslashes and find_marks(text, start, end) is None) or _OPEN_COMMENT.search(text, start, end):
        return None
    counted = start
    for line in lines:
        row = find_row(text, line)
        if row is None or (not has_backslashes and _quotes(text, counted, line) % 2):
            return None
        found.append((line, row[0]))
        counted = line
    return found


def _quotes(text: str, start: int, end: int) -> int:
    """How many quotes open or close a string, where no backslash is escaped."""
    quotes = text.count('"', start, end)
    return quotes if text.find("\\", start, end) < 0 else quotes - len(_ESCAPED.findall(text, start, end))


def find_marks(text: str, start: int, end: int) -> bytes | None:
    """The brackets, stars and line ends of `text[start:end]` that do not stand in strings.

    `None` where a string or a comment goes on behind its line, or where a kind of bracket closes not as often as it opens.
    """
    part = text[start:end]
    if "\\" in part:
        part = (part.replace("\\\\", "") if "\\\\" in part else part).replace('\\"', "")
    between = part.encode(errors="replace").translate(None, _NO_MARKS).split(b'"')
    if len(between) % 2 == 0 or b"\n" in b"".join(between[1::2]):
        return None
    marks = b"".join(between[::2])
    for opening, closing in (b"()", b"{}", b"[]"):
        if marks.count(opening) != marks.count(closing):
            return None
    return None if b"*" in marks and _OPEN_COMMENT.search(part) else marks


def _closes(tail: str) -> bool:
    return tail.count("(") + 1 == tail.count(")") and tail.count("{") == tail.count("}") and tail.count("[") == tail.count("]")


def _is_plain(text: str, start: int, end: int) -> bool:
    """Whether the row whose head starts at `start` is whole, and alone on its line up to `end`, at the cost of counting."""
    if text.find(" = ", start, end) >= 0 or text[end - 1] in ",= \t" or _DEFINITIONS[1].search(text, start, end):
        return False
    return find_marks(text, start, end + 1) is not None


def find_row(text: str, start: int) -> tuple[Row, int] | None:
    """The row of the line that starts at `start` and the index of its line end; `None` for a line that does not hold one
    instruction, or not all of it.
    """
    match = ROW.match(text, start - 1)
    if match is None:
        return None
    if not _is_plain(text, match.start(3), match.end()):
        rest = _STRING.sub("s", match[4])
        if '"' in rest or "/*" in rest or rest.rstrip().endswith((",", "=")):
            return None
        if not _closes(rest) or any(definition.search(rest) for definition in _DEFINITIONS):
            return None
    if not _NEXT.match(text, match.end()):
        return None
    return (match[1] or "", match[2], match[3], match[4]), match.end()
