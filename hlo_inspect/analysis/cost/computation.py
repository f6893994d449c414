"""The cost of the rows of a computation, given the costs of the computations that they call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hlo_inspect.analysis.cost.bytes_accessed import (
    TRANSFER_ENDS,
    FusedTraffic,
    FusionReader,
    accessed_bytes,
)
from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    NO_LINE,
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
from hlo_inspect.graph.row_classes import RowClasses
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import CalleeAttribute

if TYPE_CHECKING:
    from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules

_GATHERS = frozenset({"gather", "scatter"})
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

    Rows and computations of one class share a cost without gaps: `by_class` has those of rows. `calls` holds the custom calls
    with the cost of one run, by computation and name. `missing` holds the attributes that the text lacks, by computation and
    row.
    """

    def __init__(self, classes: RowClasses, user_rules: UserRules) -> None:
        self.applied: dict[str, Tally] = {}
        self.fused: dict[str, FusedCost] = {}
        self.classes = classes
        self.calls: dict[tuple[str, str], tuple[Instruction, CallCost]] = {}
        self.missing: dict[tuple[str, int], MissingAttribute] = {}
        self._user_rules = user_rules
        self.by_class: dict[int, InstructionCost] = {}
        self._calls_by_class: dict[int, tuple[CallCost, InstructionCost]] = {}
        self._applied_by_class: dict[int, Tally] = {}
        self._fused_by_class: dict[int, FusedCost] = {}
        self._with_calls: set[str] = set()

    def gap(self, view: View, row: int, error: UnknownCostError) -> CostGap:
        """Return the gap that an error leaves at a row, and note an attribute that the text lacks."""
        if isinstance(error, MissingAttributeError):
            missing = MissingAttribute(view.lines[row], view.names[row], error.attribute)
            self.missing.setdefault((view.computation.name, row), missing)
        return row_gap(view, row, error)

    # -- instructions ---------------------------------------------------------------------------------------------------

    def of_row(self, view: View, row: int) -> InstructionCost:
        """Return the cost of a row that runs no other computation."""
        number = self.classes.of_rows(view)[row]
        cost = self.by_class.get(number)
        if cost is None:
            opcode = wrapped(view.opcodes[row])
            if opcode == CUSTOM_CALL:
                return self._custom_call(Operation(view, row), number)
            cost = self._fusion(view, row) if opcode == "fusion" else self._instruction(Operation(view, row))
            if not cost.gaps and opcode not in TRANSFER_ENDS and not self._calls_holders(view, row):
                self.by_class[number] = cost  # but for transfers, whose costs depend on the operands of their operands
        return cost

    def _calls_holders(self, view: View, row: int) -> bool:
        """Return True if a row calls a computation that holds custom calls."""
        return bool(self._with_calls) and not self._with_calls.isdisjoint(callee.name for callee in view.called_at(row))

    def _fusion(self, view: View, row: int) -> InstructionCost:
        """Return the cost of a fusion (`HloCostAnalysis::HandleFusion`).

        For a custom fusion return the cost of its gather or scatter.
        """
        fused = self._counted(self.fused, "fused", callee_names(view, row)[0])
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
        return self._counted(self.applied, "applied", name).work

    def _custom_call(self, op: Operation, number: int) -> InstructionCost:
        """Return the cost of a custom call, and note the call in `calls`."""
        costs = self._calls_by_class.get(number)
        if costs is None:
            from hlo_inspect.analysis.cost.custom_calls.pallas import KERNEL_TARGETS
            from hlo_inspect.analysis.cost.custom_calls.step_calls import call_cost, cost_of_call

            call = call_cost(op, self._user_rules)
            costs = call, cost_of_call(op, call)
            names_none = all(gap.line == NO_LINE for gap in costs[1].gaps.values())
            if names_none and not self._user_rules and op.custom_call_target not in KERNEL_TARGETS:
                self._calls_by_class[number] = costs  # which depend neither on the name nor on metadata
        self.calls[op.view.computation.name, op.instruction.name] = op.instruction, costs[0]
        return costs[1]

    # -- computations ---------------------------------------------------------------------------------------------------

    def _counted(self, table: Mapping[str, _T], counted: Counted, name: str) -> _T:
        self.copy_counted(counted, name)
        return get_counted(table, name)

    def copy_counted(self, counted: Counted, name: str) -> bool:
        """Return True if a computation is counted, after copying the cost of one of its class."""
        if counted == "fused":
            return _copy_counted(name, self.classes, self.fused, self._fused_by_class)
        return _copy_counted(name, self.classes, self.applied, self._applied_by_class)

    def count(self, counted: Counted, view: View) -> None:
        """Count a fused or applied computation."""
        name = view.computation.name
        number, work = self.classes.of_computation(name), self._work_by_opcode(view)
        is_shared = not self._holds_calls(view)
        if counted == "applied":
            self.applied[name] = work
            if is_shared and not work.gaps:
                self._applied_by_class[number] = work
            return
        traffic = self._traffic(view)
        size, spaces = (traffic, None) if isinstance(traffic, CostGap) else (traffic.total.bytes, traffic.total.spaces)
        cost = InstructionCost.from_work("fusion", work, size, spaces)
        fused = self.fused[name] = FusedCost(cost, traffic, self._kernel(view))
        if is_shared and not cost.gaps and not (fused.kernel and fused.kernel.gaps):
            self._fused_by_class[number] = fused

    def _holds_calls(self, view: View) -> bool:
        """Return True if a computation, or one that it calls, holds custom calls: each is noted in `calls`."""
        name, calling = view.computation.name, view.rows.column.calling
        called = [callee.name for row in calling for callee in view.called_at(row)]
        if any(wrapped(view.opcodes[row]) == CUSTOM_CALL for row in calling) or not self._with_calls.isdisjoint(called):
            self._with_calls.add(name)
        return name in self._with_calls

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
        works = [self._counted(self.applied, "applied", name) for name in callee_names(view, row)]
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
                    names = [name for _, name in callees(view, row, "fused")]
                    fused = next((self.fused[name] for name in names if self.copy_counted("fused", name)), None)
                    nested[row] = fused.traffic if fused and isinstance(fused.traffic, FusedTraffic) else None
            return FusionReader(view, nested).traffic()
        except UnknownCostError as error:
            return error.gap or CostGap(view.computation.line, error.reason)


def get_counted(table: Mapping[str, _T], name: str) -> _T:
    """Return the cost of a computation. Raise UnknownCostError if the text lacks it or it calls itself."""
    if name not in table:
        raise UnknownCostError(f"computation {name} is not in the text, or calls itself")
    return table[name]


def _copy_counted(name: str, classes: RowClasses, counted: dict[str, _T], by_class: Mapping[int, _T]) -> bool:
    """Return True if `counted` has the computation, after copying the entry of one of its class."""
    if name not in counted and name in classes:
        shared = by_class.get(classes.of_computation(name))
        if shared is not None:
            counted[name] = shared
    return name in counted
