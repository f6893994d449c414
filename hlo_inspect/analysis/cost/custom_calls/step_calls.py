"""The cost of each custom call by the rule of its target, and the figures of a module's custom calls in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.custom_calls import attention, libraries, pallas
from hlo_inspect.analysis.cost.custom_calls.call_cost import MARKER, CallCost, Rule, unknown
from hlo_inspect.analysis.cost.custom_calls.pallas import KERNEL_TARGETS, kernel_name
from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation
from hlo_inspect.figure import Number, Quantity, at_least, greatest, least, multiply, total
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import is_marker

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
