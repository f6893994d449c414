"""The grammar of a module, item by item, for layouts of the text that `fast_path` does not know.

Functions take a text and a position, and return an item and the index after it. They raise ScanError for wrong text,
IncompleteError if the text ends too early.
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
"""Pattern of the first line of a computation as printers write it."""


class ParsedInstruction(NamedTuple):
    """An instruction and the index after it. `fault` is the fault of an unreadable attribute that follows it."""

    row: Row
    end: int
    fault: tokens.ScanError | None


def parse_instruction(text: str, start: int, *, is_final: bool = True) -> ParsedInstruction:
    """Parse the instruction at `start`: `[ROOT] name = [shape] opcode(…)` and its attributes.

    Raise ScanError for wrong text, IncompleteError if attributes may follow the text, unless it is final.
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
    """Parse `[shape] opcode(`: return start and end of the shape, the opcode, and the index of the parenthesis."""
    shape_start = tokens.skip_space(text, position)
    shape_end = _shape_end(text, shape_start)
    opcode_start = tokens.skip_space(text, shape_end)
    opcode = _OPCODE.match(text, opcode_start)
    bracket = tokens.skip_space(text, opcode.end() if opcode else opcode_start)
    if opcode is None or not text.startswith("(", bracket):
        end = shape_end if shape_end > shape_start else position
        is_cut = text.find("\n", end, opcode_start) >= 0  # the next line is another item
        raise _expected("expected an opcode and '('", text, bracket, end if is_cut else opcode_start)
    return shape_start, shape_end, opcode[0], bracket


def _marked_name(text: str, start: int, mark: str, message: str, nameless: tuple[str, ...] = ()) -> tuple[bool, str, int]:
    """Parse `[mark] [%]name`: return True if marked, the name, and the index after them.

    The name may be missing before a text in `nameless`.
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
    """Return the error at `start`: an IncompleteError if more text may resolve it."""
    return (tokens.IncompleteError if reached >= len(text) else tokens.ScanError)(message, start)


def _shape_end(text: str, start: int) -> int:
    """Return the index after the shape at `start`; `start` itself if the shape is left out."""
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
    """Return the index after the readable attributes, and the fault of the next attribute."""
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
    """Return the index after the attribute that follows a comma.

    Neither its name nor its value may start another instruction.
    """
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
    """Return True if an instruction or computation starts at `end`, on a later line than `start`."""
    line_end = text.rfind("\n", start, end)
    return line_end >= 0 and not text[line_end + 1 : end].strip() and tokens.FRESH_LINE.match(text, line_end + 1) is not None


def parse_first_line(text: str, start: int) -> tuple[str, bool, int]:
    """Parse the first line of a computation, `[ENTRY] [name] [(parameters) -> shape] {`.

    Return its name, True if it is the entry, and the index after the line's `{`. XLA can print computations without names.
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
    """Return True if the line at `start` begins a computation as printers write it."""
    return _FIRST_LINE.match(text, start) is not None


def closer_end(text: str, start: int) -> int:
    """Return the index after the `}` at `start` and a thread that follows it."""
    thread = _THREAD.match(text, start + 1)
    return thread.end() if thread else start + 1


MAX_DEPTH = 64
"""Deepest nesting of instructions and computations in place that is read. Each level reads the text again."""

_BODY = lazy_pattern(rf",\s*+(?:{'|'.join(CALLEE_ATTRIBUTES)})=\s*+\{{", re.ASCII)
_LIST = lazy_pattern(r"\{|%?[\w.\-]++\s*+,", re.ASCII)
_ATTRIBUTE_NAME = lazy_pattern(r",\s*+([a-z_]++)\s*+=\s*+\Z", re.ASCII)
_OPERATION = lazy_pattern(r"(?<![\w.\-%])[a-z][a-z0-9\-]*+\s*+\(", re.ASCII)


class NestedComputation(NamedTuple):
    """A computation in place.

    `text`: between its braces; it starts on `line`. `start` and `end` are the braces' extent in the caller's tail.
    """

    name: str
    text: str
    line: int
    start: int
    end: int


def nested_computations(row: Row, line: int) -> Iterator[NestedComputation]:
    """Yield the computations in place among the attributes of an instruction at `line`."""
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
    """Return the row with names in place of its nested computations."""
    parts: list[str] = []
    done = 0
    for computation, name in zip(nested, names, strict=True):
        parts += [_ATTRIBUTE_NAME.sub(r", \1=", row[3][done : computation.start]), f"%{name}"]
        done = computation.end
    return *row[:3], "".join(parts) + row[3][done:]


def with_nested_operands(row: Row) -> list[Row]:
    """Return the rows of operands in place, innermost first, then the row itself.

    Such an operand is named after its user and its number there (`sum.operand-0`), and the user refers to that name.
    """
    rows: list[Row] = []
    waiting = [(row, 0)]
    while waiting:  # a user comes before its operands here, and after them in the result
        (root, name, head, tail), depth = waiting.pop()
        operands, tail = _split_off(name, head, tail) if depth < MAX_DEPTH else ([], tail)
        rows.append((root, name, head, tail))
        waiting += [(operand, depth + 1) for operand in operands]
    rows.reverse()
    return rows


def _split_off(name: str, head: str, tail: str) -> tuple[list[Row], str]:
    """Return the operands of a tail that are instructions in place, and the tail with their names."""
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
