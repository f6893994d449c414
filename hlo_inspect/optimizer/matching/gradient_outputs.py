"""Outputs that are gradients of parameters, as `jax.grad` and `jax.value_and_grad` return them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf
from hlo_inspect.optimizer.matching.backward_pass import BackwardPasses
from hlo_inspect.optimizer.step.step_dependence import InputDependence
from hlo_inspect.optimizer.step.successions import FLOATS

LEAST_GRADIENTS = 2
"""A single product along the other dimensions of a factor is also in k-means and other alternating methods."""
MAX_ARRAYS = 1024


def parameters_with_gradients(
    frames: Frames, frame: int, dependence: InputDependence, interface: Interface
) -> list[ParameterLeaf]:
    """Return the parameters of which outputs are gradients, if they are `LEAST_GRADIENTS` or more, each a matrix."""
    parameters = [leaf for leaf in interface.parameters if _is_matrix(leaf)]
    outputs = [(output, frames.root(frame, output.index)) for output in interface.outputs if _is_matrix(output)]
    if not outputs or len(parameters) > MAX_ARRAYS or len(outputs) > MAX_ARRAYS:
        return []
    passes = BackwardPasses(frames, [place for _, place in outputs], dependence)
    leaves = list(dict.fromkeys(_with_gradients(passes, frame, dependence, parameters, outputs)))
    return leaves if len(leaves) >= LEAST_GRADIENTS else []


def _is_matrix(array: ParameterLeaf | Output) -> bool:
    return len(array.shape.dimensions) > 1 and array.shape.dtype in FLOATS


def _with_gradients(
    passes: BackwardPasses,
    frame: int,
    dependence: InputDependence,
    parameters: Sequence[ParameterLeaf],
    outputs: Iterable[tuple[Output, Place]],
) -> Iterable[ParameterLeaf]:
    """Yield a parameter for each output that is the gradient of one."""
    for output, place in outputs:
        for leaf in parameters:
            if leaf.shape.dimensions == output.shape.dimensions:
                own = dependence.bit((frame, leaf.number, leaf.index))
                if passes.is_gradient_of(own, place):
                    yield leaf
                    break
