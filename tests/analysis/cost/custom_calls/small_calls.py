"""A custom call, written in a test, and its cost."""

from __future__ import annotations

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost
from hlo_inspect.analysis.cost.custom_calls.step_calls import call_cost
from tests.analysis.cost.small import operation


def call(target: str, result: str, *shapes: str, attributes: str = "", name: str = "c") -> CallCost:
    """Return the cost of a call of operands of these shapes."""
    lines = [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    names = ", ".join(f"%p{i}" for i in range(len(shapes)))
    return call_cost(operation(*lines, f'%{name} = {result} custom-call({names}), custom_call_target="{target}"{attributes}'))
