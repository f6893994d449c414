"""Checks of collectives on a module from before partitioning, which can only pass: the partitioner adds the collectives."""

from __future__ import annotations

from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.report.model import Report

REASON = (
    "this is the program before partitioning, which adds the collectives; check that of .compile(), "
    "or the file after_optimizations"
)


def is_before_partitioning(report: Report) -> bool:
    """Return True if the module's shapes are global, at least in part, and it is not known to have one device."""
    return report.facts.get("module.shapes") in ("global", "mixed") and report.facts.get("module.devices") != 1


def counts_collectives(figure: str) -> bool:
    """Return True if a fact or a figure of rows depends on the collectives of the module."""
    opcode = TABLE.get(figure.removeprefix("opcode.")) if figure.startswith("opcode.") else None
    return "collective" in figure.partition("[")[0] or (opcode is not None and bool(opcode.collective))
