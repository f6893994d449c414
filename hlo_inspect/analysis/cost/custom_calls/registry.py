"""The rule of a target, over all families."""

from __future__ import annotations

from hlo_inspect.analysis.cost.custom_calls import attention, convolution, linear_algebra, matmul, pallas
from hlo_inspect.analysis.cost.custom_calls.call_cost import MARKER, CallCost, Rule, unknown
from hlo_inspect.analysis.cost.custom_calls.pallas import kernel_name
from hlo_inspect.analysis.cost.custom_calls.user_rules import NO_USER_RULES, UserRules
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation
from hlo_inspect.hlo.values.custom_call_markers import is_marker

_RULES: dict[str, Rule] = {**attention.RULES, **matmul.RULES, **convolution.RULES, **pallas.RULES, **linear_algebra.RULES}


def rule_of(target: str) -> Rule | None:
    """The rule of a target; `None` for a marker and for a target that is not known."""
    return _RULES.get(target) or attention.cudnn_rule(target) or linear_algebra.library_rule(target)


def call_cost(op: Operation, user_rules: UserRules = NO_USER_RULES) -> CallCost:
    """The cost of a custom call, by the user's rules first. Where a rule lacks what it needs, `fault` says what."""
    target = op.custom_call_target
    users = user_rules.find(target, kernel_name(op.instruction)) if user_rules.rules else None
    if users is None and is_marker(target):
        return MARKER
    rule = users.cost if users is not None else rule_of(target)
    if rule is None:
        return unknown(op)
    try:
        return rule(op)
    except UnknownCostError as error:
        return unknown(op, error.reason)
