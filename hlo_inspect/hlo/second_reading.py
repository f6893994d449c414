"""The modules of a source once more, with their graphs: for what turns out to need more of a module than was read of it.

A file is opened once more, and its modules follow those of the first reading. Of what can be read only once, such as standard
input, the text of the module that is looked at is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.places import relocate
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import Pieces, Source
from hlo_inspect.hlo.wants import Wants

Reading = Callable[[Source, Wants], Iterator[Module]]


class SecondReading:
    """`source` is that of the first reading, of which nothing was read yet; `read` reads modules."""

    def __init__(self, source: Source, wants: Wants, read: Reading) -> None:
        self._source = source
        self._wants = wants | Wants(graph=True, entry=True)
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
        again = next(read_modules(Pieces(self._source.name, iter(["\n" * before + text + "\n"])), self._wants), None)
        places = self._source.mender.places
        if again is not None and places is not None:
            relocate(again, places)
        return again
