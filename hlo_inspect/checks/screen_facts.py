"""The facts of the summary's first lines, as lines of a policy that the module passes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hlo_inspect.errors import printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.facts import SpecIndex, exact_name
from hlo_inspect.report.model import FactSpec, Report
from hlo_inspect.report.table import LOWER_BOUND, Plain, Unit
from hlo_inspect.report.units import format_value, parse_quantity

PASSES_OF_FACTS, PASSES_OF_TIMES = ("top", "memory"), ("time",)
"""Passes beside `summary` that have facts of its first lines; the latter with a profile."""

_SCREEN = (
    "module.devices",
    "mesh.shape",
    "optimizer.name",
    "optimizer.update_count",
    "cost.executed_matmul_flops",
    "cost.executed_bytes_accessed",
    "kernels.executed_count",
    "time.step_s",
    "time.estimate_step_s",
    "time.estimate_exposed_collective_s",
    "collectives.executed_count",
    "collectives.executed_wire_bytes",
    "collectives.axis.<axis>.executed_wire_bytes",
    "collectives.phase.recompute.executed_wire_bytes",
    "params.bytes",
    "params.donated_count",
    "params.donated_bytes",
    "memory.needed_bytes",
    "memory.peak_bytes",
)
_COST = lazy_pattern(r"wire_bytes|bytes_accessed|^memory\.")
"""Facts in bytes that a policy limits."""
_PLAIN = lazy_pattern(r"[A-Za-z_][\w.,:()-]*(?<!:)")
"""Text that YAML reads as it is."""


def policy_lines(report: Report) -> Iterator[str]:
    """Yield the lines of a policy: equal counts, and times, accessed, sent and needed bytes as limits in few digits.

    Unknown facts are comments.
    """
    yield f"checks:  # {printable(report.module_name)}, {printable(report.input.place)}\n"
    specs = SpecIndex(report.specs)
    lines_of: dict[str, list[str]] = {}
    for name, value in report.facts.items():
        spec_and_member = specs.find(name)
        if spec_and_member is not None and exact_name(name) == name:
            spec, _ = spec_and_member
            key = name if name in _SCREEN else spec.name
            lines_of.setdefault(key, []).append(f"  {_line(name, value, spec, report)}\n")
    for name in _SCREEN:
        yield from lines_of.get(name, ())


def _line(name: str, value: Plain, spec: FactSpec, report: Report) -> str:
    if value is None:
        low = report.facts.get(name + LOWER_BOUND)
        return f"# {_scalar(name)}: unknown" + ("" if low is None else f", {format_value(low, spec.unit)} or more")
    if value and isinstance(value, int | float) and (spec.unit == "seconds" or _COST.search(name)):
        return f"{_scalar(name)}: <= {rounded_up(value, spec.unit)}"
    return f"{_scalar(name)}: {_scalar(value) if isinstance(value, str) else value}"


def rounded_up(value: int | float, unit: Unit) -> str:
    """Return the least quantity with the digits of a page that is not below the value."""
    text = format_value(value, unit)
    if text.startswith("<"):
        return f"{value!r} s"
    number, suffix = text.split(" ")
    if parse_quantity(text, unit) < value:
        decimals = len(number.partition(".")[2])
        number = f"{float(number) + 10**-decimals:.{decimals}f}"
    return f"{number} {suffix}"


def _scalar(text: str) -> str:
    """Return a text as YAML writes it."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
