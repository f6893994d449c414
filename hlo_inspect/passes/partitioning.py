"""Programs before partitioning, which adds the collectives: their number is not that of the program that runs."""

from __future__ import annotations

from hlo_inspect.report.model import Report

BEFORE_PARTITIONING = "this is the program before partitioning, which adds the collectives"


def is_before_partitioning(shapes_are: object, devices: object) -> bool:
    """Return True if the shapes are global, at least in part, and the program is not known to have one device."""
    return shapes_are in ("global", "mixed") and devices != 1


def lacks_collectives(report: Report) -> bool:
    """Return True if the program of a report is not partitioned yet."""
    return is_before_partitioning(report.facts.get("module.shapes"), report.facts.get("module.devices"))
