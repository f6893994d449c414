"""The process that inspects modules: it converts them to text with jaxlib, writes the text to a file and reports on it.

JAX's own process only passes bytes on. Some modules abort jaxlib; the next one starts another process.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hlo_inspect.compare.programs.recompile_report import recompile_report
from hlo_inspect.errors import HloInspectError
from hlo_inspect.fleet.run import CollectOptions, CollectRun
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.inspection.recompilations import Recompilations
from hlo_inspect.profiler.programs import device_assignment
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import number_of
from hlo_inspect.request import Request
from hlo_inspect.worker_process import run_tasks
from hlo_inspect.xla import with_device_counts
from hlo_inspect.xla_worker import greeting, print_proto

_NICENESS = 10
"""Steps of priority below the program that compiles: it goes first."""


def inspect_module(data: bytes, file: str, options: dict[str, Any]) -> str:
    """Write the text of an `HloModuleProto` to a file, and return the report on it as JSON."""
    text = with_device_counts(print_proto(data).encode(), device_assignment(memoryview(data)))
    Path(file).write_bytes(text)
    with Inspection(Request(**options), ReportNeeds(every_rule=True)) as inspection:
        return _rendered("json", list(inspection.reports(Path(file))))


def count_compiles(_: bytes, folder: str) -> str:
    """Return a page on all compiles of a folder: their number, the avoidable ones, and a row for each function."""
    recompilations = Recompilations()
    report = recompile_report(folder, recompilations.read([folder]), ())
    counts = (number_of(int(str(report.facts[f"recompiles.{noun}s"])), noun) for noun in ("compile", "function"))
    avoidable = report.facts["recompiles.avoidable"]
    title = f"{' of '.join(counts)}, {'?' if avoidable is None else avoidable} avoidable"
    rows = tuple(row for row in report.headline if row.severity == "warning")
    tables = (report.table_with_figures("functions"),)
    return _rendered("table", [replace(report, title=title, headline=rows, notes=(), tables=tables)])


def collect(_: bytes, folder: str, store: str, options: dict[str, Any]) -> str:
    """Collect the facts of all modules of a folder into a store. Raise the first error."""
    errors: list[HloInspectError] = []
    CollectRun(CollectOptions((folder,), store, Request(**options)), errors.append).collect(lambda _: None)
    if errors:
        raise errors[0]
    return ""


def _rendered(form: str, reports: Sequence[Report]) -> str:
    stream = io.StringIO()
    FORMATS[form](reports, stream, RenderOptions())
    return stream.getvalue()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    run_tasks({"module": inspect_module, "compiles": count_compiles, "collect": collect}, greeting)
