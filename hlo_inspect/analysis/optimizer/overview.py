"""What the updates of a module come to: one name, the values that all of them share, the bytes of each kind of state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from hlo_inspect.analysis.optimizer.clipping import Clip, find_clip
from hlo_inspect.analysis.optimizer.find import Optimizer
from hlo_inspect.analysis.optimizer.graph import Index
from hlo_inspect.analysis.optimizer.match import Weight
from hlo_inspect.analysis.optimizer.rates import Rates
from hlo_inspect.analysis.optimizer.readings import ABSENT, Reading
from hlo_inspect.analysis.optimizer.sites import Site

DECOUPLED = {"adam": "adamw", "nadam": "nadamw"}
"""Rules of weights that are left out when the others are decayed."""


@dataclass(slots=True)
class Row:
    """One weight, told in sites. `weight` is what the forward pass reads, `master` the more precise weight beside it."""

    matched: Weight
    rule: str
    weight: Site
    master: Site | None
    readings: dict[str, Reading]
    roles: dict[str, Site]
    clip: Clip | None
    counters: list[Site] = field(default_factory=list)

    def reading(self, name: str) -> Reading:
        return self.readings.get(name, ABSENT)


class Overview:
    """The rows of an optimizer and what they share."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.rows = [_row(weight) for weight in optimizer.weights]
        self.rates = Rates(optimizer)
        rules = {row.rule for row in self.rows}
        for plain, decoupled in DECOUPLED.items():
            if decoupled in rules:
                for row in self.rows:
                    row.rule = decoupled if row.rule == plain else row.rule

    @property
    def is_complete(self) -> bool:
        """Whether all expressions could be compared."""
        return not any(matcher.forms.is_cut_short for matcher in self.optimizer.matchers)

    @cached_property
    def name(self) -> str:
        rules = {row.rule for row in self.rows}
        if not rules:
            return "none"
        return rules.pop() if len(rules) == 1 else "mixed"

    def shared(self, name: str) -> float | None:
        """The value of a hyper-parameter on which all updates agree that have it."""
        found = {row.reading(name) for row in self.rows} - {ABSENT}
        return found.pop().value if len(found) == 1 else None

    @cached_property
    def clip_norm(self) -> float | None:
        found = {row.clip.limit for row in self.rows if row.clip is not None and row.clip.kind == "norm"}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def decayed(self) -> int:
        return sum(any(_acts(row.reading(name)) for name in ("weight_decay", "l2")) for row in self.rows)

    def bytes_of(self, sites: Iterable[Site | None]) -> int:
        """Bytes of distinct arrays."""
        return sum(site.bytes for site in {site.source: site for site in sites if site is not None}.values())

    def moments(self, order: str) -> list[Site]:
        return [site for row in self.rows for role, site in row.roles.items() if role.startswith(order)]

    @cached_property
    def states(self) -> list[Site]:
        """Everything that is kept beside weights and masters."""
        found = [site for row in self.rows for site in (*row.roles.values(), *row.counters)]
        for row in self.rows:
            found += row.matched.claim.extra if row.matched.claim is not None else []
            found += row.matched.accumulators
        return found

    @cached_property
    def roles(self) -> dict[tuple[int, Index], str]:
        """What each of the entry's parameters is to the optimizer, as far as it has to do with it.

        Of a step that updates weights an array that comes out unchanged is `frozen`.
        """
        named: list[tuple[str, Site | None]] = []
        for row in self.rows:
            named += [("weight", row.weight), ("master_weight", row.master), *row.roles.items()]
            named += [("counter", site) for site in row.counters]
            named += [("accumulator", site) for site in row.matched.accumulators]
        if self.rows:
            sites = (site for matcher in self.optimizer.matchers for site in matcher.region.sites)
            named += [("frozen", site) for site in sites if site.is_float and site.is_unchanged]
        found: dict[tuple[int, Index], str] = {}
        for role, site in named:
            parameter = self.optimizer.parameters.get(site.source) if site is not None else None
            if parameter is not None:
                found.setdefault(parameter, role)
        return found


def _acts(reading: Reading) -> bool:
    return reading.state != "absent" and reading.value != 0.0


def _row(weight: Weight) -> Row:
    claim, copy = weight.claim, weight.copy
    master = weight.site if copy is not None else None
    return Row(
        weight,
        weight.rule,
        copy or weight.site,
        master,
        claim.readings if claim is not None else {},
        claim.roles if claim is not None else {},
        find_clip(weight.update, claim.gradient) if claim is not None else None,
        weight.counters,
    )
