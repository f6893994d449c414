"""Alpa's figures: its communication primitives, the cost of its first search and the cost of its device mesh.

None of these is a time or has a unit: they compare one program with another.

* `count_communication_primitives` in alpa/util.py counts `channel_id` and each kind with `(` or `-start(` behind it.
* `compute_compute_cost` and `compute_commuinication_cost` in paranum/shard_parallel.py of March 2021, Alpa's name then, match
  lines by regular expressions. From a cuBLAS call they take the last three two-dimensional f32 shapes behind the first
  `custom-call`. So the result counts only if the instruction has that name. From a collective they take the first operand: with
  two f32 dimensions for an all-reduce, with three for an all-gather or all-to-all. They count elements, not bytes, ignore
  groups and assume four devices.
* `LogicalDeviceMesh` in alpa/shard_parallel/auto_sharding.py: alpha + beta x the bytes that one device sends of the whole
  array. A constant for each kind breaks ties. Several axes are flattened: the largest alpha, the smallest beta.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, RESIZING_OPCODES, Collective
from hlo_inspect.analysis.devices.mesh import Mesh
from hlo_inspect.analysis.devices.participants import starting_collectives
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Quantity, at_least, least, multiply, total
from hlo_inspect.hlo.collective_kinds import ALPA_TIES, KIND_TABLE
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, array_leaves
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.request import CostModelName

CALL = "custom-call"
_WITH_CHANNEL = OPCODES | {"send-done", "recv-done"}
_PERMUTES = opcodes_that_are("pairs")

WANTS = Wants(opcodes=_WITH_CHANNEL | {CALL}, operands=RESIZING_OPCODES | {CALL})

KINDS = tuple(ALPA_TIES)
"""Kinds that Alpa counts, in the order of its tuple; it counts and prices no others."""

_SCALAR_TYPES = ("f32", "f16")


# -- the tuple --------------------------------------------------------------------------------------------------------------


def primitive_counts(module: Module, *, without_scalars: bool = False) -> dict[str, int]:
    """Count the communication primitives as `count_communication_primitives` does, by name.

    `total` counts the instructions with a channel. `without_scalars` subtracts all-reduces of one f32 or f16 from the total and
    from their kind, with a channel or without.
    """
    communicating = module.with_opcodes(_WITH_CHANNEL | starting_collectives(module))
    counts = {"total": sum(instruction.attr("channel_id") is not None for instruction in communicating)}
    for kind in KINDS:
        collectives = list(module.with_opcodes(frozenset({kind, f"{kind}-start"})))
        counts[kind.replace("-", "_")] = len(collectives)
        if without_scalars and kind == "all-reduce":
            scalars = sum(_is_scalar(collective) for collective in collectives)
            counts["total"] -= scalars
            counts["all_reduce"] -= scalars
    return counts


def _is_scalar(instruction: Instruction) -> bool:
    first = _first_leaf(instruction.shape)
    return first is not None and not first.dimensions and first.dtype in _SCALAR_TYPES


def _first_leaf(shape: Shape | None) -> ArrayShape | None:
    return next((leaf for _, leaf in array_leaves(shape)), None)


# -- the search cost --------------------------------------------------------------------------------------------------------


class SearchPart(NamedTuple):
    """A kind of instruction that the search counts: the matches, the sum of their amounts and its cost."""

    kind: str
    matched: int
    amount: int | None
    factor: float | None
    cost: float | None


class SearchCost(NamedTuple):
    """The cost of the search. If Alpa's own assertion would fail, `value` is None and `reason` says why."""

    parts: tuple[SearchPart, ...]
    value: float | None
    reason: str = ""


GEMMS = "cuBLAS calls"
_DEVICES = 4
_SEARCHED = (("all-reduce", 2, 2.0), ("all-gather", 3, float(_DEVICES)), ("all-to-all", 3, 1.0))
"""Kinds with the rank of the first operand and the factor of its elements."""


def search_cost(module: Module) -> SearchCost:
    """Return 0.001 x the multiplications of cuBLAS calls + the weighted elements of collectives."""
    calls = (_multiplications(instruction) for instruction in module.with_opcodes(frozenset({CALL})))
    parts = [_part(GEMMS, [amount for amount in calls if amount is not None], 0.001)]
    for kind, rank, factor in _SEARCHED:
        sizes = (_elements(instruction, rank) for instruction in module.with_opcodes(frozenset({kind})))
        parts.append(_part(kind, [size for size in sizes if size is not None], factor))
    permutes = sum(1 for _ in module.with_opcodes(_PERMUTES))
    if permutes:
        return SearchCost((*parts, SearchPart("collective-permute", permutes, None, math.inf, math.inf)), math.inf)
    matched, channels = sum(part.matched for part in parts[1:]), primitive_counts(module)["total"]
    if matched != channels:
        reason = f"Alpa's assertion fails: it matches {matched} collectives, and {channels} instructions have a channel"
        return SearchCost((*parts, SearchPart("with a channel", channels, None, None, None)), None, reason)
    return SearchCost(tuple(parts), sum(part.cost or 0.0 for part in parts))


def _part(kind: str, amounts: Sequence[float], factor: float) -> SearchPart:
    amount = sum(amounts)
    return SearchPart(kind, len(amounts), int(amount), factor, factor * amount)


def _multiplications(call: Instruction) -> float | None:
    """Return M x N x K of a cuBLAS call: the root of the product of three shapes' elements. None if fewer shapes match."""
    if "cublas" not in (call.attr("custom_call_target") or ""):
        return None
    shapes = [call.shape] if CALL in call.name else []
    shapes += call.operand_shapes or ()
    leaves = [leaf for shape in shapes if shape is not None for _, leaf in array_leaves(shape)]
    matrices = [leaf for leaf in leaves if leaf.dtype == "f32" and len(leaf.dimensions) == 2]
    if len(matrices) < 3:
        return None
    first, second, third = (float(leaf.elements or 0) for leaf in matrices[-3:])
    return math.sqrt(first * second * third)


def _elements(collective: Instruction, rank: int) -> int | None:
    """Return the elements of the first operand if it is an f32 array of this rank, else None."""
    shapes = collective.operand_shapes or () if collective.opcode in RESIZING_OPCODES else [collective.shape]
    first = _first_leaf(shapes[0]) if shapes else None
    return first.elements if first is not None and first.dtype == "f32" and len(first.dimensions) == rank else None


# -- the cost of the device mesh --------------------------------------------------------------------------------------------


_PAIR = lazy_pattern(r"\s*+([A-Za-z_][\w.\-]*+)\s*+=\s*+([0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?)\s*+", re.ASCII)


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost model of a page, with the user's alpha and beta by mesh axis."""

    name: CostModelName
    alpha: Mapping[str, float] = field(default_factory=dict)
    beta: Mapping[str, float] = field(default_factory=dict)


def parse_cost_model(name: CostModelName, alpha: str | None, beta: str | None) -> CostModel:
    """Parse alpha and beta, written as `d0=1,d1=0.1`, into a cost model. Raise UsageError for any other text."""
    return CostModel(name, _coefficients("alpha", alpha), _coefficients("beta", beta))


def _coefficients(name: str, text: str | None) -> dict[str, float]:
    if text is None:
        return {}
    pairs = [_PAIR.fullmatch(part) for part in text.split(",")]
    coefficients = {pair[1]: float(pair[2]) for pair in pairs if pair}
    if len(coefficients) != len(pairs):
        raise UsageError(f"{text!r} is not a valid {name}; write it like d0=1,d1=0.1")
    return coefficients


class MeshCost(NamedTuple):
    """The cost of one of several equal collectives along an axis, and the runs of each in one step."""

    kind: str
    axis: str | None
    group_size: int | None
    size: int | None
    cost: float | None
    runs: tuple[Quantity, ...]

    @property
    def total(self) -> Quantity:
        """The cost of all runs."""
        return at_least(0.0, "the cost of one is unknown") if self.cost is None else multiply(self.cost, total(self.runs))


def mesh_costs(
    collectives: Iterable[Collective],
    axes: Sequence[str | None],
    runs_of: Callable[[str], Quantity],
    mesh: Mesh,
    model: CostModel | None = None,
) -> list[MeshCost]:
    """Return the cost of the collectives of a step by `LogicalDeviceMesh`, merged if equal, without send and recv.

    The cost is None for collectives along no axis of the mesh and for kinds without a formula. Raise UsageError if an alpha or
    beta names an axis that the mesh lacks.
    """
    alpha, beta = _coefficients_by_axis(mesh, model or CostModel("alpa-mesh"))
    runs_by_key: dict[tuple[str, str | None, int | None, int | None], list[Quantity]] = {}
    for collective, axis in zip(collectives, axes, strict=True):
        if not collective.is_point_to_point:
            key = (collective.kind, axis, collective.group_size, _whole_bytes(collective))
            runs_by_key.setdefault(key, []).append(runs_of(collective.inner.computation.name))
    rows = []
    for (kind, axis, devices, size), runs in runs_by_key.items():
        names = [name.partition(":")[0] for name in axis.split(",")] if axis else []  # of a part of an axis the axis
        cost = None
        if names and alpha.keys() >= set(names) and devices is not None and size is not None and kind in ALPA_TIES:
            cost = _mesh_cost(kind, devices, size, max(alpha[name] for name in names), min(beta[name] for name in names))
        rows.append(MeshCost(kind, axis, devices, size, cost, tuple(runs)))
    return sorted(rows, key=lambda row: -least(row.total))


def _coefficients_by_axis(mesh: Mesh, model: CostModel) -> tuple[dict[str, float], dict[str, float]]:
    """Return alpha and beta of each axis: the user's, else 1 and 1. The second of two axes, inside a host, has beta 0.1."""
    for given in (*model.alpha, *model.beta):
        if given not in mesh.names:
            names = ", ".join(mesh.names) or "none"
            raise UsageError(f"the mesh has no axis {given!r}; there are: {names}")
    alpha = dict.fromkeys(mesh.names, 1.0)
    beta = dict.fromkeys(mesh.names, 1.0)
    if len(mesh.names) == 2:
        beta[mesh.names[1]] = 0.1
    return alpha | dict(model.alpha), beta | dict(model.beta)


def _whole_bytes(collective: Collective) -> int | None:
    """Return the bytes of the whole array as Alpa counts it: of an exchange, the operands of all devices."""
    kind = collective.properties
    whole = collective.whole_bytes
    if not kind.is_exchange or kind.name not in ALPA_TIES:
        return whole
    devices = collective.group_size
    return whole * devices if whole is not None and devices is not None else None


def _mesh_cost(kind: str, devices: int, size: int, alpha: float, beta: float) -> float:
    """Return alpha + beta x factor x (n-1)/n x bytes + a tie-breaker. The factor is the rounds, 1/2 for an exchange."""
    properties = KIND_TABLE[kind]
    factor = 1 / devices * (devices / 2) if properties.is_exchange else float(properties.rounds)
    return alpha + beta * factor * (devices - 1) / devices * size + ALPA_TIES[kind]


def by_axis(costs: Iterable[MeshCost]) -> Iterator[tuple[str, list[MeshCost]]]:
    """Yield the name and costs of each axis, sorted by name."""
    rows: dict[str, list[MeshCost]] = {}
    for cost in costs:
        if cost.axis and cost.kind in ALPA_TIES:
            rows.setdefault(cost.axis, []).append(cost)
    yield from sorted(rows.items())
