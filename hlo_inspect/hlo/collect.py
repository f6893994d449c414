"""What is kept of a module while it streams by: wanted instructions, opcodes, names, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hlo_inspect.errors import Location, ParseError
from hlo_inspect.hlo import opcodes, rows, scan
from hlo_inspect.hlo.blocks import Block
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.instruction import Head, Instruction
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.names import NameCheck, Silence
from hlo_inspect.hlo.problems import Problem
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.scalars import Scalars
from hlo_inspect.hlo.skipped import note_skipped, small_root

_WINDOW = 1 << 15  # definitions that stay in reach besides those of the lines at hand

_STOPS = ("ENTRY ", "HloModule ", "=\n")  # what the reader has to see itself; `=` before a computation in place
_TILING = re.compile(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = re.compile(r"sharding=\{mesh\[[^\]\n]*+\]")
_SHARDING = re.compile(r', sharding=(\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\})')
_PARTITIONING = re.compile(r'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+)"', re.ASCII)


class Collector:
    """Fills a `Module` with what its `wants` name. `strict` raises the first problem as a `ParseError`."""

    def __init__(self, module: Module, *, strict: bool) -> None:
        self.module = module
        self.strict = strict
        wants = module.wants
        self._every_line = wants.reads_every_line
        self._checked = wants.checked
        self._entry = wants.entry
        self._graph = wants.graph
        self._loops = wants.loops
        self._targets = wants.targets
        self._heads = Heads(wants.opcodes)
        words = sorted({re.escape(opcodes.base_opcode(opcode)) for opcode in wants.opcodes})
        self._hits = re.compile(f" (?:{'|'.join(words)})[a-z-]*\\(") if words else None
        self._scalars = Scalars()
        self._kept_names: set[str] = set()
        self._names = NameCheck(self, module.computations)
        self._recent: dict[str, Head] = {}
        self._older: dict[str, Head] = {}
        self._last: tuple[Row, Head, int] | None = None
        self._roots = 0
        self._candidate: list[Lines] = []
        self._is_cut_off = False
        self._skipped_root = False

    # -- computations ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, line: int, *, is_entry: bool) -> Computation:
        module = self.module
        module.computation_count += 1
        computation = Computation(name, line, is_entry=is_entry)
        if is_entry:
            if module.entry is not None and module.entry.is_entry:
                self.problem("HI010", f"a second ENTRY computation, {name}; the first is {module.entry.name}", line, name)
            module.entry = computation
        if self._checked or (self._entry and is_entry):
            self._names.begin(computation)
        self._candidate = []
        if self._loops:
            self._scalars = Scalars()
        self._recent, self._older, self._last, self._roots, self._skipped_root = {}, {}, None, 0, False
        return computation

    def end(self, computation: Computation) -> None:
        module = self.module
        unmarked = None if self._roots or self._skipped_root else self._last
        if unmarked is not None and not computation.is_cut_off:
            row, head, line = unmarked
            computation.root_opcode = head.opcode
            kept = computation.instructions
            if kept and kept[-1].line == line and kept[-1].name == row[1]:
                kept[-1].is_root = True
            elif self._entry and computation.is_entry:
                self._keep(computation, Lines([("ROOT ", *row[1:])], [row[2]], [head], line, row[3], 0, len(row[3])), 0)
        if self._checked:
            self._names.end()
        if self._loops:
            computation.scalars = self._scalars.kept(computation, unmarked[0][1] if unmarked is not None else None)
        if self._every_line or computation.instructions or computation.scalars or computation.is_entry:
            if computation.name in module.computations:
                self.problem("HI007", f"computation {computation.name} is defined twice", computation.line, computation.name)
                computation.name = f"{computation.name} (line {computation.line})"
            module.computations[computation.name] = computation
        elif computation.root_opcode is not None:
            module.root_opcodes[computation.name] = computation.root_opcode
        if computation.instructions and not computation.is_entry:
            self._kept_names.add(computation.name)
        if module.entry is None or not module.entry.is_entry:
            module.entry = computation  # without an ENTRY the last one is it

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a computation in place: what comes after it goes on where the module was."""
        kept = (self._recent, self._older, self._last, self._roots, self._skipped_root, self._candidate, self.module.entry)
        try:
            yield
        finally:
            self._recent, self._older, self._last, self._roots, self._skipped_root, self._candidate, self.module.entry = kept

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
        if self._is_cut_off:
            self.module.entry = None
            return
        last.is_entry = True
        names = NameCheck(Silence(), self.module.computations)
        names.begin(last)
        kept = {instruction.line for instruction in last.instructions}
        for lines in self._candidate:
            names.check(lines)
            for index in self._wanted(last, lines):
                if lines.first + index not in kept:
                    self._keep(last, lines, index)
        if self._last is not None and not self._roots and self._last[2] not in kept:
            row, head, line = self._last
            self._keep(last, Lines([("ROOT ", *row[1:])], [row[2]], [head], line, row[3], 0, len(row[3])), 0)

    def blocks(self, blocks: Sequence[Block], line: int, text: str) -> int:
        """Takes whole computations, the first one's header at `line`; says how many it took. The one behind them has a shape
        that makes no sense.
        """
        texts = [row[2] for block in blocks for row in block.rows]
        heads = [self._heads[text] for text in texts]
        at = 0
        taken: list[Lines] = []
        for block in blocks:
            end = at + len(block.rows)
            lines = Lines(block.rows, texts[at:end], heads[at:end], line + block.line + 1, text, block.start, block.end)
            if self._heads.unreadable and not self._heads.unreadable.isdisjoint(lines.texts):
                break
            taken.append(lines)
            computation = self.begin(block.name, line + block.line, is_entry=block.is_entry)
            if block.is_entry:
                self._note_shardings(computation, lines.text)
            self._take(computation, lines)
            if self._graph:
                computation.keep_text(lines.first, text[block.start - 1 : block.end])
            self.end(computation)
            at = end
        if self._checked and taken and not self._names.knows_callees(text[blocks[0].start : blocks[len(taken) - 1].end]):
            for lines in taken:
                self._names.note_callees(lines)
        return len(taken)

    # -- lines ----------------------------------------------------------------------------------------------------------

    def lines(self, computation: Computation, cursor: Cursor, end: int) -> bool:
        """Takes the whole lines from the cursor to `end`; false, with nothing taken, where they have to be read one by one."""
        text, start = cursor.text, cursor.position
        if self.strict and start < end:  # the grammar looks at every attribute too
            return False
        self.note_partitioning(text, start, end)
        if computation.is_entry:
            self._note_shardings(computation, text[start:end])
        if not self._reads(computation, text, start, end):
            if text.find("=\n", start, end) >= 0:  # a computation written in place may hide the closing brace
                return False
            if self._hits is not None:
                computation.root_opcode = small_root(text, start, end)
            if self._loops:
                self._scalars.search(text, start, end, cursor.line, self._heads)
            self._last = None
            self._skipped_root = self._skipped_root or text.find("ROOT ", start, end) >= 0
            cursor.advance(end)
            return True
        found = rows.find_rows(text, start, end, balanced=self._checked)
        if found is None or not self._read(computation, found, cursor.line, text[start:end]):
            return False
        if self._graph:
            computation.keep_text(cursor.line, text[start - 1 : end])
        cursor.advance(end)
        return True

    def skippable(self, text: str, start: int, line: int) -> int:
        """The index up to which whole computations from `start`, in line `line`, hold nothing that is wanted; `start` where
        nothing is skipped.
        """
        if self._every_line or self._entry or self._hits is None:
            return start
        hit = self._hits.search(text, start)  # first: the next one bounds all other searches
        limit = hit.start() if hit else len(text)
        for mark in _STOPS:
            stop = text.find(mark, start, limit)
            limit = stop if stop >= 0 else limit
        for call in rows.CALLS.finditer(text, start, limit) if self._kept_names else ():
            if call[1] in self._kept_names:
                limit = call.start()
                break
        close = text.rfind("\n}", start, limit)
        closer = rows.CLOSER.match(text, close + 1) if close >= 0 else None
        if closer is None or closer.end() > limit + 1:
            return start
        self.note_partitioning(text, start, closer.end())
        if self._hits is not None:
            note_skipped(self.module, self._heads, text, start, limit, line)
        self.module.computation_count += text.count("\n}", start, limit)
        return closer.end()

    def row(self, computation: Computation, row: Row, line: int) -> bool:
        """Takes one instruction; false where its shape makes no sense."""
        self._note_shardings(computation, row[3])
        if not self._read(computation, [row], line, row[3]):
            return False
        if self._graph:
            computation.keep_text(line, row)
        return True

    def _entry_may_be(self, computation: Computation) -> bool:
        """Whether a computation that is not marked ENTRY has to be kept at hand in case that none is."""
        entry = self.module.entry
        return self._entry and not computation.is_entry and not (entry is not None and entry.is_entry)

    def _reads(self, computation: Computation, text: str, start: int, end: int) -> bool:
        if self._every_line or (self._entry and computation.is_entry) or self._entry_may_be(computation):
            return True
        if self._hits is None:
            return False
        return self._hits.search(text, start, end) is not None or self._calls_kept(text, start, end)

    def _calls_kept(self, text: str, start: int, end: int) -> bool:
        return bool(self._kept_names) and not self._kept_names.isdisjoint(rows.CALLS.findall(text, start, end))

    def note_partitioning(self, text: str, start: int, end: int) -> None:
        """Looks for what tells a module before partitioning, and for how many devices it is."""
        module = self.module
        if not module.header.is_scheduled:
            module.partitioning_targets.update(_PARTITIONING.findall(text, start, end))
        if not module.header.states_devices and not module.tiling:
            tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
            module.tiling = tiling[0] if tiling else ""

    def _note_shardings(self, computation: Computation, text: str) -> None:
        if computation.is_entry:
            self.module.shardings.update(dict.fromkeys(_SHARDING.findall(text)))

    def _read(self, computation: Computation, found: Sequence[Row], line: int, text: str) -> bool:
        """Takes rows of a part of a computation; false where a shape makes no sense. What follows may refer to them."""
        texts = [row[2] for row in found]
        heads = [self._heads[text] for text in texts]
        if self._heads.unreadable and not self._heads.unreadable.isdisjoint(texts):
            return False
        self._remember({row[1]: head for row, head in zip(found, heads, strict=True)}, single=len(found) == 1)
        lines = Lines(found, texts, heads, line, text, 0, len(text))
        self._take(computation, lines)
        if self._checked and not self._names.knows_callees(text):
            self._names.note_callees(lines)
        return True

    def _take(self, computation: Computation, lines: Lines) -> None:
        found, heads, line = lines.rows, lines.heads, lines.first
        if self._entry_may_be(computation):
            self._candidate.append(lines)
        if self._every_line:
            computation.add_opcodes([head.opcode for head in heads])
            if self._heads.unknown:
                self._note_unknown(found, line)
        if self._checked or (self._entry and computation.is_entry):
            self._names.check(lines)
        if self._loops and not self._heads.scalar.isdisjoint(lines.texts):
            self._scalars.take(found, line, self._heads)
        for index in [index for index, row in enumerate(found) if row[0]]:
            self._roots += 1
            if self._roots > 1:
                self.problem("HI010", f"a second ROOT in computation {computation.name}", line + index, found[index][1])
            computation.root_opcode = heads[index].opcode
        if found:
            self._last = (found[-1], heads[-1], line + len(found) - 1)
        for index in self._wanted(computation, lines):
            self._keep(computation, lines, index)

    def _remember(self, definitions: dict[str, Head], *, single: bool) -> None:
        if single:
            self._recent.update(definitions)
            if len(self._recent) > _WINDOW:
                self._recent, self._older = {}, self._recent
        else:
            self._recent, self._older = definitions, self._recent

    def _wanted(self, computation: Computation, lines: Lines) -> Iterator[int]:
        """The rows to keep, by number."""
        wanted, texts, heads = self._heads.wanted, lines.texts, lines.heads
        entry = self._entry and computation.is_entry
        calls = self._kept_names and not self._kept_names.isdisjoint(rows.CALLS.findall(lines.text))
        if not entry and not calls and wanted.isdisjoint(texts):
            return
        for index, row in enumerate(lines.rows):
            if (
                texts[index] in wanted
                or (entry and (row[0] or heads[index].opcode == "parameter"))
                or (heads[index].opcode == "custom-call" and any(target in row[3] for target in self._targets))
            ) or (calls and not self._kept_names.isdisjoint(rows.CALLS.findall(row[3]))):
                yield index

    def _keep(self, computation: Computation, lines: Lines, index: int) -> None:
        row = lines.rows[index]
        if not self._checked and not rows.is_whole(row[3]):
            self.problem("HI001", f"{row[1]}: the line is cut off, or its brackets are not closed", lines.first + index, row[1])
            return
        try:
            instruction = Instruction(computation, row, lines.heads[index], lines.first + index)
            instruction.resolve_operands((lines.definitions, self._recent, self._older))
        except scan.ScanError as error:
            self.problem("HI001", f"{row[1]}: {error.message}", lines.first + index, row[1])
            return
        computation.keep(instruction)

    def _note_unknown(self, found: Sequence[Row], line: int) -> None:
        if not self._heads.unknown:
            return
        for index, row in enumerate(found):
            if row[2] in self._heads.unknown:
                self.problem(*self._heads.unknown[row[2]], line + index, row[1])

    # -- problems -------------------------------------------------------------------------------------------------------

    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Notes something wrong at a line of the input."""
        self._is_cut_off |= code == "HI002"
        self._add(Problem(code, message, self.module.location(line), subject), "")

    def unreadable(self, message: str, location: Location, lines: int, text: str) -> None:
        """Notes `lines` lines that cannot be read, of which the first is `text`."""
        self.module.unparsed_lines += lines
        self._add(Problem("HI001", message, location), text)

    def _add(self, problem: Problem, text: str) -> None:
        if self.strict:
            at = problem.location
            place = Location(at.path, at.line, at.column or 1)  # a fault of a whole line stands at its start
            raise ParseError(problem.message, place, text or None, problem.code)
        self.module.problems.add(problem)

    def drop_unreadable(self, first_line: int) -> None:
        """Forgets the unreadable lines from `first_line` on: they turned out to stand behind the module."""
        self.module.problems.drop_from("HI001", first_line)
