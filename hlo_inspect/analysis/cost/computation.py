"""The cost of the rows of a computation, given the costs of the computations that they call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.cost.bytes_accessed import (
    BYTES_BY_ATTRIBUTES,
    TRANSFER_ENDS,
    FusedTraffic,
    FusionReader,
    accessed_bytes,
)
from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, bytes_by_space
from hlo_inspect.analysis.cost.custom_calls.pallas import KERNEL_TARGETS
from hlo_inspect.analysis.cost.custom_calls.step_calls import call_cost
from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    MASKED,
    WORK,
    CostGap,
    InstructionCost,
    MissingAttribute,
    MissingAttributeError,
    Tally,
    TallyKey,
    UnknownCostError,
    Work,
)
from hlo_inspect.analysis.cost.operation import RUNNERS, Counted, Operation, callee_names, callees, elements, row_gap, wrapped
from hlo_inspect.analysis.cost.work import (
    BY_SHAPES,
    COMPARING,
    ELEMENTWISE,
    OF_STEP,
    WORKLESS,
    Applied,
    elementwise_key,
    gap_key,
    tally_key,
    work_of,
)
from hlo_inspect.graph.fingerprints import Fingerprints
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import TABLE, CalleeAttribute


def _spellings(opcodes: Set[str]) -> frozenset[str]:
    """Return the opcodes and the short spellings of their asynchronous starts."""
    return frozenset(opcodes).union(name for name in TABLE if wrapped(name) in opcodes)


_GATHERS = frozenset({"gather", "scatter"})
_WITHOUT_KEY = _spellings(RUNNERS | TRANSFER_ENDS | {"fusion", CUSTOM_CALL})
"""Opcodes whose cost depends on more than their own row and the heads of their operands."""
_BY_HEADS = _spellings(BY_SHAPES - BYTES_BY_ATTRIBUTES)
"""Opcodes whose cost depends on the heads of row and operands, and on no attribute."""

_T = TypeVar("_T")


class FusedCost(NamedTuple):
    """A fused computation: the cost of a fusion that calls it, and its traffic, or the gap if the traffic is unknown.

    `kernel` is the cost of its first gather or scatter.
    """

    cost: InstructionCost
    traffic: FusedTraffic | CostGap
    kernel: InstructionCost | None


class Costs:
    """The work of applied computations by opcode and the cost of fused computations, by name, as far as they are counted.

    `calls` holds the custom calls with the cost of one run, by computation and name. `missing` holds the attributes that the
    text lacks, by computation and row.
    """

    def __init__(self, fingerprints: Fingerprints, user_rules: UserRules) -> None:
        self.applied: dict[str, Tally] = {}
        self.fused: dict[str, FusedCost] = {}
        self.calls: dict[tuple[str, str], tuple[Instruction, CallCost]] = {}
        self.missing: dict[tuple[str, int], MissingAttribute] = {}
        self._fingerprints = fingerprints
        self._user_rules = user_rules
        self._row_cache: dict[tuple[str, ...], InstructionCost] = {}
        self._call_cache: dict[tuple[Hashable, ...], tuple[CallCost, InstructionCost]] = {}
        self._applied_by_fingerprint: dict[int, Tally] = {}
        self._fused_by_fingerprint: dict[int, FusedCost] = {}

    def gap(self, view: View, row: int, error: UnknownCostError) -> CostGap:
        """Return the gap that an error leaves at a row, and note an attribute that the text lacks."""
        if isinstance(error, MissingAttributeError):
            missing = MissingAttribute(view.lines[row], view.names[row], error.attribute)
            self.missing.setdefault((view.computation.name, row), missing)
        return row_gap(view, row, error)

    # -- instructions ---------------------------------------------------------------------------------------------------

    def of_row(self, view: View, row: int) -> InstructionCost:
        """Return the cost of a row that runs no other computation; equal rows share one."""
        key = _cost_key(view, row)
        cost = self._row_cache.get(key) if key is not None else None
        if cost is None:
            opcode = wrapped(view.opcodes[row])
            if opcode == "fusion":
                return self._fusion(view, row)
            if opcode == CUSTOM_CALL:
                return self._custom_call(Operation(view, row))
            cost = self._instruction(Operation(view, row))
            if key is not None and not cost.gaps:
                self._row_cache[key] = cost
        return cost

    def _fusion(self, view: View, row: int) -> InstructionCost:
        """Return the cost of a fusion (`HloCostAnalysis::HandleFusion`).

        For a custom fusion return the cost of its gather or scatter.
        """
        fused = get_counted(self.fused, callee_names(view, row)[0])
        if fused.kernel is None:
            return fused.cost
        op = Operation(view, row)
        op.require("kind")
        return fused.kernel if op.instruction.attr("kind") == "kCustom" else fused.cost

    def _instruction(self, op: Operation) -> InstructionCost:
        """Return the cost of an operation except custom calls, fusions and runs of other computations."""
        size: int | CostGap
        try:
            traffic = accessed_bytes(op)
        except UnknownCostError as error:
            size, spaces = self.gap(op.view, op.index, error), {}
        else:
            size, spaces = traffic.bytes, traffic.spaces
        as_xla = InstructionCost.from_work(op.opcode, self._work(op, work_of), size, spaces)
        if op.opcode not in OF_STEP:
            return as_xla
        return InstructionCost.from_work(op.opcode, self._work(op, OF_STEP[op.opcode]), size, spaces).counted_by_xla_as(as_xla)

    def _work(self, op: Operation, rule: Callable[[Operation, Applied], Work]) -> Tally:
        """Return the work of an operation by a rule, except custom calls, fusions and runs of other computations."""
        work = Tally()
        if op.opcode not in WORKLESS:
            try:
                done = rule(op, self._applied_work)
                work.add(tally_key(op, done), done)
            except UnknownCostError as error:
                work.miss(gap_key(op), WORK, self.gap(op.view, op.index, error))
        return work

    def _applied_work(self, op: Operation, attribute: CalleeAttribute) -> Work:
        name = op.instruction.callee(attribute)
        if name is None:
            raise UnknownCostError(f"it has no {attribute} that can be read")
        return get_counted(self.applied, name).work

    def _custom_call(self, op: Operation) -> InstructionCost:
        """Return the cost of a custom call and note the call in `calls`; equal calls share one cost."""
        key = self._call_key(op)
        costs = self._call_cache.get(key) if key is not None else None
        if costs is None:
            call = call_cost(op, self._user_rules)
            costs = call, _cost_of_call(op, call)
            if key is not None and not costs[1].gaps:
                self._call_cache[key] = costs
        self.calls[op.view.computation.name, op.instruction.name] = op.instruction, costs[0]
        return costs[1]

    def _call_key(self, op: Operation) -> tuple[Hashable, ...] | None:
        """Return a key that custom calls of equal cost share; None if the cost may depend on name or metadata."""
        heads = _operand_heads(op.view, op.index)
        if heads is None or self._user_rules or op.custom_call_target in KERNEL_TARGETS:
            return None
        form, places = op.instruction.parts_without("metadata")
        return op.view.rows.heads[op.index], form, *places, *heads

    # -- computations ---------------------------------------------------------------------------------------------------

    def copy_counted(self, counted: Counted, name: str) -> bool:
        """Return True if a computation is counted, after copying the cost of one with the same fingerprint."""
        if counted == "fused":
            return _copy_counted(name, self._fingerprints, self.fused, self._fused_by_fingerprint)
        return _copy_counted(name, self._fingerprints, self.applied, self._applied_by_fingerprint)

    def count(self, counted: Counted, view: View) -> None:
        """Count a fused or applied computation."""
        name = view.computation.name
        work = self._work_by_opcode(view)
        fingerprint = self._fingerprints.get(name)
        if counted == "applied":
            self.applied[name] = work
            if fingerprint is not None and not work.gaps:
                self._applied_by_fingerprint[fingerprint] = work
            return
        traffic = self._traffic(view)
        size, spaces = (traffic, None) if isinstance(traffic, CostGap) else (traffic.total.bytes, traffic.total.spaces)
        cost = InstructionCost.from_work("fusion", work, size, spaces)
        fused = self.fused[name] = FusedCost(cost, traffic, self._kernel(view))
        if fingerprint is not None and not cost.gaps and not (fused.kernel and fused.kernel.gaps):
            self._fused_by_fingerprint[fingerprint] = fused

    def _kernel(self, view: View) -> InstructionCost | None:
        indexed = next((row for row, opcode in enumerate(view.opcodes) if opcode in _GATHERS), None)
        if indexed is None:
            return None
        try:
            return self.of_row(view, indexed)
        except UnknownCostError as error:
            return InstructionCost.unknown(view.opcodes[indexed], self.gap(view, indexed, error))

    def _work_by_opcode(self, view: View) -> Tally:
        tally = Tally()
        for row, (opcode, shape) in enumerate(zip(view.opcodes, view.shapes, strict=True)):
            if opcode in WORKLESS:
                continue
            try:
                column = ELEMENTWISE.get(opcode)
                if column is None or opcode in COMPARING:
                    self._add_work(tally, view, row)
                else:
                    tally.add_one(elementwise_key(opcode, getattr(shape, "dtype", "")), column, elements(shape))
            except UnknownCostError as error:
                tally.miss(TallyKey(opcode), WORK, self.gap(view, row, error))
        return tally

    def _add_work(self, tally: Tally, view: View, row: int) -> None:
        opcode = wrapped(view.opcodes[row])
        if opcode in OF_STEP:  # the figures of a fusion are XLA's
            tally.add_all(self._work(Operation(view, row), work_of))
            return
        if opcode not in RUNNERS:
            tally.add_all(self.of_row(view, row).work)
            return
        works = [get_counted(self.applied, name) for name in callee_names(view, row)]
        if opcode == "conditional":
            tally.add_largest(works)
        else:
            for work in works:
                tally.add_all(work)

    def _traffic(self, view: View) -> FusedTraffic | CostGap:
        """Return the traffic of a fused computation, or the gap if it is unknown."""
        nested: dict[int, FusedTraffic | None] = {}
        try:
            for row in view.rows.column.calling:
                if wrapped(view.opcodes[row]) == "fusion":
                    fused = next((self.fused.get(name) for _, name in callees(view, row, "fused")), None)
                    nested[row] = fused.traffic if fused and isinstance(fused.traffic, FusedTraffic) else None
            return FusionReader(view, nested).traffic()
        except UnknownCostError as error:
            return error.gap or CostGap(view.computation.line, error.reason)


def _cost_of_call(op: Operation, call: CallCost) -> InstructionCost:
    """Return the cost of a custom call.

    Unknown work adds nothing to the work of a module, which counts such calls. A rule that lacks its input leaves a gap.
    """
    name, line = op.instruction.name, op.instruction.line
    work = Tally()
    if call.fault:
        work.miss(TallyKey(CUSTOM_CALL), WORK, CostGap(line, f"{name}: {call.fault}"))
    elif call.work is not None:
        key = tally_key(op, call.work) if call.work.matmul_flops else TallyKey(CUSTOM_CALL)
        masked = call.masked_flops
        work.add(key, (call.work.flops - masked, call.work.transcendentals, max(0, call.work.matmul_flops - masked)))
        if masked:
            work.add(TallyKey(CUSTOM_CALL, MASKED, key.operands), (masked, 0, min(masked, call.work.matmul_flops)))
        if not call.has_matmuls_known:
            reason = f"{name}: the share of matrix multiplications in its work is unknown"
            work.miss(key, ("matmul_flops",), CostGap(line, reason))
    size = CostGap(line, f"{name}: the sizes of its operands and results are unknown") if call.bytes is None else call.bytes
    return InstructionCost.from_work(CUSTOM_CALL, work, size, bytes_by_space(op))


def _cost_key(view: View, row: int) -> tuple[str, ...] | None:
    """Return a key of the inputs of a row's cost: shape, opcode, operand shapes, and attributes of some opcodes.

    Return None if the cost depends on more, or if the key would take longer than the cost itself.
    """
    opcode, heads = view.opcodes[row], _operand_heads(view, row)
    if heads is None or opcode in _WITHOUT_KEY:
        return None
    head = view.rows.column.texts[row]
    if opcode in _BY_HEADS:  # as most
        return head, *heads
    tail = view.tails[row]
    start = tail.find("), ")
    end = tail.find(", metadata={", start)
    attributes = tail[start:] if end < 0 else tail[start:end] + tail[tail.find("}", end) :]
    return None if '"' in attributes else (head, attributes, *heads)


def _operand_heads(view: View, row: int) -> list[str] | None:
    """Return shape and opcode of each operand of a row; None if these may not be enough."""
    whole = view.whole_operands(row)
    if view.ambiguous or view.rows.column.shapeless or whole is None:
        return None
    texts = view.rows.column.texts
    return [texts[operand] for operand in whole]


def get_counted(table: Mapping[str, _T], name: str) -> _T:
    """Return the cost of a computation. Raise UnknownCostError if the text lacks it or it calls itself."""
    if name not in table:
        raise UnknownCostError(f"computation {name} is not in the text, or calls itself")
    return table[name]


def _copy_counted(name: str, fingerprints: Fingerprints, counted: dict[str, _T], by_fingerprint: Mapping[int, _T]) -> bool:
    """Return True if `counted` has the computation, after copying the entry of one with the same fingerprint."""
    if name not in counted:
        fingerprint = fingerprints.get(name)
        if fingerprint is None or fingerprint not in by_fingerprint:
            return False
        counted[name] = by_fingerprint[fingerprint]
    return True
