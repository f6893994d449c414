"""Pieces of text -> modules, by what is wanted of them.

The reader finds modules in whatever surrounds them; what follows a module's header is a `ModuleReader`'s.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from hlo_inspect.errors import Location, ParseError
from hlo_inspect.hlo import grammar, scan, single
from hlo_inspect.hlo.collect_regions import RegionCollector
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.header import Header, scan_header
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.module_reader import LINE_END, MAX_ITEM_CHARS, MODULE, ModuleReader
from hlo_inspect.hlo.source import Source
from hlo_inspect.hlo.strict.check import StrictCheck

_BLANK = r"(?:[ \t]++|/\*(?:[^*\n]++|\*(?!/))*+\*/)*+"
_START = re.compile(
    rf"\n[ \t]*+(?:(HloModule)(?=(?:[ \t]{_BLANK}%?[A-Za-z_][\w.\-]*+:?+)?{_BLANK}(?:,|\n|//|ENTRY[ \t]))"
    r"|(ENTRY[ \t]++%?[\w.\-]++[ \t]*+[({])|%?[A-Za-z_][\w.\-]*+[ \t](?:\([^\n]*\)[ \t]->[^\n]*)?\{[ \t]*\n)",
    re.ASCII,
)

_STRAY = re.compile(
    r"\n[ \t]*+((?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]*+=[ \t]++\(*+[a-z][a-z0-9]*+\[[^\n]*\(|\}[ \t]*+(?=\n))", re.ASCII
)
"""An instruction with its shape, or a line that only closes a computation."""


class Reader:
    """Reads one input once. `strict` raises `ParseError` at the first problem instead of noting it. What is read may stand for
    an `instruction`, in front of which it has a line.
    """

    def __init__(self, source: Source, wants: Wants, *, strict: bool = False, instruction: str = "") -> None:
        self._source = source
        self._instruction = instruction
        self._cursor = Cursor(source.pieces, 0 if instruction else 1)
        self._wants = wants
        self._strict = strict
        self._check: StrictCheck | None = None
        self._stray: ParseError | None = None

    def modules(self) -> Iterator[Module]:
        """Every module of the input, in order; an input that is one instruction is a module of it."""
        self._cursor.mark()
        holds_module = False
        while self._find_module():
            holds_module = True
            self._refuse_stray()
            module = self._module()
            if module is not None:
                yield module
        text = None if holds_module else self._cursor.since_mark()
        standing = single.as_module(text) if text is not None else None
        if text is None or standing is None:
            self._refuse_stray()
        else:
            yield from self._single_instruction(text, standing)

    def _module(self) -> Module | None:
        """The module that starts at the cursor; `None` where there is nothing but a word that could be a header."""
        cursor = self._cursor
        first_line, begin = max(1, cursor.line), cursor.bytes_before
        cursor.mark()
        self._check = StrictCheck(self._source.name, self._read_quoted) if self._strict else None
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
        if not module.computation_count and not header.attributes:
            return None
        self._note_invalid_bytes(collector)
        self._note_refusal(collector, cursor.since_mark())
        return module

    def _single_instruction(self, text: str, standing: str) -> Iterator[Module]:
        """The module that is `standing` for `text`."""
        if self._strict:
            self._check_single(text)
        encoded = standing.encode()
        source = Source(self._source.name, lambda: io.BytesIO(encoded))
        yield from Reader(source, self._wants, instruction=text).modules()

    def _check_single(self, text: str) -> None:
        StrictCheck(self._source.name, self._read_quoted).single(text)

    def _find_module(self) -> bool:
        """Moves to the next line that starts a module; computations without a header start one too."""
        cursor = self._cursor
        while True:
            match = _START.search(cursor.text, cursor.position - 1)
            self._look_for_stray(match.start() + 1 if match else len(cursor.text))
            if match is None:
                cursor.advance(len(cursor.text))
                if not cursor.more():
                    return False
                continue
            cursor.advance(match.start() + 1)
            if match[1] or self._starts_computation():
                return True
            cursor.next_line()

    def _look_for_stray(self, end: int) -> None:
        """Under `strict`, looks for instructions and closing braces before `end` that belong to no module, and for what goes on
        in the last line of one.
        """
        cursor = self._cursor
        if not self._strict or self._stray is not None:
            return
        text, position = cursor.text, cursor.position
        line_start = text.rfind("\n", 0, position)
        stray = _STRAY.search(text, line_start, end)
        if text[line_start:position].isspace() or position == len(text):
            position = stray.start(1) if stray is not None and stray.end() > position else -1
        if position >= 0:
            line = cursor.line + text.count("\n", cursor.position, position)
            line_start = text.rfind("\n", 0, position)
            location = Location(self._source.name, line, position - line_start)
            picture = text[line_start + 1 : text.find("\n", position)]
            self._stray = ParseError("this belongs to no computation", location, picture, code="HI001")

    def _refuse_stray(self) -> None:
        if self._stray is not None:
            raise self._stray

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
            end = self._check.header(cursor.text, cursor.text.index("HloModule", cursor.position), cursor.line)
        line_end = LINE_END.match(cursor.text, end)
        cursor.advance(line_end.end() if line_end else end)
        if header.fault:
            cursor.next_line()
        return header

    def _note_refusal(self, collector: RegionCollector, text: str | None) -> None:
        """Notes what `strict` would refuse first in the text of a small module: looking takes many times as long as reading."""
        if text is None or self._strict or not self._wants.refusals:
            return
        try:
            if self._instruction:
                self._check_single(self._instruction)
            else:
                self._read_strictly(text)
        except ParseError as error:
            is_at_end = (error.line or 1) >= text.count("\n")
            if not (is_at_end and collector.is_cut_off):
                collector.refused(error, collector.module.first_line)

    def _read_strictly(self, text: str) -> int:
        """Reads a text of its own under `strict`: how many modules it holds. `ParseError` at what is refused."""
        encoded = text.encode()
        source = Source(self._source.name, lambda: io.BytesIO(encoded))
        return sum(1 for _ in Reader(source, Wants(), strict=True).modules())

    def _read_quoted(self, text: str) -> None:
        """Looks through a module that stands in quotes. `ParseError` where it is none."""
        if self._read_strictly(text) != 1:
            raise ParseError("expected one module in quotes")

    def _note_invalid_bytes(self, collector: RegionCollector) -> None:
        if self._source.invalid_lines:
            message = f"{self._source.invalid_lines} lines hold bytes that are not UTF-8; they are shown as \\xNN"
            collector.problem("HI005", message, self._source.first_invalid_line)


def read_modules(source: Source, wants: Wants, *, strict: bool = False) -> Iterator[Module]:
    """Every module of `source`. `InputError` for what cannot be read, `ParseError` under `strict` for what is wrong."""
    return Reader(source, wants, strict=strict).modules()
