"""An input -> its modules: those that it holds, and the instruction lines around them that are a part of one.

Lines of several writers, such as the ranks of a job, are a text each; the modules of one come before those of the next. What
turns out to need more of a module than was read of it has it read once more, with its graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.hlo.input.source import Source
from hlo_inspect.hlo.module import LogEntry, Measurement, Module
from hlo_inspect.hlo.pasted.mended_text import MendedText, relocate
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.hlo.pasted.logs import Measurements
    from hlo_inspect.hlo.pasted.quoted_lines import QuotedLine, QuotedLines


class Text(NamedTuple):
    """The text of one writer in an input: that of most inputs is the whole. `mended` says what was undone in it and where it
    stands in the input, once it was read.
    """

    source: TextSource
    mended: MendedText
    is_first: bool

    def finished(self, module: Module, first_line: int = 0, log: Sequence[Measurement] = ()) -> Module:
        """A module of the text, from `first_line` on, with the lines of the input and the `log` around it."""
        place = self.mended.places.place
        module.text_line = module.first_line if self.is_first and not module.quoted_lines else 0
        module.log = tuple([LogEntry(o._replace(line=place(o.line)[0]), module.name, o.line < first_line) for o in log])
        module.memory_lines = self.source.memory_lines
        module.mends = tuple(self.mended.notes)
        relocate(module, self.mended.places)
        return module


def texts_of(source: Source) -> Iterator[Text]:
    """The texts of an input. Each has to be read before the next one."""
    yield Text(source, source.mender.text, is_first=True)
    for other in source.mender.others:
        yield Text(TextSource(source.name, other.kept()), other, is_first=False)


def read_input(source: Source, wants: Wants) -> Iterator[Module]:
    """Every module of `source`, and the quoted lines between two of them as one, in order, with the measurements around them.
    `InputError` for what cannot be read.
    """
    for text in texts_of(source):
        around = _TextAround(text.source.memory_lines)
        for module in chain(read_modules(text.source, wants, around.take), [None]):  # the last is the end of the text
            first_line = module.first_line if module is not None else sys.maxsize
            quoted, log = around.before(first_line)
            if quoted:
                from hlo_inspect.hlo.pasted.quoted_lines import part_of_module

                before = [one for one in log if one.line < first_line]
                yield text.finished(part_of_module(quoted, source.name, wants), quoted[0].number, before)
            if module is not None:
                yield text.finished(module, first_line, log)
                around.log = [one for one in log if one.line >= first_line]
        source.measured += tuple([one.key for one in around.log])
        if text.source is not source:
            source.memory_lines += text.source.memory_lines


class _TextAround:
    """What stands around the modules of one text: quoted lines and measurements that were found and belong to none so far, and
    the lines about memory that did not suffice.
    """

    def __init__(self, memory_lines: list[tuple[int, str]]) -> None:
        self._readers: tuple[QuotedLines, Measurements] | None = None
        self._memory_lines = memory_lines
        self._lines: list[QuotedLine] = []
        self.log: list[Measurement] = []

    def take(self, text: str, line: int) -> None:
        """Takes whole lines, the first of which has this number."""
        from hlo_inspect.hlo.pasted.logs import Measurements, take_memory_lines
        from hlo_inspect.hlo.pasted.quoted_lines import QuotedLines

        self._readers = self._readers or (QuotedLines(), Measurements())
        for reader in self._readers:
            reader.take(text, line)
        take_memory_lines(self._memory_lines, text, line)

    def before(self, line: int) -> tuple[list[QuotedLine], list[Measurement]]:
        """The quoted lines before a line, which are taken away, and all measurements so far."""
        if self._readers is None:
            return [], []
        quotes, measurements = self._readers
        self._lines += quotes.finish()
        self.log += measurements.finish()
        quoted = [one for one in self._lines if one.number < line]
        self._lines = self._lines[len(quoted) :]
        return quoted, self.log


Reading = Callable[[Source, Wants], Iterator[Module]]


class SecondReading:
    """`source` is that of the first reading, of which nothing was read yet; `read` reads modules.

    A file is opened once more, and its modules follow those of the first reading. Of what can be read only once, such as
    standard input, the text of the module that is looked at is kept.
    """

    def __init__(self, source: Source, read: Reading) -> None:
        self._source = source
        self._wants = Wants(graph=True, entry=True)
        self._read = read
        self._modules: Iterator[Module] | None = None
        self._next = 1
        self._lines = 0
        if not source.reopens:
            source.keep_text()

    def module(self, first: Module, number: int) -> Module | None:
        """The module of that number, which is `first` in the first reading; `None` where it is not the same any more."""
        if not self._source.reopens:
            return self._of_kept_text(first)
        if self._modules is None:
            self._modules = self._read(self._source.reopened(), self._wants)
        found = next(islice(self._modules, number - self._next, None), None)
        self._next = number + 1
        return found if found is not None and (found.name, found.first_line) == (first.name, first.first_line) else None

    def forget(self, module: Module) -> None:
        """The module was looked at: of its text nothing more is needed."""
        if not self._source.reopens and module.text_line:
            last = module.text_line - 1 + module.lines
            self._source.take_lines(max(last - self._lines, 0))
            self._lines = max(last, self._lines)

    def _of_kept_text(self, first: Module) -> Module | None:
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
