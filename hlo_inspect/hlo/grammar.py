"""The full grammar of what stands in a module, one item at a time: for every layout of the text that the fast path does
not know.

Each function takes a text and a position and returns what it found with the index after it. `ScanError` says what is wrong and
where; `IncompleteError` that the text ends too early.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES
from hlo_inspect.hlo.rows import Row

_OPCODE = re.compile(r"[a-z][a-z0-9\-]*+", re.ASCII)
_LAYOUT_START = re.compile(r"[0-9:}]", re.ASCII)
_THREAD = re.compile(
    r"\s*+,\s*+execution_thread\s*+=\s*+(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+')(?!\s*+,)", re.ASCII
)


def scan_instruction(text: str, start: int) -> tuple[Row, int]:
    """The instruction at `start`: `[ROOT] name = [shape] opcode(…)` and its attributes."""
    is_root, name, equals = _marked_name(text, start, "ROOT", "expected an instruction")
    if not text.startswith("=", equals) or text.startswith("==", equals):
        raise _expected("expected an instruction", text, equals, start)
    shape_start = scan.skip_space(text, equals + 1)
    shape_end = _shape_end(text, shape_start)
    opcode_start = scan.skip_space(text, shape_end)
    opcode = _OPCODE.match(text, opcode_start)
    bracket = scan.skip_space(text, opcode.end() if opcode else opcode_start)
    if opcode is None or not text.startswith("(", bracket):
        raise _expected("expected an opcode and '('", text, bracket, opcode_start)
    end = _attributes_end(text, scan.balanced_end(text, bracket))
    head = f"{text[shape_start:shape_end]} {opcode[0]}"
    return ("ROOT " if is_root else "", name, head, text[bracket + 1 : end]), end


def _marked_name(text: str, start: int, mark: str, message: str, nameless: tuple[str, ...] = ()) -> tuple[bool, str, int]:
    """`[mark] [%]name`: whether it is marked, the name, and the index of what follows; in front of what may be `nameless` the
    name may be missing.
    """
    position = start
    word = scan.IDENTIFIER.match(text, position)
    marked = word is not None and word[0] == mark
    if word is not None and marked:
        position = scan.skip_space(text, word.end())
    percent = text.startswith("%", position)
    name = scan.IDENTIFIER.match(text, position + percent)
    if name is None and text.startswith(nameless, position + percent):
        return marked, "", position + percent
    if name is None:
        raise _expected(message, text, position, start)
    return marked, name[0], scan.skip_space(text, name.end())


def _expected(message: str, text: str, reached: int, start: int) -> scan.ScanError:
    """What is wrong at `start`, or not known before there is more text."""
    return (scan.IncompleteError if reached >= len(text) else scan.ScanError)(message, start)


def _shape_end(text: str, start: int) -> int:
    """The index after the shape at `start`; `start` itself where the shape is left out."""
    if text.startswith(("(", "b("), start):
        return scan.balanced_end(text, text.index("(", start))
    dtype = scan.IDENTIFIER.match(text, start)
    bracket = scan.skip_space(text, dtype.end()) if dtype else start
    if dtype is not None and bracket >= len(text):
        raise scan.IncompleteError("expected a shape", start)
    if dtype is None or not text.startswith("[", bracket):
        return start
    end = scan.balanced_end(text, bracket)
    brace = scan.skip_space(text, end)
    if not text.startswith("{", brace):
        return end
    inside = scan.skip_space(text, brace + 1)
    if inside >= len(text):
        raise scan.IncompleteError("'{' is not closed", brace)
    return scan.balanced_end(text, brace) if _LAYOUT_START.match(text, inside) else end


def _attributes_end(text: str, position: int) -> int:
    while True:
        comma = scan.skip_space(text, position)
        if not text.startswith(",", comma):
            return position
        begin = scan.skip_space(text, comma + 1)
        attribute = scan.ATTRIBUTE.match(text, begin)
        if attribute is None:
            raise _expected("expected an attribute", text, begin, begin)
        holds_lines = attribute[1] in CALLEE_ATTRIBUTES
        position = scan.value_end(text, attribute.end(), name=attribute[1], holds_lines=holds_lines)


def scan_computation(text: str, start: int) -> tuple[str, bool, int]:
    """The start of a computation, `[ENTRY] [name] [(parameters) -> shape] {`: its name and whether it is the entry.

    XLA leaves the name out where it is told to print no ids.
    """
    is_entry, name, position = _marked_name(text, start, "ENTRY", "expected a computation", ("(", "{"))
    if text.startswith("(", position):
        arrow = scan.skip_space(text, scan.balanced_end(text, position))
        if not text.startswith("->", arrow):
            raise _expected("expected '->'", text, arrow, arrow)
        position = scan.skip_space(text, _shape_end(text, scan.skip_space(text, arrow + 2)))
    if not text.startswith("{", position):
        raise _expected("expected '{'", text, position, position)
    return name, is_entry, position + 1


def closer_end(text: str, start: int) -> int:
    """The index after the `}` at `start` and the thread that may follow it."""
    thread = _THREAD.match(text, start + 1)
    return thread.end() if thread else start + 1
