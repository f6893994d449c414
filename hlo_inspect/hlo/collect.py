"""What is kept of a module while it streams by: wanted instructions, opcodes, names, and what is wrong with them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from hlo_inspect.errors import Location, ParseError
from hlo_inspect.hlo import opcodes, rows, scan
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.module import Computation, Head, Instruction, Module, head_of
from hlo_inspect.hlo.names import NameCheck
from hlo_inspect.hlo.problems import Problem
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.shapes import ShapeError

MAX_REDUCER_LINES = 16
_WINDOW = 1 << 15  # definitions that stay in reach besides those of the lines at hand
_MAX_HEADS = 1 << 17

_STOPS = ("ENTRY ", "HloModule ", "=\n")  # what the reader has to see itself; `=` before a computation in place
_TILING = re.compile(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = re.compile(r"sharding=\{mesh\[[^\]\n]*+\]")
_PARTITIONING = re.compile(r'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+)"', re.ASCII)


class Heads(dict[str, Head]):
    """`shape opcode` -> Head, parsed once for each text.

    `unreadable` are texts that are no head at all, `unknown` those with an opcode or element type that XLA does not have,
    `wanted` those with a wanted opcode.
    """

    def __init__(self, wanted_opcodes: frozenset[str]) -> None:
        super().__init__()
        self.unreadable: set[str] = set()
        self.unknown: dict[str, tuple[str, str]] = {}
        self.wanted: set[str] = set()
        self._wanted_opcodes = wanted_opcodes

    def __missing__(self, text: str) -> Head:
        try:
            head = head_of(text)
        except ShapeError:
            self.unreadable.add(text)
            return Head(text.rpartition(" ")[2], None)
        shape_text = text.rpartition(" ")[0]
        if head.shape is None and shape_text:
            self.unknown[text] = ("HI006", f"unknown element type in {shape_text[:60]}")
        if not opcodes.is_known(head.opcode):
            self.unknown[text] = ("HI004", f"unknown opcode {head.opcode!r}")
        if head.opcode in self._wanted_opcodes:
            self.wanted.add(text)
        if len(self) < _MAX_HEADS:
            self[text] = head
        return head


class Collector:
    """Fills a `Module` with what its `wants` name. `strict` raises the first problem as a `ParseError`."""

    def __init__(self, module: Module, *, strict: bool) -> None:
        self.module = module
        self._strict = strict
        wants = module.wants
        self._every_line = wants.reads_every_line
        self._entry = wants.entry
        self._targets = wants.targets
        self._heads = Heads(wants.opcodes)
        words = sorted({re.escape(opcodes.base_opcode(opcode)) for opcode in wants.opcodes})
        self._hits = re.compile(f" (?:{'|'.join(words)})[a-z-]*\\(") if words else None
        self._kept_names: set[str] = set()
        self._names = NameCheck(self, module.computations)
        self._recent: dict[str, Head] = {}
        self._older: dict[str, Head] = {}
        self._last: tuple[Row, Head, int] | None = None
        self._roots = 0

    # -- computations ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, line: int, *, is_entry: bool) -> Computation:
        module = self.module
        module.computation_count += 1
        computation = Computation(name, line, is_entry=is_entry)
        if is_entry:
            if module.entry is not None and module.entry.is_entry:
                self.problem("HI010", f"a second ENTRY computation, {name}; the first is {module.entry.name}", line, name)
            module.entry = computation
        self._names.begin(computation)
        self._recent, self._older, self._last, self._roots = {}, {}, None, 0
        return computation

    def end(self, computation: Computation) -> None:
        module = self.module
        if self._last is not None and not self._roots and not computation.is_cut_off:
            row, head, line = self._last
            computation.root_opcode = head.opcode
            kept = computation.instructions
            if kept and kept[-1].line == line and kept[-1].name == row[1]:
                kept[-1].is_root = True
            elif self._entry and computation.is_entry:
                self._keep(computation, ("ROOT ", *row[1:]), head, line)
        self._names.end()
        if self._every_line or computation.instructions or computation.is_entry:
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

    def finish(self) -> None:
        """To be called behind the module's last computation."""
        module = self.module
        if self._every_line:
            self._names.finish()
        if module.computation_count == 0:
            self.problem("HI002", "the module has a header and no computation", module.first_line)
        if module.entry is not None and module.entry.name not in module.computations:
            module.computations[module.entry.name] = module.entry

    # -- lines ----------------------------------------------------------------------------------------------------------

    def lines(self, computation: Computation, cursor: Cursor, end: int) -> bool:
        """Takes the whole lines from the cursor to `end`; false, with nothing taken, where they have to be read one by one."""
        text, start = cursor.text, cursor.position
        self._note_partitioning(text, start, end)
        if not self._reads(computation, text, start, end):
            if text.find("=\n", start, end) >= 0:  # a computation written in place may hide the closing brace
                return False
            self._note_root(computation, text, start, end)
            cursor.advance(end)
            return True
        found = rows.find_rows(text, start, end, balanced=self._every_line)
        if found is None or not self._take(computation, found, cursor.line):
            return False
        if self.module.wants.graph:
            computation.chunks.append((cursor.line, text[start - 1 : end]))
        cursor.advance(end)
        return True

    def skippable(self, text: str, start: int) -> int:
        """The index up to which whole computations from `start` on hold nothing that is wanted; `start` where nothing is
        skipped.

        The roots of small computations are noted: reducers are among them.
        """
        if self._every_line or (self._hits is None and not self._entry):
            return start
        limit = len(text)
        for mark in _STOPS:
            stop = text.find(mark, start, limit)
            limit = stop if stop >= 0 else limit
        hit = self._hits.search(text, start, limit) if self._hits else None
        limit = hit.start() if hit else limit
        for call in rows.CALLS.finditer(text, start, limit) if self._kept_names else ():
            if call[1] in self._kept_names:
                limit = call.start()
                break
        close = text.rfind("\n}", start, limit)
        closer = rows.CLOSER.match(text, close + 1) if close >= 0 else None
        if closer is None or closer.end() > limit + 1:
            return start
        self._note_partitioning(text, start, closer.end())
        if self._hits is not None:
            self.module.root_opcodes.update(
                (name, sys.intern(root)) for name, root in rows.SMALL.findall(text, start - 1, limit)
            )
        self.module.computation_count += text.count("\n}", start, limit)
        return closer.end()

    def row(self, computation: Computation, row: Row, line: int) -> bool:
        """Takes one instruction; false where its shape makes no sense."""
        if not self._take(computation, [row], line):
            return False
        if self.module.wants.graph:
            computation.chunks.append((line, row))
        return True

    def _reads(self, computation: Computation, text: str, start: int, end: int) -> bool:
        if self._every_line or (self._entry and computation.is_entry):
            return True
        if self._hits is None:
            return False
        return self._hits.search(text, start, end) is not None or self._calls_kept(text, start, end)

    def _calls_kept(self, text: str, start: int, end: int) -> bool:
        return bool(self._kept_names) and not self._kept_names.isdisjoint(rows.CALLS.findall(text, start, end))

    def _note_partitioning(self, text: str, start: int, end: int) -> None:
        module = self.module
        if not module.header.is_scheduled:
            module.partitioning_targets.update(_PARTITIONING.findall(text, start, end))
        if not module.header.states_devices and not module.tiling:
            tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
            module.tiling = tiling[0] if tiling else ""

    def _note_root(self, computation: Computation, text: str, start: int, end: int) -> None:
        """The root of a small computation that is skipped: it may be a reducer."""
        if self._hits is None or text.count("\n", start, end) > MAX_REDUCER_LINES:
            return
        at = text.rfind("ROOT ", start, end)
        if at < 0:
            at = text.rfind("\n", start - 1, end - 1) + 1
        match = rows.ROOT_OPCODE.search(text, at, end)
        computation.root_opcode = sys.intern(match[1]) if match else None

    def _take(self, computation: Computation, found: Sequence[Row], line: int) -> bool:
        texts = [row[2] for row in found]
        heads = [self._heads[text] for text in texts]
        if self._heads.unreadable and not self._heads.unreadable.isdisjoint(texts):
            return False
        definitions = {row[1]: head for row, head in zip(found, heads, strict=True)}
        if self._every_line:
            computation.opcodes += [head.opcode for head in heads]
            self._note_unknown(found, line)
        if self._every_line or (self._entry and computation.is_entry):
            self._names.check(found, heads, definitions, line)
        self._remember(definitions, single=len(found) == 1)
        for index, row in enumerate(found):
            if row[0]:
                self._roots += 1
                if self._roots > 1:
                    self.problem("HI010", f"a second ROOT in computation {computation.name}", line + index, row[1])
                computation.root_opcode = heads[index].opcode
        if found:
            self._last = (found[-1], heads[-1], line + len(found) - 1)
        for index in self._wanted(computation, found, texts, heads):
            self._keep(computation, found[index], heads[index], line + index)
        return True

    def _remember(self, definitions: dict[str, Head], *, single: bool) -> None:
        if single:
            self._recent.update(definitions)
            if len(self._recent) > _WINDOW:
                self._recent, self._older = {}, self._recent
        else:
            self._recent, self._older = definitions, self._recent

    def _wanted(self, computation: Computation, found: Sequence[Row], texts: list[str], heads: list[Head]) -> Iterator[int]:
        wanted = self._heads.wanted
        entry = self._entry and computation.is_entry
        calls = self._kept_names if any(", calls=" in row[3] for row in found) else ()
        if not entry and not calls and wanted.isdisjoint(texts):
            return
        for index, row in enumerate(found):
            if (
                texts[index] in wanted
                or (entry and (row[0] or heads[index].opcode == "parameter"))
                or (heads[index].opcode == "custom-call" and any(target in row[3] for target in self._targets))
            ):
                yield index
            elif calls:
                callee = rows.CALLS.search(row[3])
                if callee is not None and callee[1] in calls:
                    yield index

    def _keep(self, computation: Computation, row: Row, head: Head, line: int) -> None:
        try:
            instruction = Instruction(computation, row, head, line)
            instruction.resolve_operands((self._recent, self._older))
        except scan.ScanError as error:
            self.problem("HI001", f"{row[1]}: {error.message}", line, row[1])
            return
        computation.instructions.append(instruction)

    def _note_unknown(self, found: Sequence[Row], line: int) -> None:
        if not self._heads.unknown:
            return
        for index, row in enumerate(found):
            if row[2] in self._heads.unknown:
                self.problem(*self._heads.unknown[row[2]], line + index, row[1])

    # -- problems -------------------------------------------------------------------------------------------------------

    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Notes something wrong at a line of the input."""
        self._add(Problem(code, message, self.module.location(line), subject), "")

    def unreadable(self, message: str, location: Location, lines: int, text: str) -> None:
        """Notes `lines` lines that cannot be read, of which the first is `text`."""
        self.module.unparsed_lines += lines
        self._add(Problem("HI001", message, location), text)

    def _add(self, problem: Problem, text: str) -> None:
        if self._strict:
            raise ParseError(problem.message, problem.location, text or None)
        self.module.problems.add(problem)

    def drop_unreadable(self, first_line: int) -> None:
        """Forgets the unreadable lines from `first_line` on: they turned out to stand behind the module."""
        self.module.problems.drop_from("HI001", first_line)
