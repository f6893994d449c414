"""The rule of a target, over all families."""

from __future__ import annotations

from hlo_inspect.analysis.cost.custom_calls import attention, convolution, linear_algebra, matmul, pallas
from hlo_inspect.analysis.cost.custom_calls.call_cost import MARKER, CallCost, Rule, unknown
from hlo_inspect.analysis.cost.custom_calls.markers import is_marker
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation

_RULES: dict[str, Rule] = {**attention.RULES, **matmul.RULES, **convolution.RULES, **pallas.RULES, **linear_algebra.RULES}


def rule_of(target: str) -> Rule | None:
    """The rule of a target; `None` for a marker and for a target that is not known."""
    return _RULES.get(target) or attention.cudnn_rule(target) or linear_algebra.library_rule(target)


def call_cost(op: Operation) -> CallCost:
    """The cost of a custom call. Where the rule of its target lacks what it needs, `fault` says what."""
    target = op.custom_call_target
    if is_marker(target):
        return MARKER
    rule = rule_of(target)
    if rule is None:
        return unknown(op)
    try:
        return rule(op)
    except UnknownCostError as error:
        return unknown(op, error.reason)
