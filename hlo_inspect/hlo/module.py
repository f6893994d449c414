"""Modules, and the computations and faults that the reader kept of them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.errors import Location
from hlo_inspect.hlo.instruction import EnclosingComputation, Instruction
from hlo_inspect.hlo.rows import NO_ROWS, HeadColumn, HeadTable, PackedRows, Rows, packed
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.attributes import ValueTable
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.values.op_names import StackFrames
from hlo_inspect.hlo.values.sharding import DeviceMarks
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.hlo.columns import Extent

# -- faults of a text -------------------------------------------------------------------------------------------------------

MAX_OF_A_KIND = 20
"""Limit of faults of one code that keep their location; further faults are counted."""


MAX_NOTED = 16
"""Limit of `Module.noted`: a module with more such computations is not searched further, which takes time."""

UNREADABLE = "HI001"
CUT_ROW = "="
"""The word of `Module.unread` for a line that ends before its opcode."""
TRUNCATED = "HI002"
PART = "HI011"


class Problem(NamedTuple):
    """A fault of the text. `code` is the code of its finding."""

    code: str
    message: str
    location: Location
    subject: str | None = None
    times: int = 1


class Problems:
    """The faults of one module.

    A repeated fault is counted, not kept again. Each unreadable line is a separate fault. `left_out` counts by code the faults
    that were not kept.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._found: dict[tuple[str, str, int | None], Problem] = {}
        self._kinds: Counter[str] = Counter()

    def add(self, problem: Problem, times: int = 1) -> None:
        key = (problem.code, problem.message, problem.location.line if problem.code == UNREADABLE else None)
        duplicate = self._found.get(key)
        if duplicate is not None:
            self._found[key] = duplicate._replace(times=duplicate.times + times)
        elif self._kinds[problem.code] >= MAX_OF_A_KIND:
            self.left_out[problem.code] += times
        else:
            self._kinds[problem.code] += 1
            self._found[key] = problem._replace(times=times)

    @property
    def is_truncated(self) -> bool:
        """True if the text ends inside the module."""
        return bool(self._kinds[TRUNCATED])

    def drop_from(self, code: str, line: int) -> None:
        """Drop the faults of `code` that were first seen at `line` or later."""
        for key in [k for k, p in self._found.items() if p.code == code and (p.location.line or 0) >= line]:
            del self._found[key]
            self._kinds[code] -= 1

    def drop(self, codes: frozenset[str]) -> None:
        """Drop the faults of these codes."""
        self._found = {key: problem for key, problem in self._found.items() if key[0] not in codes}
        for code in codes:
            self._kinds.pop(code, None)
            self.left_out.pop(code, None)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())


# -- parts of a module ------------------------------------------------------------------------------------------------------

MAX_UNPACKED = 1 << 6


class ParameterReads:
    """The reads of one computation's parameters.

    `unread` are the parameters without a user. `elements` maps each tuple that is read only by elements to the indices read.
    Both are complete only if `known` is True, because operands can be printed without names.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self.elements: dict[str, set[int]] = {}
        self.known = True


class SharedByComputations:
    """The tables that the computations of a module share.

    `values`: the values of attributes. `heads`: parsed heads. `scalar_forms`: forms of packed scalars. `unpacked`: a cache of
    scalars, by name and line of their computation.
    """

    def __init__(self, wanted: frozenset[str] = frozenset()) -> None:
        """Create the tables. `wanted` are the opcodes of instructions to keep."""
        self.values = ValueTable()
        self.heads = HeadTable(self.values.shapes, wanted)
        self.scalar_forms: dict[bytes, bytes] = {}
        self.unpacked: dict[tuple[str, int], Mapping[str, Instruction]] = {}


class Computation:
    """A computation, as far as it is kept.

    `opcodes`: the opcode of each instruction if every line was read, else empty.
    `instructions`: the kept instructions, in text order.
    `reads`: the reads of the entry's parameters, if wanted.
    `is_truncated`: True if the text ends inside the computation.
    `is_sound`: True if the reader has made sure that attributes can be read to their end.
    `packed_scalars`: the rows of `scalars`, with their lines.
    """

    __slots__ = (
        "_enclosing",
        "_rows",
        "_rows_to_make",
        "_shared",
        "instructions",
        "is_entry",
        "is_sound",
        "is_truncated",
        "line",
        "name",
        "opcodes",
        "packed_scalars",
        "reads",
        "root_opcode",
    )

    def __init__(self, name: str, line: int, *, is_entry: bool, shared: SharedByComputations | None = None) -> None:
        self.name = name
        self.line = line
        self.is_entry = is_entry
        self.opcodes: Sequence[str] = ()
        self.root_opcode: str | None = None
        self.instructions: Sequence[Instruction] = ()
        self.reads: ParameterReads | None = None
        self.is_truncated = False
        self.is_sound = False
        self._rows: Rows = NO_ROWS
        self._rows_to_make: tuple[Extent, HeadColumn, int] | None = None
        self.packed_scalars: PackedRows | None = None
        self._shared = SharedByComputations() if shared is None else shared
        self._enclosing: EnclosingComputation | None = None

    @property
    def rows(self) -> Rows:
        """Every instruction, if the graph is wanted."""
        if self._rows_to_make is not None:
            self._rows, self._rows_to_make = Rows.of_extent(*self._rows_to_make), None
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        self._rows, self._rows_to_make = rows, None

    def take_extent(self, extent: Extent, column: HeadColumn) -> None:
        """Take the rows of an extent, which are on the lines after the computation's. They are made on first use."""
        self._rows_to_make = extent, column, self.line + 1

    @property
    def values(self) -> ValueTable:
        """The attribute values of the module's instructions."""
        return self._shared.values

    def with_opcodes(self, opcodes: Set[str], callees: Set[str] | None = None) -> list[Instruction]:
        """Return the kept instructions of `opcodes`.

        With `callees`, leave out instructions that certainly call none of these computations.
        """
        instructions = [i for i in self.instructions if i.opcode in opcodes]
        return instructions if callees is None else [i for i in instructions if i.may_call(callees)]

    def enclosing(self) -> EnclosingComputation:
        """Return the part of the computation that its instructions refer to."""
        if self._enclosing is None:
            self._enclosing = EnclosingComputation(self.name, self._shared.values, is_entry=self.is_entry)
        return self._enclosing

    def with_rows(self, rows: Rows) -> Computation:
        """Return a computation with other rows. It keeps no instructions."""
        other = Computation(self.name, self.line, is_entry=self.is_entry, shared=self._shared)
        other.rows = rows
        return other

    def rename(self, name: str) -> None:
        self.name = self.enclosing().name = name

    def make_entry(self) -> None:
        """Make the computation the entry, though the text does not mark it."""
        self.is_entry = self.enclosing().is_entry = True

    def keep_scalars(self, rows: Iterable[tuple[Row, int]]) -> None:
        """Pack rows and their lines as `scalars`."""
        self.packed_scalars = packed(rows, self.line, self._shared.scalar_forms)

    def scalar_rows(self) -> list[tuple[Row, int]]:
        """Return the rows of `scalars` and their lines."""
        return list(self.packed_scalars.rows(self.line)) if self.packed_scalars is not None else []

    @property
    def scalars(self) -> Mapping[str, Instruction]:
        """The integer scalars that feed its loops, calls and root, by name; empty unless wanted."""
        if self.packed_scalars is None:
            return {}
        cache, key = self._shared.unpacked, (self.name, self.line)
        if key not in cache:
            if len(cache) >= MAX_UNPACKED:
                cache.clear()
            heads, enclosing = self._shared.heads, self.enclosing()
            cache[key] = {row[1]: Instruction(enclosing, row, heads[row[2]], line) for row, line in self.scalar_rows()}
        return cache[key]

    @property
    def parameters(self) -> dict[int, Instruction]:
        """The kept parameters by number, in ascending order; the last parameter if a number repeats."""
        numbered = [(i.parameter_number, i) for i in self.with_opcodes({"parameter"})]
        return dict(sorted([(number, i) for number, i in numbered if number is not None], key=itemgetter(0)))

    @property
    def root(self) -> Instruction | None:
        """The kept instruction marked ROOT, or taken for the root."""
        marked = [i for i in self.instructions if i.is_root]
        return marked[-1] if marked else None


class Measurement(NamedTuple):
    """A number of a log. `unit` is as printed, `of 81` for `72/81`; `element` is the index in a list."""

    line: int
    key: str
    value: float
    unit: str = ""
    element: int | None = None


class LogEntry(NamedTuple):
    """A measurement in the text around a module. `is_before`: it precedes the module."""

    measurement: Measurement
    module: str
    is_before: bool


class CompilerWarning(NamedTuple):
    """A warning of XLA in a log: its kind, and what the line prints of the instruction, its shardings and its duration.

    `instruction` is the printed text. `context` names what was compiled.
    """

    line: int
    kind: str
    instruction: str = ""
    from_sharding: str = ""
    to_sharding: str = ""
    context: str = ""
    seconds: float | None = None


class SkippedComputation(NamedTuple):
    """A skipped computation that may belong to a loop. Its text, which starts on `line`, is compressed to half its size."""

    root_opcode: str
    line: int
    compressed: bytes

    @classmethod
    def compress(cls, root_opcode: str, line: int, text: str) -> SkippedComputation:
        return cls(root_opcode, line, zlib.compress(text.encode("utf-8", "surrogatepass"), 1))

    @property
    def text(self) -> str:
        return zlib.decompress(self.compressed).decode("utf-8", "surrogatepass")


class Module:
    """A module, as far as it was read.

    `computations`: the entry and the computations with kept instructions or scalars; all of them if every line was read.
    `entry_signature`: the first line of the entry.
    `noted`: the first `MAX_NOTED` computations with an opcode of `wants.noted`, if the text of all rows was searched for them.
    `skipped`: skipped computations that may belong to loops, until `open_computation.read_skipped` reads them.
    `root_opcodes`: the roots' opcodes of other computations that are small or return a scalar, as reducers do.
    `shared`: the tables that its computations share. `values` and `heads` are two of them.
    `unread`: opcodes and names of attributes in the lines of which no instruction could be read, with the first line of each.
    An empty text stands for all such lines, `CUT_ROW` for those that end before their opcode.
    `counts_unparsed_lines`: the command that asked for it reads each line.
    `device_marks`: the signs of partitioning in its lines.
    `lines` and `bytes`: its size in the input, line ends included.
    `origin`: the format that XLA converted to this text, which lacks the counts of partitions and replicas. None if the input
    is text.
    `memory_lines`: numbered lines of XLA's out-of-memory report in the text around it.
    `quoted_lines`: the number of its instruction lines if it is a partial module.
    `program`: name and id of its program in a recorded profile, as `jit_step(0)`; empty for other inputs.
    `mends`: notes on the repairs of a pasted text. `text_line`: its first line in the mended text; 0 if the source's pieces
    do not hold it.
    `log`: the measurements in the text around it, `warnings` those of XLA. `left_out_warnings` are too many to be kept.
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
        self.noted: set[str] | None = set() if wants.noted and not wants.reads_every_line else None
        self.skipped: dict[str, SkippedComputation] = {}
        self.entry: Computation | None = None
        self.entry_signature = ""
        self.computation_count = 0
        self.device_marks = DeviceMarks(states_devices=header.states_devices, is_scheduled=header.is_scheduled)
        self.unparsed_lines = 0
        self.counts_unparsed_lines = wants.reads_every_line
        self.unread: dict[str, int] = {}
        self.problems = Problems()
        self.origin: str | None = None
        self.program = ""
        self.quoted_lines = 0
        self.memory_lines: list[tuple[int, str]] = []
        self.mends: tuple[str, ...] = ()
        self.text_line = 0
        self.log: tuple[LogEntry, ...] = ()
        self.warnings: tuple[CompilerWarning, ...] = ()
        self.left_out_warnings = 0
        self.shared = SharedByComputations(wants.opcodes)
        self.values, self.heads = self.shared.values, self.shared.heads

    @property
    def name(self) -> str:
        """The name in the header. Without a header it derives from the entry's name, as in XLA's parser."""
        if self.quoted_lines:
            return "quoted_lines"
        if self.header.printed or self.entry is None:
            return self.header.name
        return f"module_{self.entry.name}"

    def root_opcode(self, computation: str) -> str | None:
        """Return the opcode of a computation's root, or None if it is unknown."""
        read = self.computations.get(computation) or self.skipped.get(computation)
        return read.root_opcode if read is not None else self.root_opcodes.get(computation)

    def location(self, line: int | None, column: int | None = None) -> Location:
        return Location(self.path, line, column)

    def note(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Record a fault on a line of the input."""
        self.problems.add(Problem(code, message, self.location(line), subject))

    @cached_property
    def holding(self) -> tuple[Computation, ...]:
        """The computations in which an instruction was kept."""
        return tuple([computation for computation in self.computations.values() if computation.instructions])

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The kept instructions, in text order."""
        return tuple(i for computation in self.holding for i in computation.instructions)

    def with_opcodes(self, opcodes: Set[str], callees: Set[str] | None = None) -> Iterator[Instruction]:
        """Iterate over the kept instructions of `opcodes`. `callees` works as in `Computation.with_opcodes`."""
        return chain.from_iterable(computation.with_opcodes(opcodes, callees) for computation in self.holding)

    @property
    def opcodes(self) -> Set[str]:
        """The opcodes of the kept instructions, or of all instructions if every line was read."""
        return (
            self.opcode_counts.keys()
            if self.wants.reads_every_line
            else {instruction.opcode for computation in self.holding for instruction in computation.instructions}
        )

    @cached_property
    def opcode_counts(self) -> Counter[str]:
        """Instructions of each opcode over all computations, if every line was read."""
        return count_opcodes(self.computations.values())


def count_opcodes(computations: Iterable[Computation]) -> Counter[str]:
    """Count the instructions of each opcode. Computations with the same heads share their list of opcodes."""
    opcodes = [computation.opcodes for computation in computations]
    lists = {id(names): names for names in opcodes}
    counts: Counter[str] = Counter()
    for same, times in Counter(map(id, opcodes)).items():
        for opcode, count in Counter(lists[same]).items():
            counts[opcode] += count * times
    return counts
