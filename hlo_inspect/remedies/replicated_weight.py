"""The remedy of HI104: the weight sharded like the others."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.remedies.division import Axes, axes_of, divides, largest_dimension, leaf_of, parts, sharded
from hlo_inspect.remedies.remedy import Argument, CannotBeTriedError, Remedy
from hlo_inspect.report.model import Finding

_WEIGHTS = frozenset({"weight", "master_weight"})


def remedy(context: Context, finding: Finding, description: Description) -> Remedy:
    """Return the sharding of the weight along the axes of the most divided one."""
    interface = context.shardings.interface
    leaf, own = leaf_of(finding.subject or "", interface.parameters, description)
    roles = context.optimizer.roles
    others = [other for other in interface.parameters if roles.get((other.number, other.index)) in _WEIGHTS and not other.index]
    others = others or [other for other in interface.parameters if not other.index]
    listed = [axes_of(other.number, description) for other in others if other.number < len(description.arguments)]
    return sharded([(own, _axes(own, listed, description), leaf)], description)


def _axes(own: Argument, others: list[Axes], description: Description) -> Axes:
    """Return the axes of another weight that divide the largest dimensions of this one, else its largest axes on one."""
    most = max((parts(axes, description) for axes in others), default=1)
    if most == 1:
        raise CannotBeTriedError("the StableHLO has no sharding of another weight")
    models = list(dict.fromkeys(axes for axes in others if parts(axes, description) == most))
    dividing = [axes for axes in models if divides(axes, own.dimensions, description)]
    if dividing:
        return max(dividing, key=lambda axes: sum(size for size, names in zip(own.dimensions, axes, strict=True) if names))
    names = max((names for names in models[0] if names), key=lambda names: parts((names,), description))
    return largest_dimension(names, own.dimensions, description)
