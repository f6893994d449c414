"""Shardings for arguments that devices hold in copies: like another argument, or along the largest dimension that divides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from hlo_inspect.compiler.meshes import Description
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.remedies.remedy import Argument, CannotBeTriedError, Edit, Remedy, argument

Axes = tuple[tuple[str, ...], ...]
"""Names of mesh axes that divide each dimension."""


def axes_of(number: int, description: Description) -> Axes:
    """Return the axes that divide an argument; empty if its text has no sharding."""
    sharding = description.sharding(description.arguments[number])
    return tuple(tuple(axis.name for axis in axes) for axes in sharding.dimension_axes) if sharding is not None else ()


def parts(axes: Axes, description: Description) -> int:
    """Return the number of parts of an array with these axes."""
    return prod(description.mesh.get(name, 1) for names in axes for name in names)


def divides(axes: Axes, dimensions: Sequence[int], description: Description) -> bool:
    """Return True if axes divide all dimensions without a rest."""
    sizes = zip(dimensions, axes, strict=False)
    return len(axes) == len(dimensions) and not any(size % parts((names,), description) for size, names in sizes)


def largest_dimension(names: tuple[str, ...], dimensions: Sequence[int], description: Description) -> Axes:
    """Return these axes on the largest dimension that they divide. Raise CannotBeTriedError if they divide none."""
    number = parts((names,), description)
    fitting = [(size, -position) for position, size in enumerate(dimensions) if size % number == 0]
    if not fitting:
        raise CannotBeTriedError(f"{number} devices ({', '.join(names)}) divide no dimension of {list(dimensions)}")
    chosen = -max(fitting)[1]
    return tuple(names if position == chosen else () for position in range(len(dimensions)))


def sharded(divided: Iterable[tuple[Argument, Axes, ParameterLeaf]], description: Description) -> Remedy:
    """Return the remedy that shards arguments so, and the results that are their new values if the program pins those."""
    listed = list(divided)
    arguments = {own.number: _text(axes) for own, axes, _ in listed}
    results = {}
    for own, axes, leaf in listed:
        result = _result(own, leaf, description)
        if result is not None and "sdy.sharding" in description.results[result]:
            results[result] = _text(axes)
    edits: list[Edit] = [{"kind": "shard", "side": "arguments", "shardings": arguments}]
    edits += [{"kind": "shard", "side": "results", "shardings": results}] if results else []
    words = "; ".join(f"shard {own} as {_specification(axes)}" for own, axes, _ in listed)
    specifications = ", ".join(dict.fromkeys(_specification(axes) for _, axes, _ in listed))
    where = "in_shardings and out_shardings" if results else "in_shardings"
    line = f"{where} of {', '.join(str(own) for own, _, _ in listed)}: NamedSharding(mesh, {specifications})"
    return Remedy(words, tuple(edits), line)


def _result(own: Argument, leaf: ParameterLeaf, description: Description) -> int | None:
    """Return the result that is the new value of an argument: by its alias, else the only one with the end of its name."""
    if leaf.alias is not None and len(leaf.alias.output_index) == 1:
        return int(leaf.alias.output_index[0])
    end = own.name.removeprefix(own.root)
    named = [
        number
        for number, result in enumerate(description.results)
        if end and result.get("name", "").endswith(end) and tuple(result["dimensions"]) == own.dimensions
    ]
    return named[0] if len(named) == 1 else None


def _text(axes: Axes) -> list[list[str]]:
    return [list(names) for names in axes]


def _specification(axes: Axes) -> str:
    """Return a PartitionSpec as Python writes it."""
    words = (f"'{names[0]}'" if len(names) == 1 else repr(names) if names else "None" for names in axes)
    return f"PartitionSpec({', '.join(words)})"


def leaf_of(name: str, leaves: Iterable[ParameterLeaf], description: Description) -> tuple[ParameterLeaf, Argument]:
    """Return the parameter that a finding names, and its argument. Raise CannotBeTriedError if there is none."""
    for leaf in leaves:
        if leaf.name == name and not leaf.index:
            return leaf, argument(leaf.number, description)
    raise CannotBeTriedError(f"no argument of the StableHLO is {name}")
