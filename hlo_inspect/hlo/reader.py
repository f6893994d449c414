"""Pieces of text -> modules, by what is wanted of them.

The reader finds modules in whatever surrounds them; what follows a module's header is a `ModuleReader`'s.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from hlo_inspect.errors import ParseError
from hlo_inspect.hlo import grammar, scan
from hlo_inspect.hlo.collect_regions import RegionCollector
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.header import Header, scan_header
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.module_reader import LINE_END, MAX_ITEM_CHARS, MODULE, ModuleReader
from hlo_inspect.hlo.single import as_module
from hlo_inspect.hlo.source import Source
from hlo_inspect.hlo.strict.check import StrictCheck

_BLANK = r"(?:[ \t]++|/\*(?:[^*\n]++|\*(?!/))*+\*/)*+"
_START = re.compile(
    rf"\n[ \t]*+(?:(HloModule)(?=(?:[ \t]{_BLANK}%?[A-Za-z_][\w.\-]*+:?+)?{_BLANK}(?:,|\n|//|ENTRY[ \t]))"
    r"|(ENTRY[ \t]++%?[\w.\-]++[ \t]*+[({])|%?[A-Za-z_][\w.\-]*+[ \t](?:\([^\n]*\)[ \t]->[^\n]*)?\{[ \t]*\n)",
    re.ASCII,
)


class Reader:
    """Reads one input once. `strict` raises `ParseError` at the first problem instead of noting it."""

    def __init__(self, source: Source, wants: Wants, *, strict: bool = False) -> None:
        self._source = source
        self._cursor = Cursor(source.pieces)
        self._wants = wants
        self._strict = strict
        self._check: StrictCheck | None = None

    def modules(self) -> Iterator[Module]:
        """Every module of the input, in order; an input that is one instruction is a module of it."""
        cursor = self._cursor
        found = False
        while self._find_module():
            first_line, begin = cursor.line, cursor.bytes_before
            cursor.mark()
            self._check = StrictCheck(self._source.name) if self._strict else None
            header = self._header()
            module = Module(header, self._source.name, first_line, self._wants)
            collector = RegionCollector(module, strict=self._strict)
            for fault in header.faults:
                collector.problem("HI003", fault, first_line)
            body = ModuleReader(cursor, collector, self._check)
            body.read()
            module.lines = body.last_line - first_line + 1
            module.bytes = body.end_bytes - begin
            collector.finish()
            if self._check is not None:
                self._check.finish()
            if module.computation_count or len(header.attributes) > 0:
                self._note_invalid_bytes(collector)
                self._note_refusal(collector, cursor.since_mark())
                found = True
                yield module
        if not found:
            yield from self._single_instruction()

    def _single_instruction(self) -> Iterator[Module]:
        text = as_module(self._cursor.text[1:]) if self._cursor.pieces_read == 1 else None
        if text is not None:
            encoded = text.encode()
            source = Source(self._source.name, lambda: io.BytesIO(encoded))
            yield from Reader(source, self._wants, strict=self._strict).modules()

    def _find_module(self) -> bool:
        """Moves to the next line that starts a module; computations without a header start one too."""
        cursor = self._cursor
        while True:
            match = _START.search(cursor.text, cursor.position - 1)
            if match is None:
                cursor.advance(len(cursor.text))
                if not cursor.more():
                    return False
                continue
            cursor.advance(match.start() + 1)
            if match[1] or self._starts_computation():
                return True
            cursor.next_line()

    def _starts_computation(self) -> bool:
        """Whether the line at the cursor is a computation's: an instruction has to follow it."""
        cursor = self._cursor
        while True:
            try:
                start = scan.skip_space(cursor.text, cursor.position)
                _, _, end = grammar.scan_computation(cursor.text, start)
                grammar.scan_instruction(cursor.text, scan.skip_space(cursor.text, end))
            except scan.IncompleteError:
                if cursor.remaining() > MAX_ITEM_CHARS or not cursor.more():
                    return False
            except scan.ScanError:
                return False
            else:
                return True

    def _header(self) -> Header:
        cursor = self._cursor
        if not MODULE.match(cursor.text, cursor.position):
            return Header("", printed=False)
        final = False
        while True:
            try:
                header, end = scan_header(cursor.text, cursor.text.index("HloModule", cursor.position), final=final)
                break
            except scan.IncompleteError:
                final = cursor.remaining() > MAX_ITEM_CHARS or not cursor.more()
        if self._check is not None:
            self._check.header(cursor.text, cursor.text.index("HloModule", cursor.position), cursor.line)
        line_end = LINE_END.match(cursor.text, end)
        cursor.advance(line_end.end() if line_end else end)
        if header.fault:
            cursor.next_line()
        return header

    def _note_refusal(self, collector: RegionCollector, text: str | None) -> None:
        """Notes what `strict` would refuse first in the text of a small module: looking takes many times as long as reading."""
        if text is None or self._strict or not self._wants.refusals:
            return
        encoded = text.encode()
        strictly = Reader(Source(self._source.name, lambda: io.BytesIO(encoded)), Wants(), strict=True)
        try:
            for _ in strictly.modules():
                pass
        except ParseError as error:
            collector.refused(error, collector.module.first_line)

    def _note_invalid_bytes(self, collector: RegionCollector) -> None:
        if self._source.invalid_lines:
            message = f"{self._source.invalid_lines} lines hold bytes that are not UTF-8; they are shown as \\xNN"
            collector.problem("HI005", message, self._source.first_invalid_line)


def read_modules(source: Source, wants: Wants, *, strict: bool = False) -> Iterator[Module]:
    """Every module of `source`. `InputError` for what cannot be read, `ParseError` under `strict` for what is wrong."""
    return Reader(source, wants, strict=strict).modules()
