"""The remedy of HI506: state sharded as its weight, or along the axes of the batch."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.state_savings import ReplicatedState, replicated_state
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.remedies.division import Axes, axes_of, largest_dimension, parts, sharded
from hlo_inspect.remedies.remedy import Argument, CannotBeTriedError, Remedy, argument_of
from hlo_inspect.report.model import Finding


def remedy(context: Context, finding: Finding, description: Description) -> Remedy:
    """Return the shardings of all state that the finding counts."""
    interface = context.shardings.interface
    per_device = context.shapes_are == "per_device"
    groups = replicated_state(context.optimizer, interface, context.device_counts, per_device=per_device)
    state = next((group for group in groups if group.members[0][0].name == finding.subject), None)
    if state is None:
        raise CannotBeTriedError(f"no state of the program is {finding.subject}")
    weights = _weights(context)
    divided = []
    for leaf, _ in state.members:
        own = argument_of(leaf, description)
        divided.append((own, _axes(own, weights.get(leaf.number), state, description), leaf))
    return sharded(divided, description)


def _weights(context: Context) -> dict[int, int]:
    """Return the parameter of the weight that each state belongs to, by the parameter of the state."""
    overview = context.optimizer
    weights: dict[int, int] = {}
    for row in overview.rows:
        weight = overview.number(row.weight)
        for array in (*row.roles.values(), row.master):
            number = overview.number(array)
            if weight is not None and number is not None:
                weights[number] = weight
    return weights


def _axes(own: Argument, weight: int | None, state: ReplicatedState, description: Description) -> Axes:
    """Return the axes of the weight if it has the shape of the state and is divided more, else those of the batch."""
    mine = axes_of(own.number, description)
    if weight is not None and tuple(description.arguments[weight]["dimensions"]) == own.dimensions:
        axes = axes_of(weight, description)
        if parts(axes, description) > max(parts(mine, description), 1):
            return axes
    used = {name for names in mine for name in names}
    batch = tuple(name for names in axes_of(state.among, description) for name in names if name not in used)
    if not batch:
        raise CannotBeTriedError("the axes of the batch are not in the StableHLO")
    free = [1 if names else size for size, names in zip(own.dimensions, mine, strict=True)] if mine else own.dimensions
    chosen = largest_dimension(batch, free, description)
    return tuple((*before, *names) for before, names in zip(mine or ((),) * len(chosen), chosen, strict=True))
