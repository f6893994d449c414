"""The time of data over links: the bound on each level, the estimate, and what a profile lacks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile, Link


class Way(NamedTuple):
    """Seconds that data takes at least on each level, by the level's name, and those of the model; `None` where `reason` says
    what is missing for it.
    """

    levels: tuple[tuple[str, float], ...]
    estimate: float | None
    reason: str = ""

    @property
    def bound(self) -> float:
        return max((seconds for _, seconds in self.levels), default=0.0)


NOTHING_SENT = Way((), 0.0)


class UnknownTimeError(Exception):
    """Why the time of a collective is not known."""


def slowest(ways: Sequence[Way]) -> Way:
    """What all ways together take at least: each level the longest of them."""
    levels: dict[str, float] = {}
    for way in ways:
        for name, seconds in way.levels:
            levels[name] = max(levels.get(name, 0.0), seconds)
    estimates = [way.estimate for way in ways]
    known = [estimate for estimate in estimates if estimate is not None]
    reason = next((way.reason for way in ways if way.reason), "")
    return Way(tuple(levels.items()), max(known, default=0.0) if len(known) == len(estimates) else None, reason)


def with_model(link: Link, bound: float, profile: HardwareProfile, *, seconds: float | None = None, steps: int = 1) -> Way:
    """A way over one level with its estimate: `seconds`, or the bound, at what the links reach, and the latency of all steps.
    On a torus data flows on while its first part is on the way, so that the longer of the two counts.
    """
    levels = ((link.name, bound),)
    if link.efficiency is None or link.latency is None:
        return Way(levels, None, no_model(profile, [link]))
    sent, latency = (bound if seconds is None else seconds) / link.efficiency, steps * link.latency
    return Way(levels, max(sent, latency) if link.topology == "torus" else sent + latency)


def known(seconds: float | None, profile: HardwareProfile, link: Link) -> float:
    """Seconds or bytes/s of a level; `UnknownTimeError` where the profile does not state its bandwidth."""
    if seconds is None:
        raise UnknownTimeError(f"the profile {profile.name} states no bandwidth of {link.name}")
    return seconds


def no_model(profile: HardwareProfile, links: Iterable[Link]) -> str:
    """Which figures an estimate over these levels lacks."""
    missing = [
        f"links.{link.name}.{name}"
        for link in links
        for name, value in (("latency", link.latency), ("efficiency", link.efficiency))
        if value is None
    ]
    return f"no estimate: the profile {profile.name} states no {' nor '.join(missing)}"
