"""An input -> its modules: those that it holds, and the instruction lines around them that are a part of one."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.quoted_lines import QuotedLine, QuotedLines, part_of_module
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import Source
from hlo_inspect.hlo.wants import Wants


def read_input(source: Source, wants: Wants) -> Iterator[Module]:
    """Every module of `source`, and the quoted lines between two of them as one, in order. `InputError` for what cannot be
    read.
    """
    quoted = QuotedLines()
    found: list[QuotedLine] = []
    for module in read_modules(source, wants, quoted.take):
        found += quoted.finish()
        before = [one for one in found if one.line < module.first_line]
        if before:
            yield part_of_module(before, source.name, wants, _as_it_is)
        found = found[len(before) :]
        yield module
    found += quoted.finish()
    if found:
        yield part_of_module(found, source.name, wants, _as_it_is)


def _as_it_is(line: int, column: int) -> tuple[int, int]:
    return line, column
