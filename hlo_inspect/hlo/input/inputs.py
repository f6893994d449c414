"""The modules of an input, with the quoted lines around them as partial modules.

The lines of each writer, such as a rank of a job, form a text. The modules of a text come before the modules of the next text.
`SecondReading` reads a module again, for other parts of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.hlo.input.source import Source
from hlo_inspect.hlo.module import CompilerWarning, LogEntry, Measurement, Module
from hlo_inspect.hlo.pasted.mended_text import MendedText, relocate
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.hlo.pasted.compiler_log import CompilerLog
    from hlo_inspect.hlo.pasted.logs import Measurements
    from hlo_inspect.hlo.pasted.quoted_lines import QuotedLine, QuotedLines


class Text(NamedTuple):
    """The text of one writer, mostly the only one. Once it is read, `mended` has its repairs and its places in the input."""

    source: TextSource
    mended: MendedText
    is_first: bool

    def finished(
        self, module: Module, first_line: int = 0, log: Sequence[Measurement] = (), warnings: Sequence[CompilerWarning] = ()
    ) -> Module:
        """Add what stands around a module that starts at `first_line`, and convert lines to those of the input."""
        place = self.mended.places.place
        module.text_line = module.first_line if self.is_first and not module.quoted_lines else 0
        module.log = tuple([LogEntry(o._replace(line=place(o.line)[0]), module.name, o.line < first_line) for o in log])
        module.warnings = tuple([warning._replace(line=place(warning.line)[0]) for warning in warnings])
        module.memory_lines = self.source.memory_lines
        module.mends = tuple(self.mended.notes)
        relocate(module, self.mended.places)
        return module


def texts_of(source: Source) -> Iterator[Text]:
    """Yield the texts of an input. Read each text before the next."""
    yield Text(source, source.mender.text, is_first=True)
    for other in source.mender.others:
        yield Text(TextSource(source.name, other.kept()), other, is_first=False)


def read_input(source: Source, wants: Wants) -> Iterator[Module]:
    """Yield the modules of `source` in order, with the measurements around them.

    Quoted lines between two modules count as one module. Instructions that XLA's log prints beside a module do not count.
    Raise InputError if the input cannot be read.
    """
    for text in texts_of(source):
        surroundings = _SurroundingText(text.source.memory_lines)
        for module in chain(read_modules(text.source, wants, surroundings.take), [None]):  # None is the end of the text
            first_line = module.first_line if module is not None else sys.maxsize
            surroundings.has_module |= module is not None
            quoted, log, warnings = surroundings.pop_before(first_line)
            if quoted:
                from hlo_inspect.hlo.pasted.quoted_lines import part_of_module

                before = [measurement for measurement in log if measurement.line < first_line]
                part = part_of_module(quoted, source.name, wants)
                yield text.finished(part, quoted[0].number, before, () if surroundings.has_module else warnings)
            if module is not None:
                module.left_out_warnings = surroundings.left_out_warnings
                yield text.finished(module, first_line, log, warnings)
                surroundings.log = [measurement for measurement in log if measurement.line >= first_line]
                surroundings.warnings = [warning for warning in warnings if warning.line >= first_line]
        source.measured += tuple([measurement.key for measurement in surroundings.log])
        if text.source is not source:
            source.memory_lines += text.source.memory_lines


class _SurroundingText:
    """The text around the modules of one writer.

    It collects quoted lines, measurements and XLA's warnings that belong to no module so far, and the lines of an out-of-memory
    report. With `has_module` the text has a module.
    """

    def __init__(self, memory_lines: list[tuple[int, str]]) -> None:
        self._readers: tuple[QuotedLines, Measurements, CompilerLog] | None = None
        self._memory_lines = memory_lines
        self._lines: list[QuotedLine] = []
        self.log: list[Measurement] = []
        self.warnings: list[CompilerWarning] = []
        self.left_out_warnings = 0
        self.has_module = False

    def take(self, text: str, line: int) -> None:
        """Read whole lines; the first line has the number `line`."""
        from hlo_inspect.hlo.pasted.compiler_log import CompilerLog
        from hlo_inspect.hlo.pasted.logs import Measurements, take_memory_lines
        from hlo_inspect.hlo.pasted.quoted_lines import QuotedLines

        self._readers = self._readers or (QuotedLines(), Measurements(), CompilerLog())
        for reader in self._readers:
            reader.take(text, line)
        take_memory_lines(self._memory_lines, text, line)

    def pop_before(self, line: int) -> tuple[list[QuotedLine], list[Measurement], list[CompilerWarning]]:
        """Remove and return the quoted lines before a line; also return all measurements and warnings so far."""
        if self._readers is None:
            return [], [], []
        quotes, measurements, compiler_log = self._readers
        self._lines += quotes.finish()
        self.log += measurements.finish()
        self.warnings += compiler_log.finish()
        self.left_out_warnings = compiler_log.left_out
        quoted = [quote for quote in self._lines if quote.number < line]
        self._lines = self._lines[len(quoted) :]
        if self.has_module:
            quoted = [quote for quote in quoted if quote.number not in compiler_log.quoted]
        return quoted, self.log, self.warnings


_FAST_BYTES = range(1 << 16, 1 << 26)
"""Sizes of texts that the library reads whole before Python selects rows. Larger ones would fill memory."""


def is_read_fast(source: Source) -> bool:
    """Return True if reading a text with its graph costs less than reading it twice."""
    size = source.plain_bytes
    if size is None or size not in _FAST_BYTES:
        return False
    from hlo_inspect.native import library as native  # small texts need none of it

    return native.library() is not None


Reading = Callable[[Source, Wants], Iterator[Module]]


class SecondReading:
    """Reader of other parts of modules, after a first reading.

    `source` is the source of the first reading, still unread; `read` reads modules. A file is opened again, and its modules are
    read in the same order. If an input can be read only once, such as standard input, the source keeps the text of the current
    module.
    """

    def __init__(self, source: Source, read: Reading, wants: Wants) -> None:
        self._source = source
        self._wants = wants
        self._read = read
        self._modules: Iterator[Module] | None = None
        self._next = 1
        self._lines = 0
        if not source.reopens:
            source.keep_text()

    def module(self, first: Module, number: int) -> Module | None:
        """Return module `number`, which is `first` in the first reading; None if it has changed."""
        if not self._source.reopens:
            return self._kept_texts(first)
        if self._modules is None:
            self._modules = self._read(self._source.reopened(), self._wants)
        module = next(islice(self._modules, number - self._next, None), None)
        self._next = number + 1
        return module if module is not None and (module.name, module.first_line) == (first.name, first.first_line) else None

    def forget(self, module: Module) -> None:
        """Release the kept text of a module."""
        if not self._source.reopens and module.text_line:
            last = module.text_line - 1 + module.lines
            self._source.take_lines(max(last - self._lines, 0))
            self._lines = max(last, self._lines)

    def _kept_texts(self, first: Module) -> Module | None:
        if not first.text_line:
            return None
        before = first.text_line - 1
        self._source.take_lines(before - self._lines)
        text = self._source.take_lines(first.lines)
        self._lines = before + first.lines
        if not text:
            return None
        again = next(read_modules(TextSource(self._source.name, iter(["\n" * before + text + "\n"])), self._wants), None)
        if again is not None:
            relocate(again, self._source.mender.text.places)
        return again
