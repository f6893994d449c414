"""The cost of each custom call by the rule of its target, and what those of a module do in one run of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.custom_calls import attention, libraries, pallas
from hlo_inspect.analysis.cost.custom_calls.call_cost import MARKER, CallCost, Rule, unknown
from hlo_inspect.analysis.cost.custom_calls.pallas import KERNEL_TARGETS, kernel_name
from hlo_inspect.analysis.cost.custom_calls.user_rules import NO_USER_RULES, UserRules
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation
from hlo_inspect.graph.calls import NOTHING, Bounds
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import is_marker

_RULES: dict[str, Rule] = attention.RULES | libraries.RULES | pallas.RULES


def call_cost(op: Operation, user_rules: UserRules = NO_USER_RULES) -> CallCost:
    """The cost of a custom call, by the user's rules first. Where a rule lacks what it needs, `fault` says what."""
    target = op.custom_call_target
    users = user_rules.find(target, kernel_name(op.instruction)) if user_rules.rules else None
    if users is None and is_marker(target):
        return MARKER
    known = users.cost if users is not None else _RULES.get(target)
    rule = known or attention.cudnn_rule(target) or libraries.library_rule(target)
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
    "least_flops": "which pairs of queries and keys its mask lets through is not known",
    "matmul_flops": "how much of its work is matrix multiplications is not known",
    "bytes": "the sizes of its operands and results are not known",
}


class StepCall(NamedTuple):
    """A custom call, the cost of one run of it, and how often it runs in one run of the program."""

    instruction: Instruction
    cost: CallCost
    runs: Bounds

    @property
    def target(self) -> str:
        return self.instruction.attr("custom_call_target") or ""

    @property
    def line(self) -> int:
        return self.instruction.line

    @property
    def is_kernel(self) -> bool:
        """Whether one target stands for kernels of many names."""
        return self.target in KERNEL_TARGETS

    @property
    def kernel(self) -> str:
        """The name of the kernel, as far as the text states it."""
        return kernel_name(self.instruction)

    @property
    def is_unknown(self) -> bool:
        """Whether no rule gives its work."""
        return self.cost.work is None

    def of_step(self, figure: CallFigure) -> Bounds:
        """A figure of all its runs; one that is not known has no upper bound."""
        if self.runs.greatest == 0:
            return NOTHING
        amount = _AMOUNTS[figure](self.cost)
        if amount is None:
            return Bounds(0, None, self._why_unknown(figure))
        return Bounds.exactly(amount).times(self.runs)

    def _why_unknown(self, figure: CallFigure) -> str:
        why = self.cost.fault or (f"there is no rule for {self.target}" if self.is_unknown else "")
        return f"{self.instruction.name} (line {self.line}): {_MISSING[figure] if figure == 'bytes' or not why else why}"


def total_of_step(calls: Iterable[StepCall], figure: CallFigure) -> Bounds:
    """A figure of all runs of several custom calls, most of which are like some others."""
    alike: dict[tuple[int, int], list[StepCall]] = {}
    for one in calls:
        alike.setdefault((id(one.cost), id(one.runs)), []).append(one)
    return Bounds.sum(same[0].of_step(figure).times(Bounds.exactly(len(same))) for same in alike.values())


def with_unknown(amount: Bounds, calls: Iterable[StepCall]) -> Bounds:
    """A figure to which a call may add of whose work nothing is known."""
    unknown = next((call for call in calls if call.is_unknown), None)
    if unknown is None or not amount.is_exact:
        return amount
    return Bounds(amount.least, None, unknown.of_step("flops").reason)


def attention_of_step(calls: Sequence[StepCall]) -> Bounds:
    """FLOPs of all runs of attention kernels."""
    return with_unknown(total_of_step((call for call in calls if call.cost.is_attention), "flops"), calls)


def step_by_target(calls: Iterable[StepCall]) -> list[Sequence[StepCall]]:
    """The custom calls of each target, the one with most FLOPs first, then with most bytes."""
    targets: dict[str, list[StepCall]] = {}
    for call in calls:
        targets.setdefault(call.target, []).append(call)

    def weight(group: Sequence[StepCall]) -> tuple[int, int]:
        return total_of_step(group, "flops").least, total_of_step(group, "bytes").least

    return sorted(targets.values(), key=weight, reverse=True)
