"""Signs of a training step, without which `w - c * g` may as well be a step of a solver."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.graph.frames import Frames, Input
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.step.state_arrays import TrainingStep
from hlo_inspect.optimizer.step.successions import FLOATS


def shows_training(
    weights: Sequence[Weight],
    parameters: dict[Input, tuple[int, ShapeIndex]],
    interface: Interface,
    frames: Frames,
    entry: TrainingStep,
) -> bool:
    """Return True if more than one array is updated, the weight is donated, or the step returns a loss.

    A solver's step, a projection or a leapfrog step has the form of SGD on one array; its caller keeps the old value. `entry`
    is the step of the entry computation, which `frames` hold.
    """
    updated = [weight for weight in weights if not weight.is_frozen]
    if len(updated) > 1 or any(_has_state(weight) for weight in updated):
        return True
    donated = {(leaf.number, leaf.index) for leaf in interface.parameters if leaf.donor or leaf.alias is not None}
    arrays = [array for weight in updated for array in (weight.array, weight.copy) if array is not None]
    changed = [parameters[array.source] for array in arrays if array.source in parameters]
    return any(key in donated for key in changed) or _returns_loss(interface, frames, entry, changed)


def _has_state(weight: Weight) -> bool:
    claim = weight.claim
    return bool(weight.counters or weight.accumulators or weight.copy or (claim is not None and (claim.roles or claim.extra)))


def _returns_loss(interface: Interface, frames: Frames, entry: TrainingStep, changed: Sequence[tuple[int, ShapeIndex]]) -> bool:
    """Return True if a scalar output depends on a changed array and takes no parameter's buffer."""
    dependence = entry.input_dependence
    bits = [dependence.bit((entry.frame, number, index)) for number, index in changed]
    scalars = [o for o in interface.outputs if o.shape.elements == 1 and o.shape.dtype in FLOATS and o.alias is None]
    inputs = [dependence.inputs(frames.root(entry.frame, output.index)) for output in scalars]
    return any(bit & behind for bit in bits for behind in inputs)
