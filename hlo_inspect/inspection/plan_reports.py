"""The report on a workload file and the module that was compiled."""

from __future__ import annotations

from dataclasses import replace

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.planned_traffic import compare_with_plan
from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError
from hlo_inspect.hlo.input.dump_directory import is_directory
from hlo_inspect.hlo.input.foreign_text import is_workload
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.inspection import STANDARD_INPUT, Inspection
from hlo_inspect.inspection.saved_reports import holds_report
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.workload_reader import read_workload


def is_plan(old: str, new: str) -> bool:
    """Return True if OLD is a workload file and NEW a dump. Standard input and directories are no workload files."""
    if not _is_workload(old) or _is_workload(new):
        return False
    if new in STANDARD_INPUT or is_directory(new):
        return True
    try:
        return not holds_report(open_source(new))
    except HloInspectError:  # its reader says why
        return False


def _is_workload(source: str) -> bool:
    if source in STANDARD_INPUT or is_directory(source):
        return False
    try:
        return is_workload(open_source(source).peek_text())
    except HloInspectError:  # its reader says why
        return False


def plan_report(plan: str, dump: str, request: Request) -> Report:
    """Compare a workload file with the one module of a dump. Raise the error of an input that cannot be read."""
    contexts: list[Context] = []
    with Inspection(replace(request, passes="collectives", axis_words=(), jobs=1)) as inspection:
        inspection.set_report_sink(lambda _, context: contexts.append(context))
        for source in inspection.sources(dump):
            for _ in inspection.reports(source):
                pass
    if len(contexts) != 1:
        names = " and ".join(context.module.name for context in contexts[:2])
        if not contexts:
            raise InputError("holds no HLO module", Location(dump))
        raise UsageError(f"holds several modules, {names}; choose one with --module", Location(dump))
    return compare_with_plan(WorkloadTotals(read_workload(open_source(plan))), contexts[0], request.axis_words)
