"""Construction of a module while its text streams by: instructions, opcodes, names, roots, scalars, problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.collective_kinds import DEVICE_ATTRIBUTES
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.read.consistency import NameCheck, RootCheck
from hlo_inspect.hlo.read.cursor import Span, count_lines
from hlo_inspect.hlo.read.fast_path import CALLS, RowTexts, read_row
from hlo_inspect.hlo.read.open_computation import CONDITION_ROOTS, OpenComputation
from hlo_inspect.hlo.read.selective import small_root
from hlo_inspect.hlo.rows import Head, Rows, join_rows
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shape_text import ShapeError
from hlo_inspect.hlo.values.shapes import TupleShape


class ModuleBuilder:
    """Builder of a module with the parts that its `wants` name."""

    def __init__(self, module: Module) -> None:
        wants = module.wants
        self.module = module
        self._heads = module.heads
        self.holders: set[str] = set()
        self._wants = wants
        self._reads_every_line = wants.reads_every_line
        self.names = NameCheck(module.note, module.computations)
        self._roots: RootCheck | None = None
        self._candidate: OpenComputation | None = None
        self._first_parameters = 0

    @property
    def has_unmarked_roots(self) -> bool:
        """True if a computation marked no root, so that its callers have to be checked."""
        return self._roots is not None

    # -- computations ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, line: int, *, is_entry: bool, in_place: bool = False, signature: str = "") -> OpenComputation:
        """Open a computation. One in place is never the entry; `signature` is its first line."""
        module = self.module
        computation = Computation(name, line, is_entry=is_entry, shared=module.shared)
        is_first = module.entry is None or not module.entry.is_entry
        if is_entry:
            if module.entry is not None and not is_first:
                module.note("HI010", f"{name} is a second ENTRY computation; the first is {module.entry.name}", line, name)
            module.entry, module.entry_signature = computation, signature
        if self._wants.checked or (self._wants.unused and is_entry):
            self.names.begin(computation)
        may_be_entry = self._wants.entry and not in_place and (module.entry is None or not module.entry.is_entry)
        opened = OpenComputation(computation, module.heads, in_place=in_place, may_be_entry=may_be_entry, signature=signature)
        opened.unparsed_before = module.unparsed_lines
        opened.reads_all = self._reads_every_line or may_be_entry or (self._wants.entry and is_entry)
        if is_entry and is_first and module.computation_count:
            scalar_roots = (read.root_opcode for read in module.computations.values() if read.packed_scalars is not None)
            roots = chain((skipped.root_opcode for skipped in module.skipped.values()), scalar_roots)
            opened.counts = any(root in CONDITION_ROOTS for root in roots)  # a loop's condition comes before the loop
        self._candidate = opened if may_be_entry else self._candidate
        return opened

    def end(self, opened: OpenComputation) -> None:
        """Close a computation and store its kept parts."""
        computation = opened.computation
        unmarked = None if opened.roots or opened.skipped_root else opened.last
        is_whole = not computation.is_truncated and self.module.unparsed_lines == opened.unparsed_before
        if opened.last is None and is_whole and self._reads_every_line:
            message = f"computation {computation.name} holds no instruction"
            self.module.note("HI015", message, computation.line, computation.name)
        if unmarked is not None and not computation.is_truncated:
            row, line = unmarked
            computation.root_opcode = row[2].rpartition(" ")[2]
            if self._reads_every_line and not opened.in_place:
                self._roots = self._roots or RootCheck(self.module)
                self._roots.end(computation, opened.signature, row[1], self._heads[row[2]].shape, line)
            if opened.instructions and (opened.instructions[-1].line, opened.instructions[-1].name) == (line, row[1]):
                opened.instructions[-1].is_root = True
            elif self._wants.entry and computation.is_entry:
                self.keep(opened, ("ROOT ", *row[1:]), line)
        if self._wants.checked:
            self.names.end()
        if self.module.computation_count == 0:
            self._first_parameters = opened.parameters
        computation.instructions = opened.instructions or ()
        if self._wants.graph and opened.parts:
            computation.rows = join_rows(opened.parts)
        opcodes = [column.opcodes for column in opened.columns]
        computation.opcodes = opcodes[0] if len(opcodes) == 1 else tuple(chain.from_iterable(opcodes))
        if opened.scalars:
            computation.keep_scalars(opened.feeding_scalars(unmarked[0][1] if unmarked is not None else None))
        self.register(computation, in_place=opened.in_place)

    def register(self, computation: Computation, *, in_place: bool = False) -> None:
        module = self.module
        module.computation_count += 1
        has_scalars = computation.packed_scalars is not None
        if self._reads_every_line or computation.instructions or has_scalars or computation.is_entry:
            if computation.name in module.computations or computation.name in module.skipped:
                module.note("HI007", f"computation {computation.name} is defined twice", computation.line, computation.name)
                computation.rename(f"{computation.name} (line {computation.line})")
            module.computations[computation.name] = computation
        elif computation.root_opcode is not None:
            module.root_opcodes[computation.name] = computation.root_opcode
        if computation.instructions and not computation.is_entry:
            self.holders.add(computation.name)
        if not in_place and (module.entry is None or not module.entry.is_entry):
            module.entry = computation  # without an ENTRY it is the last computation

    def finish(self, last_line: int) -> None:
        """End the module after its last computation.

        XLA marks the entry, prints it last and states its layout in the header: such a text without the mark is truncated. A
        hand-written text may lack the mark if its header states no layout, or if it has a single, unscheduled computation. If
        that computation's parameters differ from the header's, the text is truncated too.
        """
        module = self.module
        if self._wants.checked:
            self.names.finish()
        if self._roots is not None:
            self._roots.finish(module.computation_count)
        if module.computation_count == 0:
            module.note("HI002", "the module has a header but no computation", module.first_line)
        if module.entry is not None and not module.entry.is_entry:
            is_printed = "entry_computation_layout" in module.header.attributes
            may_be_unmarked = module.computation_count == 1 and not module.header.is_scheduled and self._first_fits_header()
            if is_printed and not may_be_unmarked and not module.problems.is_truncated:
                module.note("HI002", "the text ends before the ENTRY computation", last_line)
            self._make_entry(module.entry, self._candidate)
        if module.entry is not None and module.entry.name not in module.computations:
            module.computations[module.entry.name] = module.entry

    def _first_fits_header(self) -> bool:
        """Return False if the header and the first computation differ in their number of parameters."""
        stated = self.module.header.entry_layout
        return stated is None or not isinstance(stated[0], TupleShape) or len(stated[0].elements) == self._first_parameters

    def _make_entry(self, last: Computation, opened: OpenComputation | None) -> None:
        """Make the last computation the entry of a module without ENTRY, unless the text is truncated."""
        if self.module.problems.is_truncated:
            self.module.entry = None
            return
        last.make_entry()
        if opened is None or opened.computation is not last:
            return
        names = NameCheck(lambda _code, _message, _line, _subject: None, self.module.computations)  # reports nothing again
        names.begin(last)
        kept = {instruction.line for instruction in opened.instructions}
        for rows in opened.parts:
            names.check(rows)
            for index in self._wanted_rows(last, rows):
                if rows.lines[index] not in kept:
                    self.keep(opened, rows[index], rows.lines[index])
        if opened.last is not None and not opened.roots and opened.last[1] not in kept:
            row, line = opened.last
            self.keep(opened, ("ROOT ", *row[1:]), line)
        last.instructions = opened.instructions

    # -- rows -----------------------------------------------------------------------------------------------------------

    def take_rows(self, opened: OpenComputation, texts: RowTexts, line: int, *, is_printed: bool = False) -> bool:
        """Add rows of a computation, the first on `line`. Return False, adding nothing, if a shape is wrong.

        `is_printed`: `fast_path` read them.
        """
        try:
            heads = self._heads.column(texts.heads, texts.marks)
        except ShapeError:
            return False
        computation, wants = opened.computation, self._wants
        rows = Rows(texts.names, heads, texts.tails, range(line, line + len(texts.names)))
        tails = "\n".join(rows.tails)
        self.module.device_marks.note(tails, 0, len(tails), of_entry=computation.is_entry)
        self.module.noted = None
        if opened.may_be_entry or wants.graph:
            opened.parts.append(rows)
        if self._reads_every_line and heads.is_special:
            self._note_unknown(rows)
        if self._reads_every_line:
            opened.columns.append(heads)
        if wants.checked or (wants.unused and computation.is_entry):
            self.names.check(rows)
        if wants.loops and heads.holds_scalar:
            opened.take_scalars(rows)
        self._note_roots(opened, rows)
        opened.parameters += heads.opcodes.count("parameter")
        opened.last = (rows[len(rows) - 1], rows.lines[-1])
        if wants.operands:
            opened.define(rows.names, heads.heads)
        for index in self._wanted_rows(computation, rows):
            self.keep(opened, rows[index], rows.lines[index], is_printed=is_printed)
        if wants.checked and not self.names.knows_callees("\n".join([rows.tails[row] for row in heads.calling])):
            self.names.note_callees(zip(rows.lines, rows.tails, strict=True))
        if self._roots is not None:
            self._roots.check_callers(rows)
        return True

    def take_picked(self, opened: OpenComputation, picked: Sequence[tuple[int, Row]], lines: Span) -> int:
        """Keep the wanted rows of `lines`. Only the `picked` rows were read, each with its index.

        Return the number of lines.
        """
        computation, text = opened.computation, lines.text
        self.module.device_marks.note(text, lines.start, lines.end, of_entry=computation.is_entry)
        if picked:
            opened.unread_lines = lines
            opened.unread = None
        counted, line = lines.start, lines.line
        for position, row in picked:
            line += count_lines(text, counted, position)
            counted = position
            head = self._heads.find(row[2])
            if head is None:
                continue
            if head.is_wanted or (head.may_be_kept and self.is_called_for(head, row[3])):
                self.keep(opened, row, line)
        line_count = line - lines.line + count_lines(text, counted, lines.end)
        if self._wants.opcodes:
            computation.root_opcode = small_root(text, lines.start, lines.end)
        if self._wants.loops and opened.counts:
            opened.search_scalars(lines)
        if self.module.computation_count == 0:
            opened.parameters += text.count(" parameter(", lines.start, lines.end)
        opened.skipped_root = opened.skipped_root or text.rfind("ROOT ", lines.start, lines.end) >= 0
        if picked and not opened.skipped_root:
            last = text.rfind("\n", lines.start - 1, lines.end - 1) + 1
            last_row = read_row(text, last)
            opened.last = (last_row, lines.line + line_count - 1) if last_row is not None else None
        else:
            opened.last = None
        return line_count

    def _note_roots(self, opened: OpenComputation, rows: Rows) -> None:
        computation = opened.computation
        for index in sorted(rows.column.marked):
            opened.roots += 1
            if opened.roots > 1:
                message = f"computation {computation.name} has a second ROOT"
                self.module.note("HI010", message, rows.lines[index], rows.names[index])
            computation.root_opcode = rows.opcodes[index]

    # -- instructions of rows -------------------------------------------------------------------------------------------

    def _wanted_rows(self, computation: Computation, rows: Rows) -> Iterator[int]:
        """Yield the numbers of the rows to keep."""
        column = rows.column
        of_entry = self._wants.entry and computation.is_entry
        if not of_entry and not column.is_special:
            return
        for index, (head, tail) in enumerate(zip(column.heads, rows.tails, strict=True)):
            is_of_entry = of_entry and (index in column.marked or head.opcode == "parameter")
            if is_of_entry or head.is_wanted or (head.may_be_kept and self.is_called_for(head, tail)):
                yield index

    def is_called_for(self, head: Head, tail: str) -> bool:
        """Return True if an instruction is wanted for its custom-call target or callees, or as a collective that is unknown."""
        if head.opcode == "custom-call" and any(target in tail for target in self._wants.targets):
            return True
        if head.opcode not in TABLE:
            return any(f", {name}=" in tail for name in DEVICE_ATTRIBUTES)
        return bool(self.holders) and not self.holders.isdisjoint(CALLS.findall(tail))

    def keep(self, opened: OpenComputation, row: Row, line: int, *, is_printed: bool = False) -> None:
        """Keep an instruction.

        If it `is_printed`, its brackets are closed, and it stays unread unless its operands are needed now.
        """
        head, tail, metadata = self._heads[row[2]], row[3], ""
        looks_up = head.opcode in self._wants.operands
        is_unread = is_printed and not looks_up and "'" not in tail  # `fast_path` does not treat `'` as a quote
        metadata_start = tail.rfind(", metadata={") if is_unread and not self._wants.graph else -1
        if metadata_start >= 0:
            row, metadata = (*row[:3], tail[:metadata_start]), self.module.values.forms.shared(tail[metadata_start:])
        instruction = Instruction(opened.computation.enclosing(), row, head, line, metadata)
        try:
            if looks_up:
                instruction.resolve_operands(opened)
            if not is_unread:
                instruction.take_apart()
        except tokens.ScanError as error:
            self.module.note("HI001", f"{row[1]}: {error.message}", line, row[1])
            return
        opened.instructions.append(instruction)

    def _note_unknown(self, rows: Rows) -> None:
        for head, line, name in zip(rows.column.heads, rows.lines, rows.names, strict=True):
            if head.problem is not None:
                self.module.note(*head.problem, line, name)
