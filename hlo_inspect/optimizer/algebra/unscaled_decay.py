"""Weight decay that no learning rate scales: `w' = w - (rate * u + decay * w)`, as in optax's Adafactor."""

from __future__ import annotations

from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter, constant
from hlo_inspect.optimizer.algebra.normal_form import ONE, is_constant
from hlo_inspect.optimizer.algebra.update import Update

_SUMS = opcodes_that_are("sum")


def decay_beside(update: Update) -> Hyperparameter | None:
    """The decay that the step takes of the weight by itself, `None` where there is none such.

    With a constant rate the equation alone does not show it: `rate * (decay / rate)` is the same number. So the text has to
    compute it that way: the old value and a step, in which the old value is multiplied by a number and that by nothing else.
    """
    graph, array = update.forms.graph, update.array
    is_step = graph.ops[array.new] in {"add", "subtract"} and array.old in graph.args[array.new]
    if not is_step or not is_constant(update.kept):
        return None
    seen = {array.old}
    stack = list(graph.args[array.new])
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        args = graph.args[node]
        numbers = [value for arg in args if (value := graph.value(arg)) is not None]
        if graph.ops[node] == "multiply" and array.old in args and numbers:
            return constant(1.0 - update.kept.get(ONE, 0.0), update.tolerance)
        if graph.ops[node] in _SUMS or (graph.ops[node] == "multiply" and numbers == [-1.0]):
            stack += args
    return None
