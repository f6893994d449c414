"""Reports on inputs that hold no module: workload files of simulators, XLA's files about memory, logs of a failure."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.memory.out_of_memory import read_reports
from hlo_inspect.analysis.memory.sidecars import (
    BufferAssignmentFile,
    PlacedAllocation,
    files_beside,
    read_buffer_assignment,
    read_live_range,
    read_usage_report,
)
from hlo_inspect.errors import InputError, Location
from hlo_inspect.figure import known_part
from hlo_inspect.findings.workload_problems import workload_findings
from hlo_inspect.hlo.input.foreign_text import MEMORY_FILE, is_workload, no_workload
from hlo_inspect.hlo.input.source import Openable, Source, open_source
from hlo_inspect.hlo.pasted.logs import MAX_LINES
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes import find_pass, find_workload_pass
from hlo_inspect.passes.base import WorkloadPass
from hlo_inspect.passes.memory.xla_reports import REPORTED_AT_PEAK, out_of_memory_rows, out_of_memory_tables
from hlo_inspect.passes.params import index_text
from hlo_inspect.passes.rule_pages import findings_row, truncation_rows
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, HeadlineRow, Input, Report, most_severe_first
from hlo_inspect.report.table import Column, Table, Value
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.workload_reader import Workload, read_workload
from hlo_inspect.workloads.writer import written


def report_on_workload(workload: Workload, command: str, chosen: Sequence[WorkloadPass], notes: Sequence[str]) -> Report:
    """Return the report of a workload file: facts of the passes and of those that they include, tables of the chosen."""
    totals = WorkloadTotals(workload)
    included = (find_workload_pass(name) for pass_ in chosen for name in pass_.includes)
    running = list(dict.fromkeys((*chosen, *(pass_ for pass_ in included if pass_ is not None))))
    sections = {pass_.name: pass_.run(totals) for pass_ in running}
    specs = tuple(spec for pass_ in running for spec in pass_.specs)
    findings = most_severe_first(workload_findings(totals))
    parts = [sections[pass_.name] for pass_ in chosen]
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
    """Rewrite a workload file in the dialect `to`. Raise InputError if it is none, UsageError if a part has no place there."""
    opened = open_source(source)
    if not is_workload(opened.peek_text()):
        raise InputError(no_workload(opened.peek_text()), Location(opened.name))
    original = b"".join(opened.raw_pieces())
    workload = read_workload(Source(opened.name, lambda: io.BytesIO(original)))
    return written(WorkloadTotals(workload), original, to)


COMMAND = "memory"
_QUOTED = lazy_pattern(r"allocation \d{1,18}: size |value: <|Used values:", re.ASCII)
"""Pattern of the start of a line of a buffer assignment, after other text."""


def files_of_dump(path: str) -> list[str | Path]:
    """Return the files of a dump: its own, and those about memory that XLA wrote next to it."""
    return [path, *files_beside(path)]


def report_on_memory_file(source: Source) -> Report:
    """Return the report of one of XLA's files about memory, read without its module."""
    match = MEMORY_FILE.match(source.peek_text())
    lines = [line for piece in source.pieces() for line in piece.splitlines()]
    given = Input(source.name, 1, len(lines), source.bytes_read)
    if match is not None and match[1]:
        return _assignment(read_buffer_assignment(lines), given)
    if match is not None and match[2]:
        return _ranges(lines, given)
    return _usage(lines, given)


def report_on_log(source: Source) -> Report | None:
    """Return the report on the out-of-memory reports of a log without a module; None if it has none."""
    reports = read_reports(source.memory_lines)
    if not reports:
        return None
    given = Input(source.name, reports[0].line, len(source.memory_lines), source.bytes_read)
    tables = tuple(out_of_memory_tables(reports, table=REPORTED_AT_PEAK))
    return _report(given, {}, tables, tuple(out_of_memory_rows(reports)), "the log does not state this figure")


def report_on_quoted_assignment(source: Source) -> Report | None:
    """Return the report on a buffer assignment among other text, such as a prefix of each line; None without allocations."""
    starts = (_QUOTED.search(line) for _, line in source.memory_lines)
    file = read_buffer_assignment(start.string[start.start() :] for start in starts if start is not None)
    numbers = [placed.number for placed in file.allocations]
    if not numbers:
        return None
    lines = source.memory_lines
    given = Input(source.name, lines[0][0], len(lines), source.bytes_read)
    is_whole = numbers == list(range(len(numbers))) and len(lines) < MAX_LINES
    return _assignment(file, given, missing="" if is_whole else "the quoted buffer assignment lacks allocations")


def _report(
    given: Input, facts: dict[str, Value], tables: tuple[Table, ...], rows: tuple[HeadlineRow, ...], why: str
) -> Report:
    specs = find_pass(COMMAND).specs
    plain = [spec.name for spec in specs if "<" not in spec.name]
    values = dict.fromkeys(plain) | facts
    notes = tuple(f"{name}: {why}" for name in plain if values[name] is None)
    title = Path(given.path).name
    return Report(COMMAND, given, Facts(values, specs), tables, notes=notes, specs=specs, headline=rows, title=title)


# -- buffer assignment --------------------------------------------------------------------------------------------------------


def _assignment(file: BufferAssignmentFile, given: Input, missing: str = "") -> Report:
    """Return the report of a buffer assignment. If allocations are `missing`, its sums are lower bounds for this reason."""
    temporaries = file.temp_bytes
    sizes = {
        "memory.argument_bytes": file.argument_bytes,
        "memory.output_bytes": file.output_bytes,
        "memory.alias_bytes": file.alias_bytes,
        "memory.constant_bytes": file.constant_bytes,
        "memory.temp_bytes": temporaries.get(0, 0),
        "memory.needed_bytes": file.static_bytes + temporaries.get(0, 0),
    }
    facts: dict[str, Value] = {name: known_part(size, missing) for name, size in sizes.items()}
    needed: tuple[str | Amount, ...] = ("needs ", Amount(facts["memory.needed_bytes"], "bytes"))
    largest = sorted(file.allocations, key=lambda placed: -placed.size)
    temps = sorted((value for placed in largest if placed.is_temp for value in placed.values), key=lambda value: -value.size)
    why = "a buffer assignment has no live ranges; read the module or its -live-range.txt"
    return _report(given, facts, (_ALLOCATIONS.of(largest), _TEMPORARIES.of(temps)), (HeadlineRow("", needed),), why)


def _kind(placed: PlacedAllocation) -> str:
    words = []
    if placed.parameter is not None:
        words.append(f"parameter {placed.parameter[0]}")
    flags = (
        (placed.is_constant, "constant"),
        (placed.is_thread_local, "thread-local"),
        (placed.is_live_out, "output"),
    )
    words += [word for is_set, word in (*flags, (placed.is_temp, "temporaries")) if is_set]
    return ", ".join(words)


_ALLOCATIONS = TableSpec("live_at_peak", "Allocations").with_columns(
    Column("allocation", "number", get=attrgetter("number")),
    Column("kind", width=24, get=_kind),
    Column("bytes", "bytes", summed=True, get=attrgetter("size")),
    Column("memory_space", "number", detail=2, get=attrgetter("color")),
    Column("values", "count", get=lambda placed: len(placed.values)),
    Column("first_value", get=lambda placed: placed.values[0].name if placed.values else ""),
    Column("shape", width=30, get=lambda placed: placed.values[0].shape if placed.values else ""),
)
_TEMPORARIES = TableSpec("temporaries", "Values in the heaps of temporaries").with_columns(
    Column("name"),
    Column("shape"),
    Column("bytes", "bytes", get=attrgetter("size")),
    Column("offset", "bytes"),
)


# -- live ranges and usage ----------------------------------------------------------------------------------------------------


class _LiveArray(NamedTuple):
    """An array that is live at the peak; its live range is None if the file does not state it."""

    name: str
    position: ShapeIndex
    size: int
    first: int | None
    last: int | None


_LIVE = TableSpec("live_at_peak", "Live at XLA's peak (parameters until their last use)").with_columns(
    Column("name"),
    Column("shape_index", detail=3, get=lambda array: index_text(array.position)),
    Column("bytes", "bytes", summed=True, get=attrgetter("size")),
    Column("live_from", "number", optional=True, get=attrgetter("first")),
    Column("live_to", "number", optional=True, get=attrgetter("last")),
)


def _ranges(lines: list[str], given: Input) -> Report:
    file = read_live_range(lines)
    size = sum(bytes_ for _, bytes_ in file.at_peak)
    names = dict(enumerate(file.schedule))
    position = f" at {names[file.peak]}" if file.peak in names else ""
    row: tuple[str | Amount, ...] = ("XLA lists ", Amount(size, "bytes"), f" as live at time {file.peak}{position}")
    live = [
        _LiveArray(name, index, size, *file.ranges.get((name, index), (None, None))) for (name, index), size in file.at_peak
    ]
    why = "live ranges do not state this figure; read the module or its -buffer-assignment.txt"
    return _report(given, {}, (_LIVE.of(live),), (HeadlineRow("", row),), why)


_USAGE = TableSpec("live_at_peak", "Allocations by memory", page_rows=0).with_columns(
    Column("memory", get=itemgetter(0)),
    Column("memory_space", "number", get=itemgetter(1)),
    Column("bytes", "bytes", summed=True, get=itemgetter(2)),
)
TABLES = (_ALLOCATIONS, _TEMPORARIES, _LIVE, _USAGE)


def _usage(lines: list[str], given: Input) -> Report:
    file = read_usage_report(lines)
    table = _USAGE.of((file.names.get(space, "all"), space, size) for space, size in file.totals.items())
    row: tuple[str | Amount, ...] = ("allocates ", Amount(sum(file.totals.values()), "bytes"))
    return _report(given, {}, (table,), (HeadlineRow("", row),), "a usage report has sums only")
