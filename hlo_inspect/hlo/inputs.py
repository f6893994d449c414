"""An input -> its modules: those that it holds, and the instruction lines around them that are a part of one.

Lines of several writers, such as the ranks of a job, are a text each; the modules of one come before those of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from hlo_inspect.hlo.memory_lines import MemoryLines
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.places import Places, relocate
from hlo_inspect.hlo.quoted_lines import QuotedLine, QuotedLines, part_of_module
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import Pieces, Source
from hlo_inspect.hlo.wants import Wants

Value = TypeVar("Value")


class Text:
    """The text of one writer in an input: that of most inputs is the whole."""

    def __init__(
        self, source: Source, places: Callable[[], Places | None], notes: Callable[[], Iterable[str]], *, is_first: bool
    ) -> None:
        self.source = source
        self._is_first = is_first
        self._places = places
        self._notes = notes

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The place in the input of a place in the text."""
        places = self._places()
        return places.place(line, column) if places is not None else (line, column)

    def finished(self, module: Module) -> Module:
        """A module of the text with the lines of the input."""
        places = self._places()
        module.text_line = module.first_line if self._is_first and not module.quoted_lines else 0
        if places is not None:
            relocate(module, places)
        module.mends = tuple(self._notes())
        return module


def texts_of(source: Source) -> Iterator[Text]:
    """The texts of an input. Each has to be read before the next one."""
    mender = source.mender
    yield Text(source, lambda: mender.places, lambda: mender.notes, is_first=True)
    for pieces, places, sample in mender.others():
        note = f'of several writers these are the lines that begin as "{sample}"'
        yield Text(Pieces(source.name, pieces), partial(_same, places), partial(_same, (note,)), is_first=False)


def _same(value: Value) -> Value:
    return value


def read_input(source: Source, wants: Wants) -> Iterator[Module]:
    """Every module of `source`, and the quoted lines between two of them as one, in order. `InputError` for what cannot be
    read.
    """
    for text in texts_of(source):
        memory = MemoryLines()
        for module in _read(text, wants, memory):
            module.memory_lines = memory.lines
            yield module
        source.memory_lines += memory.lines


def _read(text: Text, wants: Wants, memory: MemoryLines) -> Iterator[Module]:
    quoted = QuotedLines()

    def take(lines: str, first: int) -> None:
        quoted.take(lines, first)
        memory.take(lines, first)

    found: list[QuotedLine] = []
    name = text.source.name
    for module in read_modules(text.source, wants, take):
        found += quoted.finish()
        before = [one for one in found if one.line < module.first_line]
        if before:
            yield text.finished(part_of_module(before, name, wants))
        found = found[len(before) :]
        yield text.finished(module)
    found += quoted.finish()
    if found:
        yield text.finished(part_of_module(found, name, wants))
