"""What a computation costs, given what those that it calls cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.cost import CUSTOM_CALL, Cost
from hlo_inspect.analysis.cost.custom_calls import call_cost
from hlo_inspect.analysis.cost.fusion import FusedTraffic, fused_traffic
from hlo_inspect.analysis.cost.memory import FREE, accessed_bytes
from hlo_inspect.analysis.cost.model import WORK, Gap, Tally, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import RUNNERS, Operation, Role, callees, elements
from hlo_inspect.analysis.cost.work import ELEMENTWISE, work_of

_DATA_MOVEMENT = """
    bitcast broadcast concatenate constant copy dynamic-slice dynamic-update-slice iota pad parameter reshape reverse slice
    transpose tuple
"""
_TOLD_BY_HEADS = frozenset(ELEMENTWISE) | frozenset(_DATA_MOVEMENT.split())
"""Opcodes whose part in the cost of a fused computation no attribute changes."""
_TOLD_BY_ATTRIBUTES = frozenset({"dot", "reduce", "reduce-window"})
"""Opcodes of which a few attributes tell it."""

_GATHERS = frozenset({"gather", "scatter"})
_T = TypeVar("_T")


class UnknownCall(NamedTuple):
    """A custom call without a rule."""

    target: str
    line: int


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused computation: what a fusion that calls it costs, and the memory that it touches, or why that is not known.

    `kernel` is what the first gather or scatter in it costs.
    """

    cost: Cost
    traffic: FusedTraffic | Gap
    kernel: Cost | None


class Costs:
    """The work of applied computations by opcode and the cost of fused ones, by name, as far as they were counted.

    `unknown_calls` are the custom calls without a rule, by computation and name.
    """

    def __init__(self) -> None:
        self.applied: dict[str, Tally] = {}
        self.fused: dict[str, Fused] = {}
        self.unknown_calls: dict[tuple[str, str], UnknownCall] = {}
        self._alike: dict[tuple[object, ...], Fused] = {}

    def cost(self, op: Operation) -> Cost:
        """The cost of an instruction that runs no other computation."""
        if op.opcode == "fusion":
            return self._fusion(op)
        if op.opcode == CUSTOM_CALL:
            return self._custom_call(op)
        work = Tally()
        try:
            work.add(op.opcode, work_of(op, self._applied_work))
        except UnknownCostError as error:
            work.miss(op.opcode, WORK, gap_of(op, error))
        try:
            size: int | Gap = accessed_bytes(op)
        except UnknownCostError as error:
            size = gap_of(op, error)
        return Cost.of(op.opcode, work, size)

    def _custom_call(self, op: Operation) -> Cost:
        work = Tally()
        cost = call_cost(op)
        if cost is None:
            place = (op.instruction.computation.name, op.instruction.name)
            self.unknown_calls[place] = UnknownCall(op.custom_call_target, op.instruction.line)
            return Cost.of(CUSTOM_CALL, work, 0)
        work.add(CUSTOM_CALL, cost.work)
        return Cost.of(CUSTOM_CALL, work, cost.bytes)

    def _fusion(self, op: Operation) -> Cost:
        """`HloCostAnalysis::HandleFusion`: of a custom fusion the rules of its gather or scatter hold for the whole."""
        try:
            fused = found(self.fused, called(op, "fused")[0])
        except UnknownCostError as error:
            gap, work = gap_of(op, error), Tally()
            work.miss(op.opcode, WORK, gap)
            return Cost.of(op.opcode, work, gap)
        return fused.kernel if fused.kernel and op.attributes.get("kind") == "kCustom" else fused.cost

    # -- computations ---------------------------------------------------------------------------------------------------

    def fuse(self, name: str, body: Body) -> None:
        """Counts a fused computation, of those that are alike only the first: a program repeats the same few many times."""
        key = self._key(body)
        fused = self._alike.get(key) if key is not None else None
        if fused is None:
            fused = self._fuse(body)
            if key is not None and not fused.cost.gaps:
                self._alike[key] = fused
        self.fused[name] = fused

    def _fuse(self, body: Body) -> Fused:
        work = self._work_by_opcode(body)
        traffic, size = self._traffic(body)
        indexed = [i for i, opcode in enumerate(body.opcodes) if opcode in _GATHERS] if not work.gaps else []
        kernel = self.cost(body.operation(indexed[0])) if indexed else None
        return Fused(Cost.of("fusion", work, size), traffic, kernel)

    def _key(self, body: Body) -> tuple[object, ...] | None:
        """What the cost of a fused computation depends on, as far as that is cheaper to tell than to count."""
        opcodes = set(body.opcodes)
        telling = opcodes - _TOLD_BY_HEADS
        if not telling <= _TOLD_BY_ATTRIBUTES:
            return None
        structure = body.structure()
        if structure is None:
            return None
        told = [i for i, opcode in enumerate(body.opcodes) if opcode in telling] if telling else ()
        try:
            return (structure, *(self._telling(body.operation(i)) for i in told))
        except UnknownCostError:
            return None

    def _telling(self, op: Operation) -> tuple[object, ...]:
        """What an instruction says of its cost beside its shapes: attributes, and the work of what it applies."""
        works = [found(self.applied, name).work for _, name in callees(op, "fused")]
        return (*works, *(op.attributes.get(name) for name in ("lhs_contracting_dims", "window")))

    def apply(self, name: str, body: Body) -> None:
        """Counts an applied computation."""
        self.applied[name] = self._work_by_opcode(body)

    # -- work -----------------------------------------------------------------------------------------------------------

    def _work_by_opcode(self, body: Body) -> Tally:
        tally = Tally()
        for index, (opcode, shape) in enumerate(body.heads):
            if opcode in FREE:
                continue
            try:
                column = ELEMENTWISE.get(opcode)
                if column is None:
                    self._add_work(tally, body.operation(index))
                else:
                    tally.add_one(opcode, column, elements(shape))
            except UnknownCostError as error:
                tally.miss(opcode, WORK, body.gap(index, error))
        return tally

    def _add_work(self, tally: Tally, op: Operation) -> None:
        if op.opcode not in RUNNERS:
            tally.add_all(self.cost(op).work)
            return
        works = [found(self.applied, name) for name in called(op, "applied")]
        if op.opcode == "conditional":
            tally.add_largest(works)
        else:
            for work in works:
                tally.add_all(work)

    def _applied_work(self, op: Operation, attribute: str) -> Work:
        names = op.callees.get(attribute)
        if not names:
            raise UnknownCostError(f"it has no {attribute} that can be read")
        return found(self.applied, names[0]).work

    def _traffic(self, body: Body) -> tuple[FusedTraffic | Gap, int | Gap]:
        """What memory a fused computation touches, and how many bytes that are."""
        nested: dict[str, FusedTraffic | None] = {}
        for op in body.callers:
            if op.opcode == "fusion":
                known = next((self.fused[name] for _, name in callees(op, "fused") if name in self.fused), None)
                nested[op.instruction.name] = known.traffic if known and isinstance(known.traffic, FusedTraffic) else None
        try:
            traffic = fused_traffic(body, nested)
        except UnknownCostError as error:
            gap = error.gap or Gap(body.computation.line, error.reason)
            return gap, gap
        return traffic, traffic.bytes


def called(op: Operation, role: Role) -> list[str]:
    """The names of the computations that an operation calls in a role."""
    names = [name for _, name in callees(op, role)]
    if not names:
        raise UnknownCostError("the computation that it calls is not named")
    return names


def found(table: Mapping[str, _T], name: str) -> _T:
    if name not in table:
        raise UnknownCostError(f"computation {name} is not in the text, or calls itself")
    return table[name]


def gap_of(op: Operation, error: UnknownCostError) -> Gap:
    """The gap that an error leaves at an instruction."""
    return error.gap or Gap(op.instruction.line, f"{op.instruction.name}: {error.reason}")
