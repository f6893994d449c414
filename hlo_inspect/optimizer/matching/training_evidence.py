"""Signs of a training step, without which `w - c * g` may as well be a step of a solver."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.graph.frames import Input
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.step.successions import FLOATS


def shows_training(
    weights: Sequence[Weight],
    parameters: dict[Input, tuple[int, ShapeIndex]],
    interface: Interface,
) -> bool:
    """Return True if more than one array is updated, the weight is donated, or the step returns a loss.

    A solver's step, a projection or a leapfrog step has the form of SGD on one array; its caller keeps the old value.
    """
    updated = [weight for weight in weights if not weight.is_frozen]
    if len(updated) > 1 or any(_has_state(weight) for weight in updated):
        return True
    donated = {(leaf.number, leaf.index) for leaf in interface.parameters if leaf.donor or leaf.alias is not None}
    arrays = [array for weight in updated for array in (weight.array, weight.copy) if array is not None]
    return any(parameters.get(array.source) in donated for array in arrays) or _returns_loss(interface)


def _has_state(weight: Weight) -> bool:
    claim = weight.claim
    return bool(weight.counters or weight.accumulators or weight.copy or (claim is not None and (claim.roles or claim.extra)))


def _returns_loss(interface: Interface) -> bool:
    """Return True if a scalar output takes no parameter's buffer."""
    return any(o.shape.elements == 1 and o.shape.dtype in FLOATS and o.alias is None for o in interface.outputs)
