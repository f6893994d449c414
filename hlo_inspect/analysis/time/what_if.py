"""Figures of a profile as a user would like them, and what they would buy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.analysis.hardware_figures import Figure
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern

_CHANGE = lazy_pattern(r"([a-z0-9_.\-]{1,80}) ?= ?(\d{1,9}(?:\.\d{1,9})?|\d{1,9}/\d{1,9}) ?x", re.ASCII)
_PEAK, _MATMUL = "peak.", "matmul."


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
            name = _MATMUL + name.removeprefix(_PEAK)
        figure = profile.figures.get(name)
        if figure is None:
            raise UsageError(_unknown(profile, change.name))
        value = figure.value * change.factor if isinstance(figure.value, int) else figure.value * float(change.factor)
        _require_sense(profile, change, figure, value)
        value = int(value) if value == int(value) else float(value)
        stated = replace(figure, value=value, stated=f"{figure.stated} × {float(change.factor):g}")
        profile = profile.with_figures({name: stated}, (change.text,))
    return profile


def _require_sense(profile: HardwareProfile, change: FigureChange, figure: Figure, value: float | Fraction) -> None:
    """`UsageError` for a value that such a figure cannot have."""
    if figure.unit == "flag" or figure.axes or figure.when:
        raise UsageError(f"{change.name} is nothing that can be multiplied")
    if figure.unit == "ratio" and value > 1:
        raise UsageError(f"{change.text}: a share is at most 1, and the profile {profile.name} states {figure.stated}")
    if figure.unit == "count" and value != int(value):
        raise UsageError(f"{change.text}: {float(value):g} is not a whole number of them")


def _unknown(profile: HardwareProfile, name: str) -> str:
    """Why there is no such figure to change."""
    if name in profile.figures or name.replace(_PEAK, _MATMUL, 1) in profile.figures:
        return f"the profile {profile.name} states no {name}, so that nothing can be multiplied"
    names = [key for key, figure in profile.figures.items() if figure is not None]
    closest = did_you_mean(name, [*names, *(key.replace(_MATMUL, _PEAK, 1) for key in names if key.startswith(_MATMUL))])
    return f"the profile {profile.name} has no figure {name!r}{closest}; `hlo-inspect profiles {profile.name}` lists them"


class Bottleneck(NamedTuple):
    """The resource that takes the longest, and how many times faster it has to be until the next one takes as long; `None`
    where there is no other.
    """

    resource: str
    seconds: float
    next_resource: str | None
    factor: float | None


def bottleneck(busy: Mapping[str, Seconds]) -> Bottleneck | None:
    """What binds, where each resource is busy at least for so long; `None` where none is."""
    ordered = sorted(((time.least, name) for name, time in busy.items() if time.least > 0), key=lambda one: (-one[0], one[1]))
    if not ordered:
        return None
    (longest, name), *others = ordered
    if not others:
        return Bottleneck(name, longest, None, None)
    return Bottleneck(name, longest, others[0][1], longest / others[0][0])
