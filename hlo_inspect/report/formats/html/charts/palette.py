"""The colours of all pictures. One meaning has one colour everywhere.

Hues are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people with a colour vision deficiency tell apart;
on a dark page they are lighter. Neighbours of a similar hue differ in lightness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.report.table import Value


class Colour(NamedTuple):
    """A colour on a light and on a dark page."""

    light: str
    dark: str


_BLUE, _SKY = Colour("#0072b2", "#3d9bd6"), Colour("#56b4e9", "#9ad4f5")
_ORANGE, _VERMILION = Colour("#e69f00", "#e8a92c"), Colour("#d55e00", "#ef7b2f")
_GREEN, _PURPLE = Colour("#009e73", "#2fbf95"), Colour("#cc79a7", "#dd94bd")
_PLUM, _SAND = Colour("#7a3e65", "#8a4a75"), Colour("#b8a13a", "#cdb95c")
_GREY, _DARK_GREY = Colour("#b4bbc2", "#7f8992"), Colour("#5f6973", "#4f5962")

PALETTE: Mapping[str, Colour] = {
    "paper": Colour("#ffffff", "#15181c"),
    "text": Colour("#1c2024", "#e4e7ea"),
    "quiet": Colour("#5b6570", "#9aa5b1"),
    "grid": Colour("#e4e8ec", "#2a3037"),
    "line": Colour("#d8dee4", "#343b43"),
    "soft": Colour("#f4f6f8", "#1e2328"),
    # phases
    "forward": _BLUE,
    "recompute": _SKY,
    "loss": _PURPLE,
    "backward": _VERMILION,
    "optimizer": _GREEN,
    "unknown": _GREY,
    # bounds (resources)
    "compute": _BLUE,
    "memory": _ORANGE,
    "collective": _PURPLE,
    "fixed": _DARK_GREY,
    "other": _GREY,
    # roles of arrays
    "weight": _BLUE,
    "state": _SKY,
    "gradient": _VERMILION,
    "activation": _ORANGE,
    "temporary": _GREY,
    "input": _GREEN,
    "new-value": _PLUM,
    "output": _DARK_GREY,
    "constant": _SAND,
    "copy": _PURPLE,
    # donation
    "donated": _BLUE,
    "not-donated": _ORANGE,
    # collectives
    "all-reduce": _BLUE,
    "all-gather": _ORANGE,
    "reduce-scatter": _SKY,
    "all-to-all": _VERMILION,
    "collective-permute": _GREEN,
    "collective-broadcast": _PURPLE,
    "collective-reduce": _DARK_GREY,
    "ragged-all-to-all": _PLUM,
    "send": _SAND,
    "recv": _GREY,
    # differences
    "old": _GREY,
    "new": _BLUE,
    "more": _VERMILION,
    "less": _BLUE,
    # anything else, in this order
    "series-0": _BLUE,
    "series-1": _ORANGE,
    "series-2": _GREEN,
    "series-3": _PURPLE,
    "series-4": _SKY,
    "series-5": _VERMILION,
    "series-6": _PLUM,
    "series-7": _SAND,
}
SERIES = 8

_RANKS = {name: number for number, name in enumerate(PALETTE)}

_ROLES = {
    "weight": "weight",
    "master_weight": "weight",
    "frozen": "weight",
    "parameter": "weight",
    "new value": "new-value",
    "gradient": "gradient",
    "activation": "activation",
    "temporary": "temporary",
    "input": "input",
    "output": "output",
    "constant": "constant",
    "tuple table": "constant",
    "weight copy": "copy",
    "input copy": "copy",
    "state copy": "copy",
}


def css_variables() -> str:
    """Return the custom properties of a style sheet that hold the colours, `--c-NAME`, and of texts on them, `--c-on-NAME`."""
    light = " ".join(f"--c-{name}: {shades.light}; --c-on-{name}: {_ink(shades.light)};" for name, shades in PALETTE.items())
    dark = " ".join(f"--c-{name}: {shades.dark}; --c-on-{name}: {_ink(shades.dark)};" for name, shades in PALETTE.items())
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root:not(.paper) {{ {dark} }} }}\n"


def _ink(ground: str) -> str:
    """Return black or white, whichever has more contrast on a colour."""
    return "#000000" if (luminance(ground) + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def luminance(rgb: str) -> float:
    """Return the relative luminance of `#rrggbb` as WCAG 2 defines it, from 0 to 1."""
    parts = (int(rgb[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colour(name: Value) -> str:
    """Return the placeholder of a figure for the colour of a phase, a kind of collective or another name of the palette."""
    return f"${name}" if name in PALETTE else "$unknown"


def rank(name: Value) -> int:
    """Return the place of a phase or kind in legends, which all have one order."""
    return _RANKS.get(str(name), len(_RANKS))


def colour_of_role(role: Value) -> str:
    """Return the colour of an array's role; the optimizer's state besides weights has one."""
    return f"${_ROLES.get(str(role), 'state')}"


def series(number: int) -> str:
    """Return the colour of one of several things without a colour of their own."""
    return f"$series-{number % SERIES}"
