"""Modules in pieces of text: `read_modules` searches other text for them, and a `ModuleReader` reads each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hlo_inspect.errors import InputError
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.cursor import Cursor, TextSource
from hlo_inspect.hlo.read.module_reader import HEADER, LINE_END, ModuleReader
from hlo_inspect.hlo.read.stated_spaces import apply_stated_spaces
from hlo_inspect.hlo.values.header import Header, scan_header
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

_BLANK = r"(?:[ \t]++|/\*(?:[^*\n]++|\*(?!/))*+\*/)*+"
_START = lazy_pattern(
    rf"\n[ \t]*+(?:(HloModule)(?=(?:[ \t]{_BLANK}%?[A-Za-z_][\w.\-]*+:?+)?{_BLANK}(?:,|\n|//|ENTRY[ \t]))"
    r"|(ENTRY[ \t]++%?[\w.\-]++[ \t]*+[({])|%?[A-Za-z_][\w.\-]*+[ \t](?:\([^\n]*\)[ \t]->[^\n]*)?\{[ \t]*\n)",
    re.ASCII,
)

OtherText = Callable[[str, int], None]
"""Callback that receives whole lines outside any module, in order, and the number of the first line."""


def read_modules(source: TextSource, wants: Wants, other_text: OtherText | None = None) -> Iterator[Module]:
    """Yield the modules of `source`, in order. Raise InputError if it cannot be read.

    `other_text` receives the text around modules; the text after a module comes before that module is yielded.
    """
    cursor = Cursor(source.pieces)
    has_more = _find_module(cursor, other_text)
    while has_more:
        first_line, begin = cursor.line, cursor.bytes_before
        header = _read_header(cursor)
        module = Module(header, source.name, first_line, wants)
        for fault in header.faults:
            module.note("HI003", fault, first_line)
        body = ModuleReader(cursor, module)
        body.read()
        if "S(" in header.attributes.get("entry_computation_layout", ""):
            apply_stated_spaces(module)
        module.lines = body.last_line - first_line + 1
        module.bytes = body.end_bytes - begin
        if source.invalid_lines:
            module.note("HI005", source.invalid_message, source.first_invalid_line)
        if source.damage is not None:
            module.note("HI002", f"the input {source.damage}", module.first_line)
        error = None
        try:
            has_more = _find_module(cursor, other_text)
        except InputError as unreadable:  # yield the module before the fault
            error = unreadable
        if module.computation_count or header.attributes:  # else it is a word that only looks like a header
            yield module
        if error is not None:
            raise error


def _find_module(cursor: Cursor, other_text: OtherText | None) -> bool:
    """Move to the next line that starts a module, or a computation without a header. Return False if none does."""
    while True:
        match = _START.search(cursor.text, cursor.position - 1)
        end = match.start() + 1 if match is not None else len(cursor.text)
        _pass_over(cursor, end, other_text)
        if match is None:
            if not _append_text(cursor):
                return False
            continue
        if match[1] or _starts_computation(cursor):
            return True
        line_end = cursor.text.find("\n", cursor.position)
        _pass_over(cursor, line_end + 1 if line_end >= 0 else len(cursor.text), other_text)


def _append_text(cursor: Cursor) -> bool:
    """Append a piece that is not blank; return False at the end of the input. Patterns would stop at each blank line."""
    while cursor.more():
        if not cursor.text[cursor.position :].isspace():
            return True
        cursor.advance(len(cursor.text))
    return False


def _pass_over(cursor: Cursor, end: int, other_text: OtherText | None) -> None:
    """Move to `end`, over text outside any module."""
    if other_text is not None and end > cursor.position:
        other_text(cursor.text[cursor.position : end], cursor.line)
    cursor.advance(end)


def _starts_computation(cursor: Cursor) -> bool:
    """Return True if a computation and an instruction of it start at the cursor."""
    while True:
        try:
            start = tokens.skip_space(cursor.text, cursor.position)
            _, _, end = parser.parse_first_line(cursor.text, start)
            parser.parse_instruction(cursor.text, tokens.skip_space(cursor.text, end))
        except tokens.IncompleteError:
            if not cursor.twice_as_much():
                return False
        except tokens.ScanError:
            return False
        else:
            return True


def _read_header(cursor: Cursor) -> Header:
    if not HEADER.match(cursor.text, cursor.position):
        return Header("", printed=False)
    final = False
    while True:
        try:
            header, end = scan_header(cursor.text, cursor.text.index("HloModule", cursor.position), final=final)
            break
        except tokens.IncompleteError:
            final = not cursor.twice_as_much()
    line_end = LINE_END.match(cursor.text, end)
    cursor.advance(line_end.end() if line_end else end)
    if header.fault:
        cursor.next_line()
    return header
