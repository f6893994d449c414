"""Which instructions are kept: wanted opcodes and targets, what calls the computations that hold them, the entry's edges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import compress, count

from hlo_inspect.hlo import opcodes, rows
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation, Wants
from hlo_inspect.hlo.rows import Row

_WINDOW = 1 << 16


class Selection:
    """What `wants` name, in one module. `holders` are the computations besides the entry in which something was kept."""

    def __init__(self, wants: Wants, heads: Heads) -> None:
        self.holders: set[str] = set()
        self._wants = wants
        self._heads = heads
        self._hits = _any_of(wants.opcodes) if wants.opcodes else None
        self._targets = re.compile("|".join(map(re.escape, sorted(wants.targets)))) if wants.targets else None
        self._clear = ("", 0)

    @property
    def is_empty(self) -> bool:
        return self._hits is None

    def lines(self, text: str, start: int, end: int) -> list[int]:
        """Where the lines of `text[start:end]` begin that may have to be kept."""
        if self._hits is None:
            return []
        found = [hit.start() for hit in self._hits.finditer(text, start, end)]
        if self.holders:
            found += [call.start() for call in rows.CALLS.finditer(text, start, end) if call[1] in self.holders]
        if found and self._targets is not None:
            found += [target.start() for target in self._targets.finditer(text, start, end)]
        return sorted({text.rfind("\n", start - 1, position) + 1 for position in found})

    def rows(self, computation: Computation, lines: Lines) -> Iterator[int]:
        """The rows to keep, by number."""
        heads = self._heads
        entry = self._wants.entry and computation.is_entry
        roots = [index for index, row in enumerate(lines.rows) if row[0]] if entry else []
        looked_at = heads.special | heads.parameters if entry else heads.special
        if looked_at.isdisjoint(lines.texts) and not roots:
            return
        found = compress(count(), map(looked_at.__contains__, lines.texts))
        for index in sorted({*found, *roots}) if roots else found:
            if self._is_kept(lines.texts[index], lines.rows[index], entry=entry):
                yield index

    def _is_kept(self, text: str, row: Row, *, entry: bool) -> bool:
        heads = self._heads
        if text in heads.wanted or (entry and (row[0] or text in heads.parameters)):
            return True
        return text in heads.calling and self._is_called_for(heads[text].opcode, row[3])

    def _is_called_for(self, opcode: str, tail: str) -> bool:
        if opcode == "custom-call" and any(target in tail for target in self._wants.targets):
            return True
        return bool(self.holders) and not self.holders.isdisjoint(rows.CALLS.findall(tail))

    def clear_end(self, text: str, start: int) -> int:
        """An index up to which nothing from `start` is wanted; no far one, since computations are passed over in turns."""
        if self._hits is None:
            return start
        known, end = self._clear
        if known is not text or end < start:
            hit = self._hits.search(text, start)
            self._clear = text, hit.start() if hit else len(text)
        end = min(self._clear[1], start + _WINDOW)
        for call in rows.CALLS.finditer(text, start, end) if self.holders else ():
            if call[1] in self.holders:
                return call.start()
        return end


def _any_of(wanted: Iterable[str]) -> re.Pattern[str]:
    """Finds the opcodes, their asynchronous halves included, where they stand before a parenthesis."""
    words = {opcodes.base_opcode(opcode) for opcode in wanted}
    firsts = "".join(sorted({word[0] for word in words}))  # few blanks have such a letter behind them
    rest = "|".join(sorted({re.escape(word[1:]) for word in words}))
    return re.compile(f" [{firsts}](?:{rest})[a-z-]*\\(")
