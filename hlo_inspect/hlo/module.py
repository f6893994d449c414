"""What a module's text says, as far as somebody wanted it kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.errors import Location
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import EnclosingComputation, Instruction, operands_end
from hlo_inspect.hlo.rows import NO_ROWS, HeadTable, PackedRows, Rows, packed
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.attributes import ValueTable
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.values.op_names import StackFrames
from hlo_inspect.hlo.values.sharding import DeviceMarks
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

# -- what is wrong with a text ----------------------------------------------------------------------------------------------

MAX_OF_A_KIND = 20
"""So many different faults of one code are kept with their place; the others are counted."""


UNREADABLE = "HI001"
CUT_OFF = "HI002"
PART = "HI011"


class Problem(NamedTuple):
    """Something in the text that is not as the language has it. `code` is the rule of the finding that it becomes."""

    code: str
    message: str
    location: Location
    subject: str | None = None
    times: int = 1


class Problems:
    """The faults of one module. The same fault again is counted, not kept; of lines that cannot be read each is a fault.
    `left_out` is how many more of a code there are.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._found: dict[tuple[str, str, int | None], Problem] = {}
        self._kinds: Counter[str] = Counter()

    def add(self, problem: Problem, times: int = 1) -> None:
        key = (problem.code, problem.message, problem.location.line if problem.code == UNREADABLE else None)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = known._replace(times=known.times + times)
        elif self._kinds[problem.code] >= MAX_OF_A_KIND:
            self.left_out[problem.code] += times
        else:
            self._kinds[problem.code] += 1
            self._found[key] = problem._replace(times=times)

    @property
    def hold_a_cut(self) -> bool:
        """Whether the module is cut off."""
        return bool(self._kinds[CUT_OFF])

    def drop_from(self, code: str, line: int) -> None:
        """Forgets those of `code` that were first seen at `line` or later."""
        for key in [k for k, p in self._found.items() if p.code == code and (p.location.line or 0) >= line]:
            del self._found[key]
            self._kinds[code] -= 1

    def drop(self, codes: frozenset[str]) -> None:
        """Forgets those of these codes."""
        self._found = {key: problem for key, problem in self._found.items() if key[0] not in codes}
        for code in codes:
            self._kinds.pop(code, None)
            self.left_out.pop(code, None)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())


# -- what a module holds ----------------------------------------------------------------------------------------------------

MAX_UNPACKED = 1 << 6


class ParameterReads:
    """What reads the parameters of one computation: `unread` are those that no instruction reads, `elements` says which
    elements are read of the tuples that are only taken apart. Both hold only if they are `known`: operands can be printed
    without names.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self.elements: dict[str, set[int]] = {}
        self.known = True


class SharedByComputations:
    """What the computations of a module have in common: what the attributes of its instructions mean, its heads, the forms of
    packed scalars, and the scalars that were looked at last, by name and line of their computation.
    """

    def __init__(self, wanted: frozenset[str] = frozenset()) -> None:
        """`wanted` are the opcodes that are kept."""
        self.values = ValueTable()
        self.heads = HeadTable(self.values.shapes, wanted)
        self.scalar_forms: dict[bytes, bytes] = {}
        self.unpacked: dict[tuple[str, int], Mapping[str, Instruction]] = {}


class Computation:
    """One computation, as far as it is kept. Most of a module's many computations hold next to nothing, and take no more room.

    `opcodes`: one opcode per instruction where every line was read, else nothing.
    `instructions`: those that were kept, in the order of the text.
    `reads`: of the entry, where asked for, which parameters something reads.
    `is_cut_off`: its end is not in the text.
    `packed_scalars`: the rows of `scalars`, with their lines.
    `rows`: every instruction where the graph is wanted.
    """

    __slots__ = (
        "_enclosing",
        "_shared",
        "instructions",
        "is_cut_off",
        "is_entry",
        "line",
        "name",
        "opcodes",
        "packed_scalars",
        "reads",
        "root_opcode",
        "rows",
    )

    def __init__(self, name: str, line: int, *, is_entry: bool, shared: SharedByComputations | None = None) -> None:
        self.name = name
        self.line = line
        self.is_entry = is_entry
        self.opcodes: Sequence[str] = ()
        self.root_opcode: str | None = None
        self.instructions: Sequence[Instruction] = ()
        self.reads: ParameterReads | None = None
        self.is_cut_off = False
        self.rows: Rows = NO_ROWS
        self.packed_scalars: PackedRows | None = None
        self._shared = SharedByComputations() if shared is None else shared
        self._enclosing: EnclosingComputation | None = None

    @property
    def values(self) -> ValueTable:
        """What the attributes of the module's instructions mean."""
        return self._shared.values

    def with_opcodes(self, opcodes: Set[str], callees: Set[str] | None = None) -> list[Instruction]:
        """The kept instructions of some opcodes. `callees` leaves out some that call none of these computations."""
        found = [i for i in self.instructions if i.opcode in opcodes]
        return found if callees is None else [i for i in found if i.may_call(callees)]

    def enclosing(self) -> EnclosingComputation:
        """What its instructions know of it."""
        if self._enclosing is None:
            self._enclosing = EnclosingComputation(self.name, self._shared.values, is_entry=self.is_entry)
        return self._enclosing

    def rename(self, name: str) -> None:
        self.name = self.enclosing().name = name

    def make_entry(self) -> None:
        """Takes it for the entry, which it is not marked as."""
        self.is_entry = self.enclosing().is_entry = True

    def keep_scalars(self, rows: Iterable[tuple[Row, int]]) -> None:
        """Keeps rows with their lines for `scalars`."""
        self.packed_scalars = packed(rows, self.line, self._shared.scalar_forms)

    def scalar_rows(self) -> list[tuple[Row, int]]:
        """The rows of `scalars`, with their lines."""
        return list(self.packed_scalars.rows(self.line)) if self.packed_scalars is not None else []

    @property
    def scalars(self) -> Mapping[str, Instruction]:
        """By name, what feeds its loops, calls and root as integer scalars, where asked for."""
        if self.packed_scalars is None:
            return {}
        known, key = self._shared.unpacked, (self.name, self.line)
        if key not in known:
            if len(known) >= MAX_UNPACKED:
                known.clear()
            heads, enclosing = self._shared.heads, self.enclosing()
            known[key] = {row[1]: Instruction(enclosing, row, heads[row[2]], line) for row, line in self.scalar_rows()}
        return known[key]

    @property
    def parameters(self) -> dict[int, Instruction]:
        """The kept parameters by their numbers, in the order of these; of a number that is taken twice the last."""
        numbered = [(i.parameter_number, i) for i in self.with_opcodes({"parameter"})]
        return dict(sorted([(number, i) for number, i in numbered if number is not None], key=itemgetter(0)))

    @property
    def root(self) -> Instruction | None:
        """The kept root: the one marked so, else the last instruction."""
        marked = [i for i in self.instructions if i.is_root]
        return marked[-1] if marked else None


class Measurement(NamedTuple):
    """One number of a log. `unit` is as it is written, `of` where `72/81` is; `element` is its place in a list."""

    line: int
    key: str
    value: float
    unit: str = ""
    element: int | None = None


class LogEntry(NamedTuple):
    """A measurement in the text around a module, and whether it stands before it or behind it."""

    measurement: Measurement
    module: str
    is_before: bool


class SkippedComputation(NamedTuple):
    """A computation that was passed over although it may be a part of a loop: its text, which starts on `line`."""

    root_opcode: str
    line: int
    text: str


class Module:
    """One module, as far as it was read.

    `computations`: those in which something was kept, all of them where every line was read.
    `entry_signature`: the first line of the entry.
    `skipped`: those that may be parts of loops, until `read_skipped` of `open_computation` reads them.
    `root_opcodes`: the root of those besides that are small or give a scalar, since reducers are among them.
    `shared` is what its computations have in common.
    `device_marks`: what its lines say of how it is spread over devices.
    `lines` and `bytes` are of the input, line ends included. `origin` is what XLA made the text of, where the input is no text:
    the counts of partitions and replicas are lost in it.
    `memory_lines` are those around it, with their numbers, in which XLA says that memory did not suffice.
    `quoted_lines` is how many instruction lines it has where these stand in no computation, and are only a part of a module.
    `mends` say what was undone in the text that a log or a mail did to it; `text_line` is its first line in the mended text,
    and 0 where that is not what pieces of the source hold. `log` are the measurements in the text around it.
    `values` are what its attributes mean, `heads` what the heads of its lines do.
    """

    def __init__(self, header: Header, path: str, first_line: int, wants: Wants) -> None:
        self.header = header
        self.path = path
        self.first_line = first_line
        self.wants = wants
        self.lines = 0
        self.bytes = 0
        self.frames = StackFrames()
        self.computations: dict[str, Computation] = {}
        self.root_opcodes: dict[str, str] = {}
        self.skipped: dict[str, SkippedComputation] = {}
        self.entry: Computation | None = None
        self.entry_signature = ""
        self.computation_count = 0
        self.device_marks = DeviceMarks(states_devices=header.states_devices, is_scheduled=header.is_scheduled)
        self.unparsed_lines = 0
        self.problems = Problems()
        self.origin: str | None = None
        self.quoted_lines = 0
        self.memory_lines: list[tuple[int, str]] = []
        self.mends: tuple[str, ...] = ()
        self.text_line = 0
        self.log: tuple[LogEntry, ...] = ()
        self.shared = SharedByComputations(wants.opcodes)
        self.values, self.heads = self.shared.values, self.shared.heads

    @property
    def name(self) -> str:
        """The header's name; a module without a header is called after its entry, as XLA's parser does."""
        if self.quoted_lines:
            return "quoted_lines"
        if self.header.printed or self.entry is None:
            return self.header.name
        return f"module_{self.entry.name}"

    def root_opcode(self, computation: str) -> str | None:
        """The opcode of a computation's root; `None` where it is not known."""
        known = self.computations.get(computation) or self.skipped.get(computation)
        return known.root_opcode if known is not None else self.root_opcodes.get(computation)

    def location(self, line: int | None, column: int | None = None) -> Location:
        return Location(self.path, line, column)

    def note(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Notes something wrong at a line of the input."""
        self.problems.add(Problem(code, message, self.location(line), subject))

    @cached_property
    def holding(self) -> tuple[Computation, ...]:
        """The computations in which an instruction was kept."""
        return tuple([computation for computation in self.computations.values() if computation.instructions])

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Every kept instruction, in the order of the text."""
        return tuple(i for computation in self.holding for i in computation.instructions)

    def with_opcodes(self, opcodes: Set[str], callees: Set[str] | None = None) -> Iterator[Instruction]:
        """The kept instructions of some opcodes in all computations, as `Computation.with_opcodes` has them."""
        return chain.from_iterable(computation.with_opcodes(opcodes, callees) for computation in self.holding)

    @cached_property
    def opcode_counts(self) -> Counter[str]:
        """Instructions of each opcode over all computations, where every line was read."""
        return count_opcodes(self.computations.values())


def count_opcodes(computations: Iterable[Computation]) -> Counter[str]:
    """Instructions of each opcode in some computations, of which those with the same heads share the list of their opcodes."""
    opcodes = [computation.opcodes for computation in computations]
    lists = {id(one): one for one in opcodes}
    counts: Counter[str] = Counter()
    for same, times in Counter(map(id, opcodes)).items():
        for opcode, count in Counter(lists[same]).items():
            counts[opcode] += count * times
    return counts


# -- attributes that stop making sense --------------------------------------------------------------------------------------

_PLAIN = lazy_pattern(rf"""[^()"'/=]*+\)(?:, [A-Za-z_][\w.\-]*+=(?:{"|".join(tokens.COMMON_VALUES)})(?=, |$))*+""")
"""Most rows: operands without shapes, and attributes as printers write most."""


class MalformedRow(NamedTuple):
    """An instruction of which the attributes behind a place cannot be read."""

    name: str
    line: int
    reason: str


def malformed_rows(module: Module) -> Iterator[MalformedRow]:
    """Yield the instructions that were kept of a module and whose attributes stop making sense, in the order of the text."""
    for computation in module.computations.values():
        if len(computation.rows):
            yield from _of_rows(computation)
            continue
        for instruction in computation.instructions:
            text = instruction.untouched
            if text is None or _PLAIN.fullmatch("".join(text)) is None:
                form, _ = instruction.attribute_parts
                if form.fault:
                    yield MalformedRow(instruction.name, instruction.line, form.fault)


def _of_rows(computation: Computation) -> Iterator[MalformedRow]:
    rows = computation.rows
    for name, tail, line in zip(rows.names, rows.tails, rows.lines, strict=True):
        if _PLAIN.fullmatch(tail) is None:
            reason = _fault(tail)
            if reason:
                yield MalformedRow(name, line, reason)


def _fault(tail: str) -> str:
    """Why the attributes of a tail stop making sense; empty if they do not, or if its operands are not closed."""
    try:
        end = operands_end(tail)
    except tokens.ScanError:  # the reader says so
        return ""
    try:
        for _ in tokens.attributes(tail, end + 1):
            pass
    except tokens.ScanError as error:
        return error.message
    return ""
