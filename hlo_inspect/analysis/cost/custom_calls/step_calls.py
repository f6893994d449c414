"""The cost of each custom call by the rule of its target, and the figures of a module's custom calls in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from hlo_inspect.analysis.cost.custom_calls import attention, libraries, pallas
from hlo_inspect.analysis.cost.custom_calls.call_cost import (
    MARKER,
    CallCost,
    Rule,
    bytes_by_space,
    multiplies_no_matrices,
    unknown,
)
from hlo_inspect.analysis.cost.custom_calls.pallas import KERNEL_TARGETS, kernel_name
from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    MASKED,
    NO_LINE,
    WORK,
    WORK_WITHOUT_MATMULS,
    CostGap,
    InstructionCost,
    Tally,
    TallyKey,
    UnknownCostError,
)
from hlo_inspect.analysis.cost.operation import Operation
from hlo_inspect.analysis.cost.work import tally_key
from hlo_inspect.figure import Number, Quantity, at_least, greatest, least, multiply, total
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import is_marker

if TYPE_CHECKING:
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules

_RULES: dict[str, Rule] = attention.RULES | libraries.RULES | pallas.RULES


def call_cost(op: Operation, user_rules: UserRules = ()) -> CallCost:
    """Return the cost of a custom call, by the user's rules first. If a rule lacks its input, `fault` names it."""
    target = op.custom_call_target
    kernel = kernel_name(op.instruction) if user_rules else ""
    users = next((rule for rule in user_rules if rule.fits(target, kernel)), None)
    if users is None and is_marker(target):
        return MARKER
    by_target = users.cost if users is not None else _RULES.get(target)
    rule = by_target or attention.cudnn_rule(target) or libraries.library_rule(target)
    if rule is None:
        return unknown(op)
    try:
        return rule(op)
    except UnknownCostError as error:
        return unknown(op, error.reason)


def cost_of_call(op: Operation, call: CallCost) -> InstructionCost:
    """Return the cost of a custom call.

    Unknown work leaves a gap. One of a target without a rule names no line: equal calls share it.
    """
    name, line = op.instruction.name, op.instruction.line
    work = Tally()
    if why := call.unknown_reason(op.custom_call_target):
        figures = WORK_WITHOUT_MATMULS if multiplies_no_matrices(op.custom_call_target) else WORK
        work.miss(TallyKey(CUSTOM_CALL), figures, CostGap(line, f"{name}: {why}") if call.fault else CostGap(NO_LINE, why))
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


CallFigure = Literal[
    "runs", "flops", "least_flops", "masked_flops", "recomputed_flops", "matmul_flops", "transcendentals", "bytes"
]

_AMOUNTS: dict[CallFigure, Callable[[CallCost], int | None]] = {
    "runs": lambda cost: 1,
    "flops": lambda cost: cost.work and cost.work.flops,
    "least_flops": lambda cost: cost.least_flops,
    "masked_flops": lambda cost: cost.masked_flops,
    "recomputed_flops": lambda cost: cost.recomputed_flops,
    "matmul_flops": lambda cost: cost.work.matmul_flops if cost.work and cost.has_matmuls_known else None,
    "transcendentals": lambda cost: cost.work and cost.work.transcendentals,
    "bytes": lambda cost: cost.bytes,
}
_MISSING: dict[CallFigure, str] = {
    "least_flops": "the pairs of queries and keys that its mask excludes are unknown",
    "matmul_flops": "the share of matrix multiplications in its work is unknown",
    "bytes": "the sizes of its operands and results are unknown",
}


class StepCall(NamedTuple):
    """A custom call, the cost of one run, and the number of its runs in one step."""

    instruction: Instruction
    cost: CallCost
    runs: Quantity

    @property
    def target(self) -> str:
        return self.instruction.attr("custom_call_target") or ""

    @property
    def line(self) -> int:
        return self.instruction.line

    @property
    def is_kernel(self) -> bool:
        """True if one target stands for kernels of many names."""
        return self.target in KERNEL_TARGETS

    @property
    def kernel(self) -> str:
        """The name of the kernel, as far as the text states it."""
        return kernel_name(self.instruction)

    @property
    def is_unknown(self) -> bool:
        """True if no rule gives its work."""
        return self.cost.work is None

    def of_step(self, figure: CallFigure) -> Quantity:
        """Return a figure of all its runs; an unknown one has no upper bound."""
        if greatest(self.runs) == 0:
            return 0
        amount = _AMOUNTS[figure](self.cost)
        if amount is None:
            return at_least(0, self._unknown_reason(figure))
        return multiply(amount, self.runs)

    def _unknown_reason(self, figure: CallFigure) -> str:
        reason = "" if figure == "bytes" else self.cost.unknown_reason(self.target)
        return f"{self.instruction.name} (line {self.line}): {reason or _MISSING[figure]}"


def total_of_step(calls: Iterable[StepCall], figure: CallFigure) -> Quantity:
    """Sum a figure over all runs of several custom calls. Calls of equal cost and runs are summed at once."""
    groups: dict[tuple[int, Quantity], list[StepCall]] = {}
    for call in calls:
        groups.setdefault((id(call.cost), call.runs), []).append(call)
    return total(multiply(group[0].of_step(figure), len(group)) for group in groups.values())


def attention_of_step(calls: Sequence[StepCall]) -> Quantity:
    """Return the FLOPs of all runs of attention kernels; a call of unknown work may be such a kernel."""
    return total_of_step((call for call in calls if call.cost.is_attention or call.is_unknown), "flops")


def step_by_target(calls: Iterable[StepCall]) -> list[Sequence[StepCall]]:
    """Group the custom calls by target, sorted by most FLOPs, then by most bytes."""
    targets: dict[str, list[StepCall]] = {}
    for call in calls:
        targets.setdefault(call.target, []).append(call)

    def weight(group: Sequence[StepCall]) -> tuple[Number, Number]:
        return least(total_of_step(group, "flops")), least(total_of_step(group, "bytes"))

    return sorted(targets.values(), key=weight, reverse=True)
