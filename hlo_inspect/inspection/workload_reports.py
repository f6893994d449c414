"""From a workload file to its report, and to the same file in another dialect."""

from __future__ import annotations

import io
from collections.abc import Sequence

from hlo_inspect.errors import InputError, Location
from hlo_inspect.findings.workload_problems import workload_findings
from hlo_inspect.hlo.input.foreign_text import is_workload, no_workload
from hlo_inspect.hlo.input.source import Openable, Source, open_source
from hlo_inspect.passes import find_workload_pass
from hlo_inspect.passes.base import WorkloadPass
from hlo_inspect.passes.rule_pages import findings_row, truncation_rows
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Input, Report, most_severe_first
from hlo_inspect.workloads.reader import Workload, read_workload
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.writer import written


def report_on_workload(workload: Workload, command: str, chosen: Sequence[WorkloadPass], notes: Sequence[str]) -> Report:
    """The report of a workload file: the facts of the passes and of those that they include, the tables of the chosen ones."""
    totals = WorkloadTotals(workload)
    included = (find_workload_pass(name) for one in chosen for name in one.includes)
    running = list(dict.fromkeys((*chosen, *(one for one in included if one is not None))))
    sections = {one.name: one.run(totals) for one in running}
    specs = tuple(spec for one in running for spec in one.specs)
    findings = most_severe_first(workload_findings(totals))
    parts = [sections[one.name] for one in chosen]
    tables = {table.name: table for part in parts for table in part.tables}
    rows = dict.fromkeys(row for part in parts for row in part.headline)
    return Report(
        command=command,
        input=Input(workload.path, 1, workload.lines, workload.bytes),
        facts=Facts({name: value for section in sections.values() for name, value in section.facts.items()}, specs),
        tables=tuple(tables.values()),
        findings=tuple(findings),
        notes=tuple(dict.fromkeys((*notes, *(line for section in sections.values() for line in section.notes)))),
        specs=specs,
        headline=(*truncation_rows(findings), *rows, findings_row(findings)),
        title=workload.header.policy,
    )


def rewritten_workload(source: Openable, to: str) -> bytes:
    """A workload file in the dialect `to`, one of `workloads.writer.WRITTEN`. `InputError` for what is no such file,
    `UsageError` for one that cannot be said in the dialect.
    """
    opened = open_source(source)
    if not is_workload(opened.peek_text()):
        raise InputError(no_workload(opened.peek_text()), Location(opened.name))
    original = b"".join(opened.raw_pieces())
    workload = read_workload(Source(opened.name, lambda: io.BytesIO(original)))
    return written(WorkloadTotals(workload), original, to)
