"""The grammar of a module, one item at a time: for every layout of the text that `fast_path` does not know.

Each function takes a text and a position and returns what it found with the index after it. `ScanError` says what is wrong and
where; `IncompleteError` that the text ends too early.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import operands_end
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

_OPCODE = lazy_pattern(r"[a-z][a-z0-9\-]*+", re.ASCII)
_LAYOUT_START = lazy_pattern(r"[0-9:}]", re.ASCII)
_THREAD = lazy_pattern(
    r"\s*+,\s*+execution_thread\s*+=\s*+(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+')(?!\s*+,)", re.ASCII
)
_FIRST_LINE = lazy_pattern(r"(ENTRY )?+%?([A-Za-z_][\w.\-]*+) (?:\([^\n]*\) -> [^\n]* )?\{(?=[ \t]*\n)", re.ASCII)
"""The first line of a computation as printers write it."""


class ParsedInstruction(NamedTuple):
    """An instruction and the index after it. `fault` is what is wrong with its attributes: these are left out from there on."""

    row: Row
    end: int
    fault: tokens.ScanError | None


def parse_instruction(text: str, start: int, *, is_final: bool = True) -> ParsedInstruction:
    """The instruction at `start`: `[ROOT] name = [shape] opcode(…)` and its attributes.

    `IncompleteError` where its attributes may go on behind the text, unless that is final.
    """
    is_root, name, equals = _marked_name(text, start, "ROOT", "expected an instruction")
    if not text.startswith("=", equals) or text.startswith("==", equals):
        raise _expected("expected an instruction", text, equals, start)
    shape_start, shape_end, opcode, bracket = parse_head(text, equals + 1)
    close = tokens.balanced_end(text, bracket)
    end, fault = _parse_attributes(text, close, is_final=is_final)
    row = ("ROOT " if is_root else "", name, f"{text[shape_start:shape_end]} {opcode}", text[bracket + 1 : end])
    return ParsedInstruction(row, end, fault)


def parse_head(text: str, position: int) -> tuple[int, int, str, int]:
    """`[shape] opcode(`: where the shape starts and ends, the opcode, and the index of the parenthesis."""
    shape_start = tokens.skip_space(text, position)
    shape_end = _shape_end(text, shape_start)
    opcode_start = tokens.skip_space(text, shape_end)
    opcode = _OPCODE.match(text, opcode_start)
    bracket = tokens.skip_space(text, opcode.end() if opcode else opcode_start)
    if opcode is None or not text.startswith("(", bracket):
        raise _expected("expected an opcode and '('", text, bracket, opcode_start)
    return shape_start, shape_end, opcode[0], bracket


def _marked_name(text: str, start: int, mark: str, message: str, nameless: tuple[str, ...] = ()) -> tuple[bool, str, int]:
    """`[mark] [%]name`: whether it is marked, the name, and the index of what follows. In front of one of `nameless` the name
    may be missing.
    """
    position = start
    word = tokens.IDENTIFIER.match(text, position)
    marked = word is not None and word[0] == mark
    if word is not None and marked:
        position = tokens.skip_space(text, word.end())
    percent = text.startswith("%", position)
    name = tokens.IDENTIFIER.match(text, position + percent)
    if name is None and text.startswith(nameless, position + percent):
        return marked, "", position + percent
    if name is None:
        raise _expected(message, text, position, start)
    return marked, name[0], tokens.skip_space(text, name.end())


def _expected(message: str, text: str, reached: int, start: int) -> tokens.ScanError:
    """What is wrong at `start`, or not known before there is more text."""
    return (tokens.IncompleteError if reached >= len(text) else tokens.ScanError)(message, start)


def _shape_end(text: str, start: int) -> int:
    """The index after the shape at `start`; `start` itself where the shape is left out."""
    if text.startswith(("(", "b("), start):
        return tokens.balanced_end(text, text.index("(", start))
    dtype = tokens.IDENTIFIER.match(text, start)
    bracket = tokens.skip_space(text, dtype.end()) if dtype else start
    if dtype is not None and bracket >= len(text):
        raise tokens.IncompleteError("expected a shape", start)
    if dtype is None or not text.startswith("[", bracket):
        return start
    end = tokens.balanced_end(text, bracket)
    brace = tokens.skip_space(text, end)
    if not text.startswith("{", brace):
        return end
    inside = tokens.skip_space(text, brace + 1)
    if inside >= len(text):
        raise tokens.IncompleteError("'{' is not closed", brace)
    return tokens.balanced_end(text, brace) if _LAYOUT_START.match(text, inside) else end


def _parse_attributes(text: str, position: int, *, is_final: bool) -> tuple[int, tokens.ScanError | None]:
    """The index after the attributes that can be read, and what is wrong with the next one."""
    while True:
        comma = tokens.skip_space(text, position)
        if not text.startswith(",", comma):
            return position, None
        try:
            position = _attribute_end(text, comma)
        except tokens.ScanError as error:
            if isinstance(error, tokens.IncompleteError) and not is_final:
                raise
            return position, error


def _attribute_end(text: str, comma: int) -> int:
    """The index after the attribute behind a comma. Its name and its value are not what starts another instruction."""
    begin = tokens.skip_space(text, comma + 1)
    attribute = tokens.ATTRIBUTE.match(text, begin)
    if attribute is None or _starts_line(text, comma, begin):
        raise _expected("expected an attribute", text, begin, comma if text.find("\n", comma, begin) >= 0 else begin)
    value = tokens.skip_space(text, attribute.end())
    if text.startswith("}", value) or _starts_line(text, attribute.end(), value):
        raise tokens.ScanError("expected a value", attribute.end())
    holds_lines = attribute[1] in CALLEE_ATTRIBUTES
    return tokens.value_end(text, attribute.end(), name=attribute[1], holds_lines=holds_lines)


def _starts_line(text: str, start: int, end: int) -> bool:
    """Whether what is at `end`, in a line behind that of `start`, starts an instruction or a computation."""
    line_end = text.rfind("\n", start, end)
    return line_end >= 0 and not text[line_end + 1 : end].strip() and tokens.FRESH_LINE.match(text, line_end + 1) is not None


def parse_first_line(text: str, start: int) -> tuple[str, bool, int]:
    """The start of a computation, `[ENTRY] [name] [(parameters) -> shape] {`: its name, whether it is the entry, and the index
    of what follows.

    XLA leaves the name out where it is asked to print no ids.
    """
    printed = _FIRST_LINE.match(text, start)
    if printed is not None:
        return printed[2], bool(printed[1]), printed.end()
    is_entry, name, position = _marked_name(text, start, "ENTRY", "expected a computation", ("(", "{"))
    if text.startswith("(", position):
        arrow = tokens.skip_space(text, tokens.balanced_end(text, position))
        if not text.startswith("->", arrow):
            raise _expected("expected '->'", text, arrow, arrow)
        position = tokens.skip_space(text, _shape_end(text, tokens.skip_space(text, arrow + 2)))
    if not text.startswith("{", position):
        raise _expected("expected '{'", text, position, position)
    return name, is_entry, position + 1


def starts_computation(text: str, start: int) -> bool:
    """Whether the line at `start` is the first one of a computation as printers write it."""
    return _FIRST_LINE.match(text, start) is not None


def closer_end(text: str, start: int) -> int:
    """The index after the `}` at `start` and the thread that may follow it."""
    thread = _THREAD.match(text, start + 1)
    return thread.end() if thread else start + 1


MAX_DEPTH = 64
"""Instructions and computations that are in more others than this stay text: each is read once more for what it is in."""

_BODY = lazy_pattern(rf",\s*+(?:{'|'.join(CALLEE_ATTRIBUTES)})=\s*+\{{", re.ASCII)
_LIST = lazy_pattern(r"\{|%?[\w.\-]++\s*+,", re.ASCII)
_ATTRIBUTE_NAME = lazy_pattern(r",\s*+([a-z_]++)\s*+=\s*+\Z", re.ASCII)
_OPERATION = lazy_pattern(r"(?<![\w.\-%])[a-z][a-z0-9\-]*+\s*+\(", re.ASCII)


class NestedComputation(NamedTuple):
    """A computation in place: its name, the text between its braces, the line where that starts, and where its braces start and
    end in the tail of its caller.
    """

    name: str
    text: str
    line: int
    start: int
    end: int


def nested_computations(row: Row, line: int) -> Iterator[NestedComputation]:
    """The computations in place among the attributes of an instruction at `line`."""
    tail = row[3]
    if _BODY.search(tail) is None:
        return
    position, counted = operands_end(tail) + 1, 0
    for name, value in tokens.attributes(tail, position):
        start = tail.index(value, position)
        position = start + len(value)
        if name in CALLEE_ATTRIBUTES and value.startswith("{") and "=" in tokens.without_comments(value):
            is_list = _LIST.match(tail, tokens.skip_space(tail, start + 1)) is not None
            items = tokens.split_items(tail, start + 1, position - 1) if is_list else [(start, position)]
            for number, (item, _) in enumerate(items):
                begin = tokens.skip_space(tail, item)
                if tail[begin] != "{":  # a name
                    continue
                end = tokens.balanced_end(tail, begin, holds_lines=True)
                line, counted = line + tail.count("\n", counted, begin), begin
                called = f"{row[1]}.{name}.{number}" if is_list else f"{row[1]}.{name}"
                yield NestedComputation(called, tail[begin + 1 : end - 1], line, begin, end)


def with_names(row: Row, nested: Sequence[NestedComputation], names: Sequence[str]) -> Row:
    """A row whose attributes name the computations that are written in place in it."""
    parts: list[str] = []
    done = 0
    for one, name in zip(nested, names, strict=True):
        parts += [_ATTRIBUTE_NAME.sub(r", \1=", row[3][done : one.start]), f"%{name}"]
        done = one.end
    return *row[:3], "".join(parts) + row[3][done:]


def with_nested_operands(row: Row) -> list[Row]:
    """A row, behind the instructions that are its operands in place, innermost first. Each of these is named after its user and
    its number there (`sum.operand-0`), and the user names it so.
    """
    found: list[Row] = []
    waiting = [(row, 0)]
    while waiting:  # a user comes before its operands here, and behind them in the result
        (root, name, head, tail), depth = waiting.pop()
        operands, tail = _split_off(name, head, tail) if depth < MAX_DEPTH else ([], tail)
        found.append((root, name, head, tail))
        waiting += [(operand, depth + 1) for operand in operands]
    found.reverse()
    return found


def _split_off(name: str, head: str, tail: str) -> tuple[list[Row], str]:
    """The operands of a tail that are instructions in place, and the tail with their names instead."""
    close = operands_end(tail)
    if head.rpartition(" ")[2] in LITERAL_OPCODES or _OPERATION.search(tail, 0, close) is None:
        return [], tail
    rows: list[Row] = []
    parts: list[str] = []
    done = 0
    for number, (begin, end) in enumerate(tokens.split_items(tail, 0, close)):
        start = tokens.skip_space(tail, begin)
        if _OPERATION.search(tail, start, end) is None:
            continue
        try:
            shape_start, shape_end, opcode, bracket = parse_head(tail, start)
            after = tokens.balanced_end(tail, bracket)
        except tokens.ScanError:
            continue
        if tail[after:end].strip():
            continue
        shape = tail[shape_start:shape_end]
        operand = f"{name}.operand-{number}"
        rows.append(("", operand, f"{shape} {opcode}", tail[bracket + 1 : after]))
        parts += [tail[done:start], f"{shape} %{operand}" if shape else f"%{operand}"]
        done = end
    return rows, "".join(parts) + tail[done:]
