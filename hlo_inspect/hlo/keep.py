"""What is kept of a module while it streams by: wanted instructions, opcodes, names, roots, scalars, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, count, islice

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.cursor import Span
from hlo_inspect.hlo.device_marks import note_partitioning, note_shardings
from hlo_inspect.hlo.fast_path import CALLS, DEFINITION, LineRun, Part, Rows, columns, read_row
from hlo_inspect.hlo.head_records import HeadRecord, HeadRecords
from hlo_inspect.hlo.instruction import Head, Instruction
from hlo_inspect.hlo.loop_scalars import CONDITION_ROOTS, LoopScalars
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.names import NameCheck
from hlo_inspect.hlo.opcodes import calling_opcodes
from hlo_inspect.hlo.selective import small_root
from hlo_inspect.hlo.tokens import Row

MAX_DEFINITIONS = 1 << 20


class KnownHeads:
    """The heads of a computation's instructions so far, by name: of all that were read, and of the last lines that were not."""

    def __init__(self, table: HeadRecords) -> None:
        self._table = table
        self._read: dict[str, Head] = {}
        self._text = ""
        self._found: Mapping[str, str] | None = None

    def add(self, rows: Rows) -> None:
        records = self._table.records
        self._read.update(zip(rows.names, [records[text].head for text in rows.heads], strict=True))
        if len(self._read) > MAX_DEFINITIONS:  # the first ones go, many at once: taking one after the other is quadratic
            self._read = dict(islice(self._read.items(), len(self._read) - MAX_DEFINITIONS // 2, None))

    def add_text(self, text: str) -> None:
        """Takes the lines of a part; what they define is found when it is first asked for."""
        self._text, self._found = text, None

    def get(self, name: str) -> Head | None:
        known = self._read.get(name)
        if known is not None or not self._text:
            return known
        if self._found is None:
            self._found = dict(DEFINITION.findall(self._text))
        text = self._found.get(name)
        return self._table.records[text].head if text is not None and self._table.learn([text]) is not None else None


@dataclass(slots=True)
class _Open:
    """The computation that is being read: its definitions, its last row, how many roots it has, what its scalars are and
    whether they can say how often a loop runs. `candidate` are its rows where it may turn out to be the entry.
    """

    definitions: KnownHeads
    last: tuple[Row, int] | None = None
    roots: int = 0
    skipped_root: bool = False
    candidate: list[Rows] = field(default_factory=list)
    scalars: LoopScalars = field(default_factory=LoopScalars)
    counts: bool = True


class Keeper:
    """Fills a module with what its `wants` name."""

    def __init__(self, module: Module) -> None:
        wants = module.wants
        self.module = module
        self.heads = HeadRecords(wants.opcodes, module.heads)
        self.holders: set[str] = set()
        self._wants = wants
        self._reads_every_line = wants.reads_every_line
        self._names = NameCheck(module.note, module.computations)
        self._open = _Open(KnownHeads(self.heads))

    # -- computations ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, line: int, *, is_entry: bool) -> Computation:
        module = self.module
        computation = Computation(name, line, is_entry=is_entry, values=module.values)
        if is_entry:
            if module.entry is not None and module.entry.is_entry:
                module.note("HI010", f"a second ENTRY computation, {name}; the first is {module.entry.name}", line, name)
            module.entry = computation
        if self._wants.checked or (self._wants.entry and is_entry):
            self._names.begin(computation)
        self._open = _Open(KnownHeads(self.heads))
        if is_entry and module.computation_count:
            self._open.counts = any(  # a loop's condition comes before the loop
                read.scalars and read.root_opcode in CONDITION_ROOTS for read in module.computations.values()
            )
        return computation

    def end(self, computation: Computation) -> None:
        opened = self._open
        unmarked = None if opened.roots or opened.skipped_root else opened.last
        if unmarked is not None and not computation.is_cut_off:
            row, line = unmarked
            computation.root_opcode = row[2].rpartition(" ")[2]
            kept = computation.instructions
            if kept and kept[-1].line == line and kept[-1].name == row[1]:
                kept[-1].is_root = True
            elif self._wants.entry and computation.is_entry:
                self._keep(computation, ("ROOT ", *row[1:]), line)
        if self._wants.checked:
            self._names.end()
        if self._wants.loops:
            computation.scalars = opened.scalars.kept(computation, unmarked[0][1] if unmarked is not None else None)
        self._register(computation)

    def _register(self, computation: Computation) -> None:
        module = self.module
        module.computation_count += 1
        if self._reads_every_line or computation.instructions or computation.scalars or computation.is_entry:
            if computation.name in module.computations:
                module.note("HI007", f"computation {computation.name} is defined twice", computation.line, computation.name)
                computation.name = f"{computation.name} (line {computation.line})"
            module.computations[computation.name] = computation
        elif computation.root_opcode is not None:
            module.root_opcodes[computation.name] = computation.root_opcode
        if computation.instructions and not computation.is_entry:
            self.holders.add(computation.name)
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
        """To be called after the module's last computation."""
        module = self.module
        if self._wants.checked:
            self._names.finish()
        if module.computation_count == 0:
            module.note("HI002", "the module has a header and no computation", module.first_line)
        if module.entry is not None and not module.entry.is_entry:
            self._make_entry(module.entry)
        if module.entry is not None and module.entry.name not in module.computations:
            module.computations[module.entry.name] = module.entry

    def _make_entry(self, last: Computation) -> None:
        """No computation is marked ENTRY: the last one is it, if the text does not end before it could come."""
        if self.module.problems.hold_a_cut:
            self.module.entry = None
            return
        last.is_entry = True
        names = NameCheck(lambda _code, _message, _line, _subject: None, self.module.computations)  # what is wrong was noted
        names.begin(last)
        kept = {instruction.line for instruction in last.instructions}
        for rows in self._open.candidate:
            distinct = self.heads.learn(rows.heads) or set()
            names.check(rows, self.heads.opcodes_of(rows.heads))
            for index in self._wanted_rows(last, rows, distinct):
                if rows.line + index not in kept:
                    self._keep(last, rows.rows[index], rows.line + index)
        if self._wants.entry and self._open.last is not None and not self._open.roots and self._open.last[1] not in kept:
            row, line = self._open.last
            self._keep(last, ("ROOT ", *row[1:]), line)

    # -- rows -----------------------------------------------------------------------------------------------------------

    def reads_all(self, computation: Computation) -> bool:
        """Whether every line of a computation is wanted."""
        if self._reads_every_line or (self._wants.entry and computation.is_entry):
            return True
        return self._may_be_entry(computation)

    def _may_be_entry(self, computation: Computation) -> bool:
        """Whether the rows of a computation that is not marked ENTRY are needed later in case that none is."""
        entry = self.module.entry
        return self._wants.entry and not computation.is_entry and not (entry is not None and entry.is_entry)

    def take_row(self, computation: Computation, row: Row, line: int) -> bool:
        """Takes one row that `parser` read; false, with nothing taken, where its shape makes no sense."""
        distinct = self.heads.learn([row[2]])
        if distinct is None:
            return False
        note_partitioning(self.module, row[3], 0, len(row[3]))
        rows = columns([row], line)
        self._take(computation, rows, distinct)
        if self._wants.checked and not self._names.knows_callees(row[3]):
            self._names.note_callees(rows)
        return True

    def take_run(self, run: LineRun, line: int, text: str, opened: Computation | None) -> tuple[bool, Computation | None]:
        """Takes a run that starts on `line`, in the computation that is open, if one is: whether it was taken, and the
        computation that is open after it. Nothing is taken where a shape makes no sense.
        """
        distinct = self.heads.learn(run.heads)
        if distinct is None:
            return False, opened
        note_partitioning(self.module, text, run.start, run.end)
        opcodes = self.heads.opcodes_of(run.heads)
        special = self._special_parts(run, opcodes, distinct)
        for number, part in enumerate(run.parts):
            if number in special:
                opened = self._take_part(run, part, line, opened)
                continue
            computation = Computation(part.name or "", line + part.line - 1, is_entry=False, values=self.module.values)
            computation.opcodes = opcodes[part.first : part.end]
            computation.root_opcode = opcodes[run.roots[number]]
            if self._wants.graph:
                computation.keep_rows(run.rows[part.first : part.end], line + part.line)
            self._register(computation)
        if self._wants.checked and not self._names.knows_callees(run.tails_of(calling_opcodes(set(opcodes)), opcodes)):
            for part in run.parts:
                self._names.note_callees(run.part(part, line))
        return True, opened

    def _special_parts(self, run: LineRun, opcodes: Sequence[str], distinct: set[str]) -> set[int]:
        """The parts, by number, of which more may have to be kept than opcodes, or with which something may be wrong."""
        if not run.has_one_root_each or run.parts[0].name is None or not run.parts[-1].is_closed:
            return set(range(len(run.parts)))
        found = {number for number, part in enumerate(run.parts) if part.is_entry}
        found.add(len(run.parts) - 1)  # the entry, if none is marked
        records = self.heads.records
        looked_at = {text for text in distinct if _is_special(records[text])}
        if looked_at:
            found |= run.parts_with(looked_at)
        if self._wants.loops:
            found.update(number for number, root in enumerate(run.roots) if records[run.heads[root]].holds_scalar)
        if self._wants.checked:
            found.update(self._names.doubtful(run, opcodes))
        return found

    def _take_part(self, run: LineRun, part: Part, line: int, opened: Computation | None) -> Computation | None:
        """Takes a part of a run: the computation that is open after it."""
        if part.name is not None:
            opened = self.begin(part.name, line + part.line - 1, is_entry=part.is_entry)
        if opened is not None and part.first < part.end:
            rows = run.part(part, line)
            self._take(opened, rows, set(rows.heads))
        if opened is not None and part.is_closed:
            self.end(opened)
            return None
        return opened

    def _take(self, computation: Computation, rows: Rows, distinct: set[str]) -> None:
        """Takes rows of the computation that was begun; `distinct` are their heads."""
        opened, wants, records = self._open, self._wants, self.heads.records
        opcodes = self.heads.opcodes_of(rows.heads)
        if computation.is_entry:
            note_shardings(self.module, "\n".join(rows.tails))
        if self._may_be_entry(computation):
            opened.candidate.append(rows)
        if self._reads_every_line:
            computation.add_opcodes(opcodes)
            unknown = {text for text in distinct if records[text].problem is not None}
            if unknown:
                self._note_unknown(rows, unknown)
        if wants.graph:
            computation.keep_rows(list(rows.rows), rows.line)
        if wants.checked or (wants.entry and computation.is_entry):
            self._names.check(rows, opcodes)
        if wants.loops and any(records[text].holds_scalar for text in distinct):
            opened.scalars.take(rows.rows, rows.line, self.heads)
        for index in compress(count(), [row[0] for row in rows.rows]):
            opened.roots += 1
            if opened.roots > 1:
                message = f"a second ROOT in computation {computation.name}"
                self.module.note("HI010", message, rows.line + index, rows.names[index])
            computation.root_opcode = opcodes[index]
        opened.last = (rows.rows[-1], rows.line + len(rows.rows) - 1)
        if wants.operands:
            opened.definitions.add(rows)
        for index in self._wanted_rows(computation, rows, distinct):
            self._keep(computation, rows.rows[index], rows.line + index)

    def take_picked(self, computation: Computation, picked: Sequence[tuple[int, Row]], lines: Span) -> int:
        """Keeps what is wanted of lines of which only the `picked` ones were read, each with its index in the text: how many
        lines there are.
        """
        opened, text = self._open, lines.text
        note_partitioning(self.module, text, lines.start, lines.end)
        if computation.is_entry:
            note_shardings(self.module, text[lines.start : lines.end])
        if picked:
            opened.definitions.add_text(text[lines.start - 1 : lines.end])
        counted, line = lines.start, lines.line
        for position, row in picked:
            line += text.count("\n", counted, position)
            counted = position
            if self.heads.learn([row[2]]) is None:
                continue
            record = self.heads.records[row[2]]
            if record.is_wanted or (record.may_be_kept and self._is_called_for(record, row[3])):
                self._keep(computation, row, line)
        line_count = line - lines.line + text.count("\n", counted, lines.end)
        if self._wants.opcodes:
            computation.root_opcode = small_root(text, lines.start, lines.end)
        if self._wants.loops and opened.counts:
            opened.scalars.search(text, lines.start, lines.end, lines.line, self.heads)
        opened.skipped_root = opened.skipped_root or text.rfind("ROOT ", lines.start, lines.end) >= 0
        if picked and not opened.skipped_root:
            last = text.rfind("\n", lines.start - 1, lines.end - 1) + 1
            row_there = read_row(text, last)
            opened.last = (row_there, lines.line + line_count - 1) if row_there is not None else None
        else:
            opened.last = None
        return line_count

    # -- what is kept of a row ------------------------------------------------------------------------------------------

    def _wanted_rows(self, computation: Computation, rows: Rows, distinct: set[str]) -> Iterator[int]:
        """The rows to keep, by number."""
        records = self.heads.records
        of_entry = self._wants.entry and computation.is_entry
        wanted: set[str] = set()
        callers: set[str] = set()
        for text in distinct:
            record = records[text]
            if record.is_wanted or (of_entry and record.head.opcode == "parameter"):
                wanted.add(text)
            elif record.may_be_kept:
                callers.add(text)
        if not (wanted or callers or of_entry):
            return
        for index, (root, _, head, tail) in enumerate(rows.rows):
            if head in wanted or (of_entry and root) or (head in callers and self._is_called_for(records[head], tail)):
                yield index

    def _is_called_for(self, record: HeadRecord, tail: str) -> bool:
        """Whether an instruction is wanted for its custom-call target, or for what it calls."""
        if record.head.opcode == "custom-call" and any(target in tail for target in self._wants.targets):
            return True
        return bool(self.holders) and not self.holders.isdisjoint(CALLS.findall(tail))

    def _keep(self, computation: Computation, row: Row, line: int) -> None:
        try:
            instruction = Instruction(computation, row, self.heads.records[row[2]].head, line)
            if instruction.opcode in self._wants.operands:
                instruction.resolve_operands(self._open.definitions)
        except tokens.ScanError as error:
            self.module.note("HI001", f"{row[1]}: {error.message}", line, row[1])
            return
        computation.keep(instruction)

    def _note_unknown(self, rows: Rows, unknown: set[str]) -> None:
        for index, row in enumerate(rows.rows):
            problem = self.heads.records[row[2]].problem if row[2] in unknown else None
            if problem is not None:
                self.module.note(*problem, rows.line + index, row[1])


def _is_special(record: HeadRecord) -> bool:
    return record.is_wanted or record.may_be_kept or record.problem is not None
