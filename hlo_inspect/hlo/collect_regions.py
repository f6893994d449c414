"""What is kept of computations that are read many at a time: of most of them little more than their opcodes."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.hlo.collect import Collector
from hlo_inspect.hlo.distribution import note_partitioning, note_shardings
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import calling_opcodes
from hlo_inspect.hlo.regions import Block, Region


class RegionCollector(Collector):
    """Takes whole computations too, as `regions` finds them."""

    def region(self, region: Region, line: int, text: str) -> bool:
        """Takes whole computations, the first one's first line at `line`; false, with nothing taken, where a shape makes no
        sense.
        """
        opcodes = list(map(self._heads.opcodes.__getitem__, region.texts))
        if self._heads.unreadable and not self._heads.unreadable.isdisjoint(region.texts):
            return False
        note_partitioning(self.module, text, region.start, region.end)
        blocks = region.blocks()
        special = self._special(region, blocks, opcodes)
        found = []
        for number, block in enumerate(blocks):
            if number in special:
                computation = self._block(region, block, line)
            else:
                name, _, first, behind, offset = block
                computation = Computation(name, line + offset, is_entry=False, values=self.module.values)
                computation.opcodes = opcodes[first:behind]
                computation.root_opcode = opcodes[region.roots[number]]
                self._register(computation)
            found.append(computation)
        if self._graph:
            for computation, (_, _, first, behind, _) in zip(found, blocks, strict=True):
                computation.keep_rows(region.items[first:behind], computation.line + 1)
        if self._checked and not self._names.knows_callees(region.text_of(calling_opcodes(opcodes), opcodes)):
            for block in blocks:
                self._names.note_callees(self._rows_of(region, block, line))
        return True

    def _special(self, region: Region, blocks: Sequence[Block], opcodes: Sequence[str]) -> set[int]:
        """The computations, by number, of which more may have to be kept than opcodes, or with which something may be wrong."""
        if not region.is_regular:
            return set(range(len(blocks)))
        found = {number for number, (_, is_entry, _, _, _) in enumerate(blocks) if is_entry}
        found.add(len(blocks) - 1)  # the entry, if none is marked
        found.update(region.holding(self._heads.special))
        if self._loops and not self._heads.scalar.isdisjoint(region.texts):
            scalar = self._heads.scalar
            found.update(number for number, root in enumerate(region.roots) if region.texts[root] in scalar)
        if self._checked:
            found.update(self._names.doubtful(region, opcodes, blocks))
        return found

    def _block(self, region: Region, block: Block, line: int) -> Computation:
        name, is_entry, _, _, offset = block
        computation = self.begin(name, line + offset, is_entry=is_entry)
        lines = self._rows_of(region, block, line)
        if is_entry:
            note_shardings(self.module, lines.text)
        self._take(computation, lines)
        self.end(computation)
        return computation

    def _rows_of(self, region: Region, block: Block, line: int) -> Lines:
        _, _, first, behind, offset = block
        return Lines(region.items[first:behind], region.texts[first:behind], self._heads, line + offset + 1)
