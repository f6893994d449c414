"""Sentences on modules of one program whose other hashes differ, from the reports of `fingerprint`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hlo_inspect.passes.fingerprint import CACHE_PARTS
from hlo_inspect.report.model import HeadlineRow, Report
from hlo_inspect.report.table import Value

_PROGRAM, _SCHEDULE = "fingerprint.program", "fingerprint.schedule"
_KEYLESS = frozenset({"instruction names", "metadata"})
"""Parts that JAX's persistent cache leaves out of its key by default."""


def explained(reports: Iterable[Report]) -> Iterator[Report]:
    """Yield the reports as they come. One of a program that an earlier report has says what else differs, and why."""
    first: dict[Value, Report] = {}
    for report in reports:
        program = report.facts.get(_PROGRAM)
        earlier = first.setdefault(program, report) if program is not None else report
        yield report if earlier is report else replace(report, headline=(*report.headline, _row(earlier, report)))


def _row(earlier: Report, report: Report) -> HeadlineRow:
    place = f"{earlier.module_name} ({earlier.input.place})"
    differing = [name for name, digest in _parts(report).items() if _parts(earlier).get(name) != digest]
    if not differing:
        return HeadlineRow("same", (f"program, schedule and names as {place}",))
    if earlier.facts[_SCHEDULE] != report.facts[_SCHEDULE]:
        what = "the same program in another schedule than"
    else:
        what = "the same program as"
    parts = [str(name) for name in differing if name not in ("program", "schedule")]
    reason = f"; a cache may tell them apart by {', '.join(parts)}" if parts else ""
    keyless = ", which JAX's persistent cache leaves out by default" if parts and _KEYLESS.issuperset(parts) else ""
    return HeadlineRow("same", (f"{what} {place}{reason}{keyless}",))


def _parts(report: Report) -> dict[Value, Value]:
    return {row[0]: row[1] for row in report.table(CACHE_PARTS.name).rows}
