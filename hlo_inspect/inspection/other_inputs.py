"""Reports on inputs that hold no module: workload files of simulators, XLA's files about memory, logs of a failure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

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
from hlo_inspect.findings.workload_problems import workload_findings
from hlo_inspect.hlo.input.foreign_text import MEMORY_FILE, is_workload, no_workload
from hlo_inspect.hlo.input.source import Openable, Source, open_source
from hlo_inspect.passes import find_pass, find_workload_pass
from hlo_inspect.passes.base import WorkloadPass
from hlo_inspect.passes.memory.tables import out_of_memory_rows, out_of_memory_tables
from hlo_inspect.passes.rule_pages import findings_row, truncation_rows
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, Column, HeadlineRow, Input, Report, Table, Value, most_severe_first
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


COMMAND = "memory"


def files_of_dump(path: str) -> list[str | Path]:
    """The files that an answer about a dump is read from: that of the name, and those about memory that XLA wrote beside it."""
    return [path, *files_beside(path)]


def report_on_memory_file(source: Source) -> Report:
    """What one of XLA's files about memory says alone."""
    match = MEMORY_FILE.match(source.peek_text())
    lines = [line for piece in source.pieces() for line in piece.splitlines()]
    given = Input(source.name, 1, len(lines), source.bytes_read)
    if match is not None and match[1]:
        return _assignment(read_buffer_assignment(lines), given)
    if match is not None and match[2]:
        return _ranges(lines, given)
    return _usage(lines, given)


def report_on_log(source: Source) -> Report | None:
    """The report on a log without a module that says that memory did not suffice; `None` where it does not."""
    reports = read_reports(source.memory_lines)
    if not reports:
        return None
    given = Input(source.name, reports[0].line, len(source.memory_lines), source.bytes_read)
    tables = tuple(out_of_memory_tables(reports, name="live_at_peak"))
    return _report(given, {}, tables, tuple(out_of_memory_rows(reports)), "the log does not state it")


def _report(
    given: Input, facts: dict[str, Value], tables: tuple[Table, ...], rows: tuple[HeadlineRow, ...], why: str
) -> Report:
    specs = find_pass(COMMAND).specs
    plain = [spec.name for spec in specs if "<" not in spec.name]
    found = dict.fromkeys(plain) | facts
    notes = tuple(f"{name}: {why}" for name in plain if found[name] is None)
    title = Path(given.path).name
    return Report(COMMAND, given, Facts(found, specs), tables, notes=notes, specs=specs, headline=rows, title=title)


# -- buffer assignment --------------------------------------------------------------------------------------------------------


def _assignment(file: BufferAssignmentFile, given: Input) -> Report:
    temporaries = file.temp_bytes
    facts: dict[str, Value] = {
        "memory.argument_bytes": file.argument_bytes,
        "memory.output_bytes": file.output_bytes,
        "memory.alias_bytes": file.alias_bytes,
        "memory.constant_bytes": file.constant_bytes,
        "memory.temp_bytes": temporaries.get(0, 0),
        "memory.needed_bytes": file.static_bytes + temporaries.get(0, 0),
    }
    needed: tuple[str | Amount, ...] = ("needs ", Amount(facts["memory.needed_bytes"], "bytes"))
    largest = sorted(file.allocations, key=lambda one: -one.size)
    columns = (
        Column("allocation", "number", get=lambda one: one.number),
        Column("kind", width=24, get=_kind),
        Column("bytes", "bytes", summed=True, get=lambda one: one.size),
        Column("memory_space", "number", detail=2, get=lambda one: one.color),
        Column("values", "count", get=lambda one: len(one.values)),
        Column("first_value", get=lambda one: one.values[0].name if one.values else ""),
        Column("shape", width=30, get=lambda one: one.values[0].shape if one.values else ""),
    )
    table = Table.of("live_at_peak", "Allocations", columns, largest)
    temps = [(value.name, value.shape, value.size, value.offset) for one in largest if one.is_temp for value in one.values]
    temps.sort(key=lambda row: -row[2])
    inner = (Column("name"), Column("shape"), Column("bytes", "bytes"), Column("offset", "bytes"))
    values = Table("temporaries", "Values in the heaps of temporaries", inner, tuple(temps))
    why = "a buffer assignment does not say when values live: the module or its -live-range.txt does"
    return _report(given, facts, (table, values), (HeadlineRow("", needed),), why)


def _kind(one: PlacedAllocation) -> str:
    words = []
    if one.parameter is not None:
        words.append(f"parameter {one.parameter[0]}")
    flags = ((one.is_constant, "constant"), (one.is_thread_local, "thread-local"), (one.is_live_out, "output"))
    words += [word for is_set, word in (*flags, (one.is_temp, "temporaries")) if is_set]
    return ", ".join(words)


# -- live ranges and usage ----------------------------------------------------------------------------------------------------


def _ranges(lines: list[str], given: Input) -> Report:
    file = read_live_range(lines)
    size = sum(bytes_ for _, bytes_ in file.at_peak)
    names = dict(enumerate(file.schedule))
    at = f" at {names[file.peak]}" if file.peak in names else ""
    row: tuple[str | Amount, ...] = ("XLA lists ", Amount(size, "bytes"), f" as live at time {file.peak}{at}")
    columns = (
        Column("name", get=lambda one: one[0][0]),
        Column("shape_index", detail=3, get=lambda one: "{" + ",".join(map(str, one[0][1])) + "}"),
        Column("bytes", "bytes", summed=True, get=lambda one: one[1]),
        Column("live_from", "number", optional=True, get=lambda one: file.ranges.get(one[0], (None, None))[0]),
        Column("live_to", "number", optional=True, get=lambda one: file.ranges.get(one[0], (None, None))[1]),
    )
    table = Table.of("live_at_peak", "Live at XLA's peak, parameters up to their last use", columns, file.at_peak)
    why = "live ranges alone do not state it: the module or its -buffer-assignment.txt does"
    return _report(given, {}, (table,), (HeadlineRow("", row),), why)


def _usage(lines: list[str], given: Input) -> Report:
    file = read_usage_report(lines)
    rows = tuple((file.names.get(space, "all"), space, size) for space, size in file.totals.items())
    columns = (Column("memory"), Column("memory_space", "number"), Column("bytes", "bytes", summed=True))
    table = Table("live_at_peak", "Allocations by memory", columns, rows, page_rows=0)
    row: tuple[str | Amount, ...] = ("allocates ", Amount(sum(file.totals.values()), "bytes"))
    return _report(given, {}, (table,), (HeadlineRow("", row),), "a usage report has the sums alone")
