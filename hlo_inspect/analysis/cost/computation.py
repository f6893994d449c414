"""What a computation costs, given what those that it calls cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.cost.body import Body, Fusing
from hlo_inspect.analysis.cost.cost import CUSTOM_CALL, Cost
from hlo_inspect.analysis.cost.custom_calls import call_cost
from hlo_inspect.analysis.cost.fusion import FusedTraffic, fused_traffic
from hlo_inspect.analysis.cost.memory import accessed_bytes
from hlo_inspect.analysis.cost.model import WORK, Gap, Part, Tally, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import RUNNERS, Operation, Role, callees, elements, wrapped
from hlo_inspect.analysis.cost.units import COMPARING, elementwise_part, part_of
from hlo_inspect.analysis.cost.work import ELEMENTWISE, WORKLESS, work_of
from hlo_inspect.analysis.fingerprints import Fingerprints

_GATHERS = frozenset({"gather", "scatter"})
_T = TypeVar("_T")


class UnknownCall(NamedTuple):
    """A custom call without a rule."""

    target: str
    line: int


class BrokenCall(NamedTuple):
    """A custom call whose `backend_config` cannot be used, and why."""

    name: str
    line: int
    fault: str


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

    `unknown_calls` are the custom calls without a rule, by computation and name; `broken_calls` those with a rule that lacks
    what it needs.
    """

    def __init__(self, fingerprints: Fingerprints) -> None:
        self.applied: dict[str, Tally] = {}
        self.fused: dict[str, Fused] = {}
        self.unknown_calls: dict[tuple[str, str], UnknownCall] = {}
        self.broken_calls: dict[tuple[str, str], BrokenCall] = {}
        self._fingerprints = fingerprints
        self._applied_alike: dict[int, Tally] = {}
        self._fused_alike: dict[int, Fused] = {}

    def of_row(self, body: Body, index: int) -> Cost:
        """The cost of a row that runs no other computation."""
        if body.opcodes[index] == "fusion":
            return self._fusion(body.fusing(index))
        return self._cost(body.operation(index))

    def _fusion(self, fusing: Fusing) -> Cost:
        """`HloCostAnalysis::HandleFusion`: of a custom fusion the rules of its gather or scatter hold for the whole."""
        fused = found(self.fused, fusing.callee)
        return fused.kernel if fused.kernel and fusing.kind == "kCustom" else fused.cost

    def _cost(self, op: Operation) -> Cost:
        if op.opcode == "fusion":  # in the short spelling `fusion-start`
            return self._fusion(Fusing(op.attributes.get("kind", ""), called(op, "fused")[0]))
        if op.opcode == CUSTOM_CALL:
            return self._custom_call(op)
        try:
            size: int | Gap = accessed_bytes(op)
        except UnknownCostError as error:
            size = gap_of(op, error)
        return Cost.of(op.opcode, self._work(op), size)

    def _work(self, op: Operation) -> Tally:
        """The work of what is no fusion, no custom call and runs nothing."""
        work = Tally()
        if op.opcode not in WORKLESS:
            try:
                done = work_of(op, self._applied_work)
                work.add(part_of(op, done), done)
            except UnknownCostError as error:
                work.miss(Part(op.opcode), WORK, gap_of(op, error))
        return work

    def _custom_call(self, op: Operation) -> Cost:
        name, line = op.instruction.name, op.instruction.line
        work, cost = Tally(), call_cost(op)
        if cost is None or cost.fault:
            self.unknown_calls[op.instruction.computation.name, name] = UnknownCall(op.custom_call_target, line)
        if cost is None:
            return Cost.of(CUSTOM_CALL, work, 0)
        gap = Gap(line, f"{name}: {cost.fault}")
        if cost.fault:
            self.broken_calls[op.instruction.computation.name, name] = BrokenCall(name, line, cost.fault)
        if cost.work is None:
            work.miss(Part(CUSTOM_CALL), WORK, gap)
        else:
            work.add(part_of(op, cost.work) if cost.work.matmul_flops else Part(CUSTOM_CALL), cost.work)
        return Cost.of(CUSTOM_CALL, work, gap if cost.bytes is None else cost.bytes)

    # -- computations ---------------------------------------------------------------------------------------------------

    def is_alike(self, role: Role, name: str) -> bool:
        """Whether a computation costs the same as one that was counted; then it is known from here on."""
        fingerprint = self._fingerprints.of(name)
        if fingerprint is None:
            return False
        if role == "fused" and fingerprint in self._fused_alike:
            self.fused[name] = self._fused_alike[fingerprint]
        elif role == "applied" and fingerprint in self._applied_alike:
            self.applied[name] = self._applied_alike[fingerprint]
        else:
            return False
        return True

    def fuse(self, name: str, body: Body) -> None:
        """Counts a fused computation."""
        work = self._work_by_opcode(body)
        traffic, size = self._traffic(body)
        fused = self.fused[name] = Fused(Cost.of("fusion", work, size), traffic, self._kernel(body))
        fingerprint = self._fingerprints.of(name)
        if fingerprint is not None and not fused.cost.gaps and not (fused.kernel and fused.kernel.gaps):
            self._fused_alike[fingerprint] = fused

    def _kernel(self, body: Body) -> Cost | None:
        indexed = next((i for i, opcode in enumerate(body.opcodes) if opcode in _GATHERS), None)
        if indexed is None:
            return None
        try:
            return self.of_row(body, indexed)
        except UnknownCostError as error:
            return Cost.unknown(body.opcodes[indexed], body.gap(indexed, error))

    def apply(self, name: str, body: Body) -> None:
        """Counts an applied computation."""
        work = self.applied[name] = self._work_by_opcode(body)
        fingerprint = self._fingerprints.of(name)
        if fingerprint is not None and not work.gaps:
            self._applied_alike[fingerprint] = work

    # -- work -----------------------------------------------------------------------------------------------------------

    def _work_by_opcode(self, body: Body) -> Tally:
        tally = Tally()
        for index, (opcode, shape) in enumerate(body.heads):
            if opcode in WORKLESS:
                continue
            try:
                column = ELEMENTWISE.get(opcode)
                if column is None or opcode in COMPARING:
                    self._add_work(tally, body, index)
                else:
                    tally.add_one(elementwise_part(opcode, getattr(shape, "dtype", "")), column, elements(shape))
            except UnknownCostError as error:
                tally.miss(Part(opcode), WORK, body.gap(index, error))
        return tally

    def _add_work(self, tally: Tally, body: Body, index: int) -> None:
        opcode = wrapped(body.opcodes[index])
        if opcode in {"fusion", CUSTOM_CALL}:
            tally.add_all(self.of_row(body, index).work)
            return
        op = body.operation(index)
        if opcode not in RUNNERS:
            tally.add_all(self._work(op))
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
        for index in body.callers:
            if wrapped(body.opcodes[index]) == "fusion":
                known = next((self.fused[name] for _, name in body.callees(index, "fused") if name in self.fused), None)
                traffic = known.traffic if known else None
                nested[body.rows[index][1]] = traffic if isinstance(traffic, FusedTraffic) else None
        try:
            touched = fused_traffic(body, nested)
        except UnknownCostError as error:
            gap = error.gap or Gap(body.computation.line, error.reason)
            return gap, gap
        return touched, touched.bytes


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
