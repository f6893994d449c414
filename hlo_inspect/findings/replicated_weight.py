"""HI104: replicated weights of a program that shards others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.named_gradients import parameters_with_named_gradients
from hlo_inspect.findings.rule import Rule, entry_line, size
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.hlo.values.device_groups import DeviceListError
from hlo_inspect.report.model import Finding

_WEIGHTS = frozenset({"weight", "master_weight"})


class ReplicatedWeight(Rule):
    """A weight is replicated, and others are sharded.

    What it finds
        Weights without a division, in a program that divides others. A weight is a floating-point parameter that is updated, or
        of which the program returns the gradient. In a program that does not train, and of a batch, arrays of one argument
        count so. The stake is the bytes of a device that the largest division of another one would save. Without a divided one
        nothing is reported: data parallelism replicates all.

    Why it matters
        Each device holds the whole weight, and often its whole gradient and moments. JAX replicates without a message what a
        rule of partitioning does not name, and some libraries what an axis does not divide.

    How to fix it
        Name the weight in the rules of partitioning. If an axis does not divide its dimension, pad the dimension or shard
        another one.

    Example
        HloModule step, num_partitions=2, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }

        ENTRY main {
          w = f32[2048,2048]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
          v = f32[4096,2048]{1,0} parameter(1), sharding={replicated}
          x = f32[8,4096]{1,0} parameter(2), sharding={replicated}
          h = f32[8,2048]{1,0} dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          y = f32[8,2048]{1,0} dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
          t = f32[8,2048]{1,0} tanh(y)
          dw = f32[2048,2048]{1,0} dot(t, h), lhs_contracting_dims={0}, rhs_contracting_dims={0}
          dh = f32[8,2048]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          dv = f32[4096,2048]{1,0} dot(x, dh), lhs_contracting_dims={0}, rhs_contracting_dims={0}
          r = f32[] constant(0.1)
          rw = f32[2048,2048]{1,0} broadcast(r), dimensions={}
          rv = f32[4096,2048]{1,0} broadcast(r), dimensions={}
          sw = f32[2048,2048]{1,0} multiply(rw, dw)
          sv = f32[4096,2048]{1,0} multiply(rv, dv)
          nw = f32[2048,2048]{1,0} subtract(w, sw)
          nv = f32[4096,2048]{1,0} subtract(v, sv)
          ROOT o = (f32[2048,2048], f32[4096,2048]) tuple(nw, nv)
        }
    """

    code = "HI104"
    threshold = 16 << 20

    def check(self, context: Context) -> Iterator[Finding]:
        parameters, least = context.shardings.interface.parameters, self.least(context)
        if max(map(_parts, parameters), default=1) == 1 or all((leaf.shape.bytes or 0) < least for leaf in parameters):
            return
        weights = self._weights(context)
        for others, leaves in (("weights", weights), *_arguments(context, weights)):
            divisions = max(map(_parts, leaves), default=1)
            for leaf in leaves:
                saved = (leaf.shape.bytes or 0) * (divisions - 1) // divisions
                if leaf.sharding is not None and _parts(leaf) == 1 and saved and saved >= least:
                    path = leaf.path or f"parameter {leaf.number}"
                    how = f"sharded over {divisions} devices like other {others}"
                    message = f"{path} is replicated; {how} it saves {size(saved)}"
                    yield self.finding(context, message, leaf.line or entry_line(context), leaf.name, saved)

    @staticmethod
    def _weights(context: Context) -> list[ParameterLeaf]:
        roles, interface = context.optimizer.roles, context.shardings.interface
        weights = [leaf for leaf in interface.parameters if roles.get((leaf.number, leaf.index)) in _WEIGHTS]
        weights = weights or context.optimizer.parameters_with_gradients(interface)
        entry = context.module.entry
        if weights or entry is None or entry.name not in context.views.computations:
            return weights
        return parameters_with_named_gradients(context.views, entry.name, interface)


def _arguments(context: Context, weights: Sequence[ParameterLeaf]) -> Iterator[tuple[str, list[ParameterLeaf]]]:
    """Yield the matrices of each argument of the program, unless it holds weights or the optimizer's state.

    These are the weights of a program that does not train, and batches of several arrays.
    """
    roles = context.optimizer.roles
    arguments: dict[str, list[ParameterLeaf]] = {}
    for leaf in context.shardings.interface.parameters:
        if len(leaf.shape.dimensions) > 1:
            arguments.setdefault(_argument(leaf), []).append(leaf)
    taken = {_argument(leaf) for leaf in weights}
    for name, leaves in arguments.items():
        if name and name not in taken and not any((leaf.number, leaf.index) in roles for leaf in leaves):
            yield f"arrays of {name}", leaves


def _argument(leaf: ParameterLeaf) -> str:
    """Return the name of the argument that holds an array; empty if the text does not tell."""
    return leaf.path.partition("[")[0].partition(".")[0]


def _parts(leaf: ParameterLeaf) -> int:
    """Return the number of devices over which an array is divided; 1 if the text does not tell."""
    try:
        return leaf.sharding.parts if leaf.sharding is not None else 1
    except DeviceListError:
        return 1
