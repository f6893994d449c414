"""Figures of a profile as a user would like them, and what they would buy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.errors import UsageError, did_you_mean

_CHANGE = re.compile(r"([a-z0-9_.\-]{1,80}) ?= ?(\d{1,9}(?:\.\d{1,9})?|\d{1,9}/\d{1,9}) ?x", re.ASCII)
_PEAK = "peak."
_RATES = frozenset({"flops_per_s", "bytes_per_s", "bytes", "hertz", "seconds", "ratio"})


class FigureChange(NamedTuple):
    """A figure of a profile by its dotted name, and what it is multiplied with."""

    name: str
    factor: Fraction

    @property
    def text(self) -> str:
        return f"{self.name} × {float(self.factor):g}"


def given_change(text: str) -> FigureChange:
    """What a user writes: `links.nvlink.bandwidth=2x`, `peak.bf16=0.5x`. `UsageError` for anything else."""
    match = _CHANGE.fullmatch(text.strip())
    factor = Fraction(match[2]) if match is not None and not match[2].endswith("/0") else Fraction(0)
    if match is None or factor <= 0:
        raise UsageError(f"{text[:60]!r} is no change of a profile: write it like links.nvlink.bandwidth=2x or peak.bf16=2x")
    return FigureChange(match[1], factor)


def changed(profile: HardwareProfile, changes: Iterable[FigureChange]) -> HardwareProfile:
    """The profile with its figures multiplied; `UsageError` for one that it does not state."""
    for change in changes:
        name = change.name
        if name.startswith(_PEAK):
            name = f"matmul.{name.removeprefix(_PEAK)}"
        figure = profile.figures.get(name)
        if figure is None or figure.unit not in _RATES:
            raise UsageError(_unknown(profile, change.name))
        value = float(figure.value * change.factor)
        if figure.unit == "ratio" and value > 1:
            raise UsageError(f"{change.text}: a share is at most 1, and the profile {profile.name} states {figure.stated}")
        stated = replace(figure, value=value, stated=f"{figure.stated} × {float(change.factor):g}")
        profile = profile.with_figures({name: stated}, (change.text,))
    return profile


def _unknown(profile: HardwareProfile, name: str) -> str:
    """Why there is no such figure to change."""
    names = [key for key, figure in profile.figures.items() if figure is not None and figure.unit in _RATES]
    if name in profile.figures:
        return f"the profile {profile.name} states no {name}, so that nothing can be multiplied"
    closest = did_you_mean(name, [*names, *(key.replace("matmul.", _PEAK, 1) for key in names if key.startswith("matmul."))])
    return f"the profile {profile.name} has no figure {name!r}{closest}; `hlo-inspect profiles {profile.name}` lists them"


class Bottleneck(NamedTuple):
    """The resource that takes the longest, and how many times faster it has to be until the next one takes as long; `None`
    where there is no other.
    """

    resource: str
    seconds: float
    next_resource: str | None
    factor: float | None


def bottleneck(seconds: Mapping[str, float]) -> Bottleneck | None:
    """What binds, where each resource is busy for so many seconds; `None` where none is."""
    ordered = sorted(((time, name) for name, time in seconds.items() if time > 0), key=lambda one: (-one[0], one[1]))
    if not ordered:
        return None
    (longest, name), *others = ordered
    if not others:
        return Bottleneck(name, longest, None, None)
    return Bottleneck(name, longest, others[0][1], longest / others[0][0])
