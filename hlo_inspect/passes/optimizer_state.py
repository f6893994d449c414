"""What the optimizer's state costs that it need not: buffers that are not donated, copies on devices that could share it.

State are moments, other arrays that an optimizer keeps, and masters; scalars are not. A replicated state is told of where
another parameter, which the step only reads, is divided among the devices that hold the same state: as the batch is in data
parallel training. Dividing the state among n devices leaves each of them one part of n (ZeRO-1; Rajbhandari et al. 2020,
arXiv:1910.02054).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.copies import copies_of, parts_among
from hlo_inspect.analysis.parameters import ParameterLeaf, saved_by_donating
from hlo_inspect.hlo.sharding import Groups
from hlo_inspect.report.model import Finding, Severity

WORTH_TELLING = 1 << 10  # bytes of all state together
MAX_PARTITIONS = 1 << 14
MAX_SHARDINGS = 20  # of parameters that are only read, and of state
KINDS = ("first moment", "second moment", "master weight", "accumulator")

State = list[tuple[ParameterLeaf, str]]
"""Parameters and what kind of state they are."""


def state_findings(context: Context) -> list[Finding]:
    """HI505, and HI506 for each number of devices."""
    state = _state(context)
    return [*_not_donated(context, state), *_replicated(context, state)]


def _state(context: Context) -> State:
    overview = context.optimizer
    parameters = overview.optimizer.parameters
    roles = {parameters.get(site.source): "other state" for site in overview.states}
    for key, role in overview.roles.items():
        roles[key] = next((kind for kind in KINDS if role.replace("_", " ").startswith(kind)), role)
    leaves = [leaf for leaf in context.interface.parameters if leaf.shape.elements != 1]
    found = [(leaf, roles.get((leaf.number, leaf.index))) for leaf in leaves]
    return [(leaf, role) for leaf, role in found if role in {*KINDS, "other state"} and role is not None]


def _not_donated(context: Context, state: State) -> list[Finding]:
    kept = [(leaf, role) for leaf, role in state if leaf.could_be_donated]
    size = saved_by_donating([leaf for leaf, _ in kept], context.interface.outputs)
    if size < WORTH_TELLING:
        return []
    message = f"the optimizer's state is not donated: {_counted(kept)}; donating it would save {size:,} bytes"
    return [_finding(context, "HI505", "warning", message, kept, size)]


def _replicated(context: Context, state: State) -> list[Finding]:
    partitions = (context.device_counts.partitions or 1) if state else 1
    if not 1 < partitions <= MAX_PARTITIONS:
        return []
    read = {leaf.sharding: leaf for leaf in reversed(_only_read(context))}
    found = [(leaf, copies_of(leaf.sharding, partitions)) for leaf in list(read.values())[-MAX_SHARDINGS:]]
    divided = [(leaf, copies) for leaf, copies in found if copies is not None]
    known: dict[str, _Spread | None] = {}
    groups: dict[tuple[int, int], State] = {}
    saved: Counter[tuple[int, int]] = Counter()
    for leaf, role in state:
        if leaf.sharding not in known and len(known) < MAX_SHARDINGS:
            known[leaf.sharding] = _spread(copies_of(leaf.sharding, partitions), divided)
        spread = known.get(leaf.sharding)
        if spread is not None and leaf.shape.bytes is not None:
            size = leaf.shape.bytes if context.shapes_are == "per_device" else leaf.shape.bytes // spread.tiles
            key = spread.parts, spread.among
            groups.setdefault(key, []).append((leaf, role))
            saved[key] += size - -(-size // spread.parts)
    return [
        _finding(context, "HI506", "info", _shared(members, *key, saved[key]), members, saved[key])
        for key, members in groups.items()
        if saved[key] >= WORTH_TELLING
    ]


class _Spread(NamedTuple):
    """A state that lies in `tiles`, each of them on devices among which parameter `among` is divided into `parts`."""

    parts: int
    among: int
    tiles: int


def _spread(copies: Groups | None, divided: list[tuple[ParameterLeaf, Groups]]) -> _Spread | None:
    if copies is None:
        return None
    found = [(parts_among(copies, others), -leaf.number) for leaf, others in divided]
    parts, number = max(found, default=(1, 0))
    return _Spread(parts, -number, len(copies)) if parts > 1 else None


def _only_read(context: Context) -> list[ParameterLeaf]:
    """Parameters that the step reads and neither updates nor gives away."""
    optimizer = context.optimizer.optimizer
    updated = {optimizer.parameters.get(site.source) for matcher in optimizer.matchers for site in matcher.region.sites}
    return [leaf for leaf in context.interface.parameters if not leaf.donated and (leaf.number, leaf.index) not in updated]


def _shared(members: State, parts: int, number: int, size: int) -> str:
    return (
        f"the optimizer's state is the same on {parts} devices among which parameter {number} is divided: {_counted(members)}; "
        f"dividing it too would save {size:,} bytes on each of them"
    )


def _counted(members: State) -> str:
    """`2 first moments and 1 master weight`."""
    counts = Counter(kind for _, kind in members)
    words = [f"{count} {kind}" + ("s" if count > 1 else "") for kind, count in counts.items()]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _finding(context: Context, code: str, severity: Severity, message: str, members: State, size: int) -> Finding:
    module = context.module
    place = module.location(module.entry.line if module.entry else module.first_line)
    return Finding(code, severity, message, place, members[0][0].name, size)
