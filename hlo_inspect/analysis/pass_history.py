"""What compiler passes did to a module, from its texts behind each of them: what it is at each moment, which pass brought an
instruction in, and what later passes made of it.

XLA does not write down what became of an instruction. It is the one of the state before that has its name; else one of its kind
with the same op_name, shape and groups. What takes the operands of several that are gone is these merged; what has the op_name
of one that is gone, or at least its shape and groups, came of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.analysis.collectives import OPCODES, TARGETS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.calls import WANTS, Bounds
from hlo_inspect.graph.canonical.computation import numbers_hash, text_hash
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT, TABLE
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.hlo.wants import Wants

STATE_WANTS = WANTS | Wants(opcodes=OPCODES, operands=OPCODES, targets=TARGETS, entry=True, graph=True, checked=True)
"""What has to be kept of a module."""

_COLLECTIVES = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))


class FollowedInstruction(NamedTuple):
    """One instruction, or logical collective. `operands` are the texts of their shapes, `groups` who takes part."""

    kind: str
    name: str
    op_name: str
    shape: str
    operands: tuple[str, ...]
    groups: Hashable
    is_async: bool
    bytes: int | None


class ModuleState(NamedTuple):
    """Counts are of instructions of the text, those of `collectives` (by kind) of logical ones; FLOPs and bytes are those of
    one run. `content` tells two states from each other: the computations, with the order of their lines where that is the
    schedule, and the header.
    """

    content: int
    is_scheduled: bool
    collectives: Counter[str]
    async_collectives: int
    fusions: int
    copies: int
    instructions: int
    flops: Bounds
    bytes: Bounds
    largest_array: ArrayShape | None


class ModuleMoment(NamedTuple):
    """A state with the name of the module and its instructions: those that are `followed`, and by what they say themselves how
    many there are.
    """

    module: str
    state: ModuleState
    followed: list[FollowedInstruction]
    says: Counter[int]


def moment_of(context: Context, opcode: str | None) -> ModuleMoment:
    """A module that was read with `STATE_WANTS`. Collectives are followed, and the instructions of an `opcode`."""
    canonical = context.canonical
    opcodes = context.module.opcode_counts
    cost = context.cost
    followed = [_collective(one) for one in context.collectives]
    if opcode is not None and opcode not in _COLLECTIVES:
        followed += _instructions(context, opcode)
    state = ModuleState(
        content=_content(context),
        is_scheduled=context.module.header.is_scheduled,
        collectives=Counter(one.kind for one in context.collectives),
        async_collectives=sum(one.is_async for one in context.collectives),
        fusions=opcodes["fusion"],
        copies=sum(opcodes[one] for one in ("copy", "copy-start")),
        instructions=sum(opcodes.values()),
        flops=cost.step["flops"],
        bytes=cost.step["bytes"],
        largest_array=context.largest_arrays.largest_made_shape,
    )
    says: Counter[int] = Counter()
    for name in canonical.names:
        says.update(canonical.of(name).local)
    return ModuleMoment(context.module.name, state, followed, says)


def _content(context: Context) -> int:
    """Quicker than the hashes of the text in canonical names."""
    header, canonical = context.module.header, context.canonical
    found = [canonical.of(name) for name in canonical.names]
    numbers = sorted(one.ordered if header.is_scheduled else one.fingerprint for one in found)
    return numbers_hash([text_hash(str(sorted(header.attributes.items()))), *numbers])


def followed_opcode(pattern: str) -> str | None:
    """The opcode of the instructions that a pattern may name: an opcode, or the name of an instruction that begins with one;
    that of an asynchronous pair without its ending.
    """
    base = pattern.removeprefix("%").partition(".")[0].partition("*")[0]
    known = TABLE.get(base)
    return (known.collective or known.base) if known is not None else None


def _collective(one: Collective) -> FollowedInstruction:
    groups = one.participants.key or one.source_target_pairs
    shape = "" if one.result_shape is None else str(one.result_shape)
    operands = tuple("?" if shape is None else str(shape) for shape in one.inner.operand_shapes or ())
    return FollowedInstruction(
        one.kind, one.inner.name, one.origin.op_name, shape, operands, groups, one.is_async, one.operand_bytes
    )


def _instructions(context: Context, opcode: str) -> Iterator[FollowedInstruction]:
    """The instructions of an opcode in the order of the text; of an asynchronous pair the first one."""
    for name in context.module.computations:
        view = context.views.of(name)
        for index, one in enumerate(view.opcodes):
            known = TABLE.get(one)
            if known is None or known.base != opcode or known.half in ("update", "done"):
                continue
            shape = view.shapes[index]
            operands = tuple(str(view.operand_shape(index, at)) for at in range(len(view.operand_rows(index))))
            size = shape.array_bytes if shape is not None else None
            defined, is_start = view.names[index], known.half == "start"
            yield FollowedInstruction(opcode, defined, view.op_name(index), str(shape), operands, "", is_start, size)


# -- instructions from state to state ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class PassTrace:
    """One instruction on its way through the passes, each named by its label: `now` is what it is, or was last, `first` what it
    was first. An empty text is no pass.
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
    """Follows instructions from state to state. `found` are all that there ever were."""

    def __init__(self) -> None:
        self.found: list[PassTrace] = []
        self._items: Sequence[FollowedInstruction] = ()
        self._of_items: list[list[PassTrace]] = []

    def take(self, items: Sequence[FollowedInstruction], label: str) -> None:
        """The instructions of the next state, which the pass of that label made."""
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
            self.found.append(trace)
            of_items[after].append(trace)
        self._items, self._of_items = items, of_items


class _PassStep:
    """From one state to the next, by the numbers of instructions: `pairs` of what was and what it is now, those that are `gone`
    and those that are `new`; `merged` are those that several became.
    """

    def __init__(self, before: Sequence[FollowedInstruction], after: Sequence[FollowedInstruction]) -> None:
        self._before, self._after = before, after
        self.pairs: list[tuple[int, int]] = []
        self.merged: set[int] = set()
        self.gone, self.new = list(range(len(before))), list(range(len(after)))
        self._match(lambda one: (one.kind, one.name, len(one.operands)))
        self._match(lambda one: (one.kind, one.op_name, one.shape, one.groups))
        self._merge()
        self._match(lambda one: (one.kind, one.op_name) if one.op_name else None)
        self._match(lambda one: (one.op_name, one.groups) if one.op_name else None)
        self._match(lambda one: (one.kind, one.shape, one.groups))

    def _match(self, key: Callable[[FollowedInstruction], Hashable | None]) -> None:
        """Pairs those of one key in the order of the text; those whose key is `None` with nothing."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for one in self.gone:
            if (of := key(self._before[one])) is not None:
                waiting[of].append(one)
        found = []
        for one in self.new:
            of = key(self._after[one])
            if of is not None and waiting.get(of):
                found.append((waiting[of].popleft(), one))
        self._take(found)

    def _merge(self) -> None:
        """Pairs several with one that has the operands of all of them."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for one in self.gone:
            was = self._before[one]
            if len(was.operands) == 1:
                waiting[was.kind, was.groups, was.operands[0]].append(one)
        found = []
        for one in self.new:
            now = self._after[one]
            needed = Counter((now.kind, now.groups, operand) for operand in now.operands)
            if len(now.operands) > 1 and all(len(waiting[key]) >= count for key, count in needed.items()):
                found += [(waiting[key].popleft(), one) for key, count in needed.items() for _ in range(count)]
                self.merged.add(one)
        self._take(found)

    def _take(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.pairs += pairs
        gone, new = {before for before, _ in pairs}, {after for _, after in pairs}
        self.gone = [one for one in self.gone if one not in gone]
        self.new = [one for one in self.new if one not in new]
