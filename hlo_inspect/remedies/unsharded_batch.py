"""The remedy of HI218: a constraint that keeps the batch sharded on what the loop over layers carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.remedies.division import axes_of
from hlo_inspect.remedies.remedy import CannotBeTriedError, Remedy
from hlo_inspect.report.model import Finding


def remedy(context: Context, finding: Finding, description: Description) -> Remedy:
    """Return a constraint on the carried activations of all loops, forward and backward."""
    axis = _axis(context, finding)
    state = {number for number, _ in context.optimizer.roles}
    dimensions, sharded = _carried(axis, state, description)
    axes = [[axis] if number == sharded else [] for number in range(len(dimensions))]
    written = ", ".join(f"'{axis}'" if number == sharded else "None" for number in range(sharded + 1))
    words = f"constrain {'×'.join(map(str, dimensions))} in loops to PartitionSpec({written})"
    line = f"x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec({written})))"
    return Remedy(words, ({"kind": "constrain", "dimensions": list(dimensions), "axes": axes},), line)


def _axis(context: Context, finding: Finding) -> str:
    """Return the mesh axis of the sums that the finding is about."""
    for collective, axis in zip(context.collectives, context.axes, strict=True):
        if collective.start.name == finding.subject and axis is not None:
            return axis
    raise CannotBeTriedError(f"the mesh axis of {finding.subject} has no name")


def _carried(axis: str, state: Collection[int], description: Description) -> tuple[tuple[int, ...], int]:
    """Return the dimensions of the activations that loops carry, and the one of the batch.

    They begin with the dimensions of an argument that the axis divides and that is no `state`, such as the tokens. Of several
    the one that most loops carry is taken. Raise CannotBeTriedError if there is none.
    """
    batches = []
    for number, own in enumerate(description.arguments):
        divided = [position for position, names in enumerate(axes_of(number, description)) if axis in names]
        if divided and number not in state:
            batches.append((tuple(own["dimensions"]), divided[0]))
    counts: Counter[tuple[tuple[int, ...], int]] = Counter()
    for carried in description.carried:
        for batch, position in batches:
            shared = batch[: position + 1]
            if len(carried) > len(shared) and carried[: len(shared)] == shared:
                counts[carried, position] += 1 + (carried[: len(batch)] == batch)
    if not counts:
        raise CannotBeTriedError("no loop of the StableHLO carries the batch")
    return max(counts, key=lambda carried: (counts[carried], len(carried[0])))
