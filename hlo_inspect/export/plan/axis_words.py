"""Words of the text dialects for groups of devices: TP, DP and EP, by the axes of the mesh that a user names.

SimAI's data parallel devices are all but the tensor parallel ones, so that they hold the expert parallel ones. Its word for the
rest of them is DP_EP. ASTRA-sim 1.0 has no words: tensor parallel devices exchange activations, the others gradients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.workloads.workload_header import Dialect

AxisWord = Literal["TP", "DP", "EP", "DP_EP"]
WORDS = ("TP", "DP", "EP")
_GIVEN = lazy_pattern(r"(.+)=([A-Za-z]+)", re.ASCII)


@dataclass(frozen=True)
class AxisWords:
    """The axes of each word, and the size of each axis."""

    axes: Mapping[str, frozenset[str]]
    sizes: Mapping[str, int]

    def devices(self, word: str) -> int:
        """Return the number of devices in a group of a word; 1 without axes."""
        return math.prod(self.sizes[axis] for axis in self.axes.get(word, ()))

    def word_of(self, label: str | None, dialect: Dialect) -> tuple[AxisWord | None, str]:
        """Return the word of a group over mesh axes, as `d0,d1`, or None with the reason why it has none."""
        axes = frozenset(label.split(",")) if label else frozenset()
        tensor, data, experts = (self.axes.get(word, frozenset()) for word in WORDS)
        groups: dict[frozenset[str], AxisWord] = {data: "DP_EP"} if dialect == "simai" else {}
        groups |= {data | experts: "DP", tensor: "TP"}
        if dialect == "simai" and experts:
            groups[experts] = "EP"  # also of a mesh whose data parallel devices are the expert parallel ones
        word = groups.get(axes) if axes else None
        return word, "" if word else self._reason(axes, label)

    def _reason(self, axes: frozenset[str], label: str | None) -> str:
        """Return the reason why a group over these axes has no word."""
        wordless = sorted(axes.difference(*self.axes.values()))
        if not axes:
            return "its groups are no whole mesh axes"
        if wordless:
            return f"the axis {wordless[0]} has no word; name it with --axis"
        words = sorted(word for word in WORDS if axes & self.axes.get(word, frozenset()))
        if len(words) > 1:
            return f"the axes {label} have the words {' and '.join(words)}, and no group has both"
        whole = self.axes[words[0]]
        if axes == whole:
            return f"ASTRA-sim 1.0 has no word for {words[0]} beside the other data parallel devices"
        return f"{label} is a part of {words[0]}, which is {','.join(sorted(whole))}"


def parse_axis_words(context: Context, given: Sequence[str]) -> AxisWords:
    """Parse the words of `--axis`. Raise UsageError for an unknown axis or word, or without any word."""
    mesh = context.mesh
    sizes = dict(zip(mesh.names, (axis.size for axis in mesh.axes), strict=True)) if mesh.shape is not None else {}
    listed = ", ".join(f"{axis} ({size:,})" for axis, size in sizes.items())
    place = Location(context.module.path)
    if not sizes and context.collectives:
        raise UsageError(f"the mesh of the program is unknown: {mesh.reason or 'no axes fit all groups'}", place)
    if not given and sizes:
        example = next(iter(sizes))
        raise UsageError(f"name the mesh axes {listed} by --axis, for example --axis {example}=DP", place)
    axes: dict[str, set[str]] = {}
    for text in (part for listed in given for part in listed.split(",")):
        match = _GIVEN.fullmatch(text)
        name, word = (match[1], match[2].upper()) if match is not None else (text, "")
        if word not in WORDS:
            raise UsageError(f"--axis {text}: write AXIS=WORD with a word of {', '.join(WORDS)}", place)
        if name not in sizes:
            raise UsageError(f"--axis {text}: the mesh has no axis {name}; it has {listed or 'none'}", place)
        if any(name in others for others in axes.values()):
            raise UsageError(f"--axis {text}: the axis {name} has a word already", place)
        axes.setdefault(word, set()).add(name)
    return AxisWords({word: frozenset(names) for word, names in axes.items()}, sizes)
