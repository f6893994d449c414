"""The full grammar of what stands in a module, one item at a time: for every layout of the text that the fast path does
not know.

Each function takes a text and a position and returns what it found with the index after it. `ScanError` says what is wrong and
where; `IncompleteError` that the text ends too early.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.module import CALLEE_ATTRIBUTES, Row

_INSTRUCTION = re.compile(r"(ROOT\s++)?(%)?([A-Za-z_][\w.\-]*+)\s*+=(?!=)\s*+", re.ASCII)
_ARRAY = re.compile(r"[a-z]\w*+\s*+\[", re.ASCII)
_LAYOUT_START = re.compile(r"\s*+\{\s*+[0-9:}]", re.ASCII)
_OPCODE = re.compile(r"\s*+([a-z][a-z0-9\-]*+)\s*+\(", re.ASCII)
_COMPUTATION = re.compile(r"(ENTRY\s++)?%?([A-Za-z_][\w.\-]*+)\s*+", re.ASCII)
_THREAD = re.compile(r"\s*+,\s*+execution_thread\s*+=\s*+\"(?:[^\"\\\n]++|\\.)*+\"", re.ASCII)


def scan_instruction(text: str, start: int) -> tuple[Row, int]:
    """The instruction at `start`: `[ROOT] name = [shape] opcode(…)` and its attributes."""
    match = _INSTRUCTION.match(text, start)
    if match is None:
        raise scan.ScanError("expected an instruction", start)
    shape_start = scan.skip_space(text, match.end())
    shape_end = _shape_end(text, shape_start)
    opcode_start = scan.skip_space(text, shape_end)
    opcode = _OPCODE.match(text, opcode_start)
    if opcode is None:
        raise scan.ScanError("expected an opcode and '('", opcode_start)
    open_bracket = opcode.end() - 1
    end = _attributes_end(text, scan.balanced_end(text, open_bracket, holds_lines=False))
    head = f"{text[shape_start:shape_end].strip()} {opcode[1]}"
    return ("ROOT " if match[1] else "", match[3], head, text[open_bracket + 1 : end]), end


def _shape_end(text: str, start: int) -> int:
    """The index after the shape at `start`; `start` itself where the shape is left out."""
    if text.startswith("(", start) or text.startswith("b(", start):
        return scan.balanced_end(text, text.index("(", start))
    match = _ARRAY.match(text, start)
    if match is None:
        return start
    end = scan.balanced_end(text, match.end() - 1)
    return scan.balanced_end(text, text.index("{", end)) if _LAYOUT_START.match(text, end) else end


def _attributes_end(text: str, position: int) -> int:
    while True:
        comma = scan.skip_space(text, position)
        if not text.startswith(",", comma):
            return position
        begin = scan.skip_space(text, comma + 1)
        attribute = scan.ATTRIBUTE.match(text, begin)
        if attribute is None:
            raise scan.ScanError("expected an attribute", begin)
        holds_lines = attribute[1] in CALLEE_ATTRIBUTES
        position = scan.value_end(text, attribute.end(), name=attribute[1], holds_lines=holds_lines)


def scan_computation(text: str, start: int) -> tuple[str, bool, int]:
    """The start of a computation, `[ENTRY] name [(parameters) -> shape] {`: its name and whether it is the entry."""
    match = _COMPUTATION.match(text, start)
    if match is None:
        raise scan.ScanError("expected a computation", start)
    position = scan.skip_space(text, match.end())
    if text.startswith("(", position):
        arrow = scan.skip_space(text, scan.balanced_end(text, position))
        if not text.startswith("->", arrow):
            raise scan.ScanError("expected '->'", arrow)
        position = scan.skip_space(text, _shape_end(text, scan.skip_space(text, arrow + 2)))
    if not text.startswith("{", position):
        raise scan.ScanError("expected '{'", position)
    return match[2], bool(match[1]), position + 1


def closer_end(text: str, start: int) -> int:
    """The index after the `}` at `start` and the thread that may follow it."""
    thread = _THREAD.match(text, start + 1)
    return thread.end() if thread else start + 1
