"""Programs before partitioning, which adds the collectives: their number is not that of the program that runs."""

from __future__ import annotations

BEFORE_PARTITIONING = "this is the program before partitioning, which adds the collectives"


def is_before_partitioning(shapes_are: object, devices: object) -> bool:
    """Return True if the shapes are global, at least in part, and the program is not known to have one device."""
    return shapes_are in ("global", "mixed") and devices != 1
