"""What is kept of a module while it streams by: wanted instructions, opcodes, names, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress

from hlo_inspect.hlo import rows, scan
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.distribution import note_partitioning, note_shardings
from hlo_inspect.hlo.faults import FaultLog
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.lines import Lines, Part, Reach
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.names import NameCheck, Silence
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.scalars import Scalars, may_count
from hlo_inspect.hlo.selection import Selection
from hlo_inspect.hlo.skipped import skip, small_root


@dataclass(slots=True)
class _Open:
    """The computation at hand: definitions in reach, its last row, how many roots it has, what its scalars are and whether they
    can tell a loop's trips.
    """

    reach: Reach = field(default_factory=Reach)
    last: tuple[Row, int] | None = None
    roots: int = 0
    skipped_root: bool = False
    candidate: list[Lines] = field(default_factory=list)
    scalars: Scalars = field(default_factory=Scalars)
    counts: bool = True


class Collector(FaultLog):
    """Fills a `Module` with what its `wants` name."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        wants = module.wants
        self._every_line = wants.reads_every_line
        self._checked = wants.checked
        self._entry = wants.entry
        self._graph = wants.graph
        self._loops = wants.loops
        self._with_operands = wants.operands
        self._heads = Heads(wants.opcodes, module.heads)
        self._selection = Selection(wants, self._heads)
        self._names = NameCheck(self, module.computations)
        self._open = _Open()

    # -- computations ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, line: int, *, is_entry: bool) -> Computation:
        module = self.module
        computation = Computation(name, line, is_entry=is_entry, values=module.values)
        if is_entry:
            if module.entry is not None and module.entry.is_entry:
                self.problem("HI010", f"a second ENTRY computation, {name}; the first is {module.entry.name}", line, name)
            module.entry = computation
        if self._checked or (self._entry and is_entry):
            self._names.begin(computation)
        self._open = _Open()
        if is_entry and module.computation_count:
            self._open.counts = may_count(module.computations.values())  # a loop's condition stands before the loop
        return computation

    def end(self, computation: Computation) -> None:
        opened = self._open
        unmarked = None if opened.roots or opened.skipped_root else opened.last
        if unmarked is not None and not computation.is_cut_off:
            row, line = unmarked
            computation.root_opcode = self._heads[row[2]].opcode
            kept = computation.instructions
            if kept and kept[-1].line == line and kept[-1].name == row[1]:
                kept[-1].is_root = True
            elif self._entry and computation.is_entry:
                self._keep(computation, self._as_root(*unmarked), 0)
        if self._checked:
            self._names.end()
        if self._loops:
            computation.scalars = opened.scalars.kept(computation, unmarked[0][1] if unmarked is not None else None)
        self._register(computation)

    def _register(self, computation: Computation) -> None:
        module = self.module
        module.computation_count += 1
        if self._every_line or computation.instructions or computation.scalars or computation.is_entry:
            if computation.name in module.computations:
                self.problem("HI007", f"computation {computation.name} is defined twice", computation.line, computation.name)
                computation.name = f"{computation.name} (line {computation.line})"
            module.computations[computation.name] = computation
        elif computation.root_opcode is not None:
            module.root_opcodes[computation.name] = computation.root_opcode
        if computation.instructions and not computation.is_entry:
            self._selection.holders.add(computation.name)
        if module.entry is None or not module.entry.is_entry:
            module.entry = computation  # without an ENTRY the last one is it

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a computation in place: what comes after it goes on where the module was."""
        opened, entry = self._open, self.module.entry
        try:
            yield
        finally:
            self._open, self.module.entry = opened, entry

    def finish(self) -> None:
        """To be called behind the module's last computation."""
        module = self.module
        if self._checked:
            self._names.finish()
        if module.computation_count == 0:
            self.problem("HI002", "the module has a header and no computation", module.first_line)
        if module.entry is not None and not module.entry.is_entry:
            self._without_entry(module.entry)
        if module.entry is not None and module.entry.name not in module.computations:
            module.computations[module.entry.name] = module.entry

    def _without_entry(self, last: Computation) -> None:
        """No computation is marked ENTRY: the last one is it, if the text does not end before it could come."""
        if self.is_cut_off:
            self.module.entry = None
            return
        last.is_entry = True
        names = NameCheck(Silence(), self.module.computations)
        names.begin(last)
        kept = {instruction.line for instruction in last.instructions}
        for lines in self._open.candidate:
            names.check(lines)
            for index in self._selection.rows(last, lines):
                if lines.first + index not in kept:
                    self._keep(last, lines, index)
        if self._open.last is not None and not self._open.roots and self._open.last[1] not in kept:
            self._keep(last, self._as_root(*self._open.last), 0)

    # -- lines ----------------------------------------------------------------------------------------------------------

    def lines(self, computation: Computation, cursor: Cursor, end: int) -> bool:
        """Takes the whole lines from the cursor to `end`; false, with nothing taken, where they have to be read one by one."""
        text, start = cursor.text, cursor.position
        note_partitioning(self.module, text, start, end)
        if computation.is_entry:
            note_shardings(self.module, text[start:end])
        if not self._reads_all(computation):
            return self._pick(computation, cursor, end)
        found = rows.find_rows(text, start, end)
        if found is None or not self._read(computation, found, cursor.line):
            return False
        if self._graph:
            computation.keep_rows(found, cursor.line)
        cursor.advance(end)
        return True

    def _pick(self, computation: Computation, cursor: Cursor, end: int) -> bool:
        """Keeps what is wanted of the lines from the cursor to `end`, and reads no others; false as `lines`."""
        text, start, opened = cursor.text, cursor.position, self._open
        if text.rfind("=\n", start, end) >= 0:  # a computation written in place may hide the closing brace
            return False
        picked = rows.pick_rows(text, start, end, self._selection.lines(text, start, end))
        if picked is None:
            return False
        if picked:
            opened.reach.add(Part(text[start - 1 : end], self._heads))
        counted, line = start, cursor.line
        for position, row in picked:
            line += text.count("\n", counted, position)
            counted = position
            lines = Lines([row], [row[2]], self._heads, line)
            for index in self._selection.rows(computation, lines):
                self._keep(computation, lines, index)
        if not self._selection.is_empty:
            computation.root_opcode = small_root(text, start, end)
        if self._loops and opened.counts:
            opened.scalars.search(text, start, end, cursor.line, self._heads)
        opened.skipped_root = opened.skipped_root or text.rfind("ROOT ", start, end) >= 0
        cursor.advance(end, line - cursor.line + text.count("\n", counted, end))
        last = rows.find_row(text, text.rfind("\n", start - 1, end - 1) + 1) if picked and not opened.skipped_root else None
        opened.last = (last[0], cursor.line - 1) if last is not None else None
        return True

    def skippable(self, text: str, start: int, line: int) -> int:
        """The index up to which whole computations from `start`, in line `line`, hold nothing that is wanted; `start` where
        nothing is skipped.
        """
        if self._every_line or self._entry:
            return start
        clear_end = self._selection.clear_end(text, start)
        end = skip(self.module, self._heads, text, start, clear_end, line)
        note_partitioning(self.module, text, start, end)
        return end

    def row(self, computation: Computation, row: Row, line: int) -> bool:
        """Takes one instruction; false where its shape makes no sense."""
        if computation.is_entry:
            note_shardings(self.module, row[3])
        if not self._read(computation, [row], line):
            return False
        if self._graph:
            computation.keep_rows([row], line)
        return True

    def _entry_may_be(self, computation: Computation) -> bool:
        """Whether a computation that is not marked ENTRY has to be kept at hand in case that none is."""
        entry = self.module.entry
        return self._entry and not computation.is_entry and not (entry is not None and entry.is_entry)

    def _reads_all(self, computation: Computation) -> bool:
        return self._every_line or (self._entry and computation.is_entry) or self._entry_may_be(computation)

    def _read(self, computation: Computation, found: Sequence[Row], line: int) -> bool:
        """Takes rows of a part of a computation; false where a shape makes no sense."""
        lines = Lines(found, [row[2] for row in found], self._heads, line)
        if self._heads.unreadable and not self._heads.unreadable.isdisjoint(lines.texts):
            return False
        self._take(computation, lines)
        if self._checked and not self._names.knows_callees(lines.text):
            self._names.note_callees(lines)
        return True

    def _take(self, computation: Computation, lines: Lines) -> None:
        found, line, opened = lines.rows, lines.first, self._open
        if self._entry_may_be(computation):
            opened.candidate.append(lines)
        if self._every_line:
            computation.add_opcodes(lines.opcodes)
            if self._heads.unknown:
                self._note_unknown(lines)
        if self._checked or (self._entry and computation.is_entry):
            self._names.check(lines)
        if self._loops and not self._heads.scalar.isdisjoint(lines.texts):
            opened.scalars.take(found, line, self._heads)
        for index in compress(range(len(found)), [row[0] for row in found]):
            opened.roots += 1
            if opened.roots > 1:
                self.problem("HI010", f"a second ROOT in computation {computation.name}", line + index, found[index][1])
            computation.root_opcode = lines.head(index).opcode
        if found:
            opened.last = (found[-1], line + len(found) - 1)
        if self._with_operands:
            opened.reach.add(lines)
        for index in self._selection.rows(computation, lines):
            self._keep(computation, lines, index)

    def _keep(self, computation: Computation, lines: Lines, index: int) -> None:
        row = lines.rows[index]
        try:
            instruction = Instruction(computation, row, lines.head(index), lines.first + index)
            if instruction.opcode in self._with_operands:
                instruction.resolve_operands(self._open.reach)
        except scan.ScanError as error:
            self.problem("HI001", f"{row[1]}: {error.message}", lines.first + index, row[1])
            return
        computation.keep(instruction)

    def _note_unknown(self, lines: Lines) -> None:
        for index, row in enumerate(lines.rows):
            if row[2] in self._heads.unknown:
                self.problem(*self._heads.unknown[row[2]], lines.first + index, row[1])

    def _as_root(self, row: Row, line: int) -> Lines:
        """The last row of a computation without a marked root, as its root."""
        return Lines([("ROOT ", *row[1:])], [row[2]], self._heads, line)
