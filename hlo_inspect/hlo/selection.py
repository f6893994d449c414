"""Which instructions are kept: wanted opcodes and targets, what calls the computations that hold them, the entry's edges."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.hlo import opcodes, rows
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation, Wants

_STOPS = ("ENTRY ", "HloModule ", "=\n")  # what the reader has to see itself; `=` before a computation in place


class Selection:
    """What `wants` name, in one module. `holders` are the computations besides the entry in which something was kept."""

    def __init__(self, wants: Wants, heads: Heads) -> None:
        self.holders: set[str] = set()
        self._wants = wants
        self._heads = heads
        words = sorted({re.escape(opcodes.base_opcode(opcode)) for opcode in wants.opcodes})
        self._hits = re.compile(f" (?:{'|'.join(words)})[a-z-]*\\(") if words else None

    @property
    def is_empty(self) -> bool:
        return self._hits is None

    def may_stand_in(self, text: str, start: int, end: int) -> bool:
        """Whether something may have to be kept of `text[start:end]`."""
        if self._hits is None:
            return False
        if self._hits.search(text, start, end) is not None:
            return True
        return bool(self.holders) and not self.holders.isdisjoint(rows.CALLS.findall(text, start, end))

    def rows(self, computation: Computation, lines: Lines) -> Iterator[int]:
        """The rows to keep, by number."""
        texts = lines.texts
        wanted, calling = self._heads.wanted, self._heads.calling
        entry = self._wants.entry and computation.is_entry
        if not entry and wanted.isdisjoint(texts) and calling.isdisjoint(texts):
            return
        for index, row in enumerate(lines.rows):
            if (
                texts[index] in wanted
                or (entry and (row[0] or lines.head(index).opcode == "parameter"))
                or (texts[index] in calling and self._is_called_for(lines.head(index).opcode, row[3]))
            ):
                yield index

    def _is_called_for(self, opcode: str, tail: str) -> bool:
        if opcode == "custom-call" and any(target in tail for target in self._wants.targets):
            return True
        return bool(self.holders) and not self.holders.isdisjoint(rows.CALLS.findall(tail))

    def skippable(self, text: str, start: int) -> tuple[int, int]:
        """Up to which index whole computations from `start` hold nothing that is wanted, and behind the last one's brace;
        twice `start` where nothing can be skipped.
        """
        if self._hits is None:
            return start, start
        hit = self._hits.search(text, start)  # first: the next one bounds all other searches
        limit = hit.start() if hit else len(text)
        for mark in _STOPS:
            stop = text.find(mark, start, limit)
            limit = stop if stop >= 0 else limit
        for call in rows.CALLS.finditer(text, start, limit) if self.holders else ():
            if call[1] in self.holders:
                limit = call.start()
                break
        close = text.rfind("\n}", start, limit)
        closer = rows.CLOSER.match(text, close + 1) if close >= 0 else None
        if closer is None or closer.end() > limit + 1:
            return start, start
        return limit, closer.end()
