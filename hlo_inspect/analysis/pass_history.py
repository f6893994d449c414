"""The history of a module through compiler passes, from the text after each pass.

It has the state after each pass, the pass that introduced an instruction, and the later passes that changed it. XLA does not
record the fate of an instruction. It is matched with one of the state before:

* by name; else by kind, op_name, shape and groups;
* by operands: an instruction with the operands of several removed ones is these merged;
* by op_name, or shape and groups, of a removed one, from which it came then.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Quantity
from hlo_inspect.graph.calls import WANTS
from hlo_inspect.graph.canonical.canonical_computation import numbers_hash, text_hash
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT, TABLE
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.hlo.wants import Wants

STATE_WANTS = WANTS | Wants(opcodes=OPCODES, operands=OPCODES, targets=TARGETS, entry=True, graph=True, checked=True)
"""Parts of a module to keep."""

_COLLECTIVES = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))


class FollowedInstruction(NamedTuple):
    """An instruction, or a logical collective. `operands` are the texts of their shapes, `groups` the participants."""

    kind: str
    name: str
    op_name: str
    shape: str
    operands: tuple[str, ...]
    groups: Hashable
    is_async: bool
    bytes: int | None


class ModuleState(NamedTuple):
    """The counts and figures of a module after a pass.

    Counts are of instructions of the text; `collectives` counts logical collectives by kind. FLOPs and bytes are per step.
    `content` is a hash that distinguishes states: of the computations, the header and, in a schedule, the order of lines.
    """

    content: int
    is_scheduled: bool
    collectives: Counter[str]
    async_collectives: int
    fusions: int
    copies: int
    instructions: int
    flops: Quantity
    bytes: Quantity
    largest_array: ArrayShape | None


class ModuleSnapshot(NamedTuple):
    """A state with the name of the module and its `followed` instructions.

    `says` counts the instructions by the hash of their own text.
    """

    module: str
    state: ModuleState
    followed: list[FollowedInstruction]
    says: Counter[int]


def take_snapshot(context: Context, opcode: str | None) -> ModuleSnapshot:
    """Take the snapshot of a module that was read with `STATE_WANTS`.

    Collectives are followed, and the instructions of `opcode`.
    """
    canonical = context.canonical
    opcodes = context.module.opcode_counts
    cost = context.cost
    followed = [_collective(collective) for collective in context.collectives]
    if opcode is not None and opcode not in _COLLECTIVES:
        followed += _instructions(context, opcode)
    state = ModuleState(
        content=_content(context),
        is_scheduled=context.module.header.is_scheduled,
        collectives=Counter(collective.kind for collective in context.collectives),
        async_collectives=sum(collective.is_async for collective in context.collectives),
        fusions=opcodes["fusion"],
        copies=opcodes["copy"] + opcodes["copy-start"],
        instructions=sum(opcodes.values()),
        flops=cost.step["flops"],
        bytes=cost.step["bytes"],
        largest_array=context.largest_arrays.largest_made_shape,
    )
    says: Counter[int] = Counter()
    for name in canonical.names:
        computation = canonical.computation(name)
        says.update(map(computation.local.__getitem__, computation.rows))
    return ModuleSnapshot(context.module.name, state, followed, says)


def _content(context: Context) -> int:
    """Hash the content of a module. This is quicker than hashes of the text in canonical names."""
    header, canonical = context.module.header, context.canonical
    computations = [canonical.computation(name) for name in canonical.names]
    numbers = sorted(computation.ordered if header.is_scheduled else computation.fingerprint for computation in computations)
    return numbers_hash([text_hash(str(sorted(header.attributes.items()))), *numbers])


def followed_opcode(pattern: str) -> str | None:
    """Return the opcode of the instructions that a pattern may name.

    A pattern is an opcode, or the name of an instruction that begins with one. The opcode of an asynchronous pair has no
    suffix.
    """
    record = TABLE.get(pattern.removeprefix("%").partition(".")[0].partition("*")[0])
    return (record.collective or record.base) if record is not None else None


def _collective(collective: Collective) -> FollowedInstruction:
    groups = collective.participants.key or collective.source_target_pairs
    shape = "" if collective.result_shape is None else str(collective.result_shape)
    operands = tuple("?" if shape is None else str(shape) for shape in collective.inner.operand_shapes or ())
    return FollowedInstruction(
        collective.kind,
        collective.inner.name,
        collective.origin.op_name,
        shape,
        operands,
        groups,
        collective.is_async,
        collective.operand_bytes,
    )


def _instructions(context: Context, opcode: str) -> Iterator[FollowedInstruction]:
    """Yield the instructions of an opcode in the order of the text; for an asynchronous pair only the start."""
    for name in context.module.computations:
        view = context.views.for_computation(name)
        for index, spelling in enumerate(view.opcodes):
            record = TABLE.get(spelling)
            if record is None or record.base != opcode or record.half in ("update", "done"):
                continue
            shape = view.shapes[index]
            operands = tuple(map(str, view.operand_shapes(index)))
            size = shape.array_bytes if shape is not None else None
            defined, is_start = view.names[index], record.half == "start"
            yield FollowedInstruction(opcode, defined, view.op_name(index), str(shape), operands, "", is_start, size)


# -- instructions from state to state ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class PassTrace:
    """The changes of one instruction, each with the label of its pass; empty for none.

    `now` is its current or last state, `first` the state in which it was introduced.
    """

    first: FollowedInstruction
    now: FollowedInstruction
    brought_by: str
    merged_by: str = ""
    async_by: str = ""
    became_by: str = ""
    gone_by: str = ""

    def names(self) -> Iterable[str]:
        return (self.first.name, self.now.name)


class Traces:
    """Follows instructions from state to state. `traces` holds every trace, those of removed instructions included."""

    def __init__(self) -> None:
        self.traces: list[PassTrace] = []
        self._items: Sequence[FollowedInstruction] = ()
        self._of_items: list[list[PassTrace]] = []

    def take(self, items: Sequence[FollowedInstruction], label: str) -> None:
        """Follow the instructions to the next state, `items`, which the pass `label` made."""
        step = _PassStep(self._items, items)
        of_items: list[list[PassTrace]] = [[] for _ in items]
        for before, after in step.pairs:
            was, now = self._items[before], items[after]
            for trace in self._of_items[before]:
                if now.is_async and not was.is_async:
                    trace.async_by = trace.async_by or label
                if now.kind != was.kind:
                    trace.became_by = label
                if after in step.merged:
                    trace.merged_by = label
                trace.now = now
                of_items[after].append(trace)
        for before in step.gone:
            for trace in self._of_items[before]:
                trace.gone_by = label
        for after in step.new:
            now = items[after]
            trace = PassTrace(now, now, label, async_by=label if now.is_async else "")
            self.traces.append(trace)
            of_items[after].append(trace)
        self._items, self._of_items = items, of_items


class _PassStep:
    """The step from one state to the next, by the numbers of instructions.

    `pairs` are the numbers before and after. `gone` are the numbers before, and `new` the numbers after, without a partner.
    `merged` are the numbers after with several partners.
    """

    def __init__(self, before: Sequence[FollowedInstruction], after: Sequence[FollowedInstruction]) -> None:
        self._before, self._after = before, after
        self.pairs: list[tuple[int, int]] = []
        self.merged: set[int] = set()
        self.gone, self.new = list(range(len(before))), list(range(len(after)))
        self._match(lambda item: (item.kind, item.name, len(item.operands)))
        self._match(lambda item: (item.kind, item.op_name, item.shape, item.groups))
        self._merge()
        self._match(lambda item: (item.kind, item.op_name) if item.op_name else None)
        self._match(lambda item: (item.op_name, item.groups) if item.op_name else None)
        self._match(lambda item: (item.kind, item.shape, item.groups))

    def _match(self, key: Callable[[FollowedInstruction], Hashable | None]) -> None:
        """Pair instructions with equal keys in the order of the text; a key of None pairs with nothing."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for before in self.gone:
            if (value := key(self._before[before])) is not None:
                waiting[value].append(before)
        pairs = []
        for after in self.new:
            value = key(self._after[after])
            if value is not None and waiting.get(value):
                pairs.append((waiting[value].popleft(), after))
        self._take(pairs)

    def _merge(self) -> None:
        """Pair several instructions with one instruction that has the operands of all of them."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for before in self.gone:
            was = self._before[before]
            if len(was.operands) == 1:
                waiting[was.kind, was.groups, was.operands[0]].append(before)
        pairs = []
        for after in self.new:
            now = self._after[after]
            needed = Counter((now.kind, now.groups, operand) for operand in now.operands)
            if len(now.operands) > 1 and all(len(waiting[key]) >= count for key, count in needed.items()):
                pairs += [(waiting[key].popleft(), after) for key, count in needed.items() for _ in range(count)]
                self.merged.add(after)
        self._take(pairs)

    def _take(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.pairs += pairs
        gone, new = {before for before, _ in pairs}, {after for _, after in pairs}
        self.gone = [before for before in self.gone if before not in gone]
        self.new = [after for after in self.new if after not in new]
