"""XLA's files about memory: those beside a dump, and reports on inputs that hold no module but report on its memory: a buffer
assignment, live ranges, and logs of a failure.
"""

from __future__ import annotations

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
from hlo_inspect.hlo.input.foreign_text import MEMORY_FILE
from hlo_inspect.hlo.input.source import Source
from hlo_inspect.passes import find_pass
from hlo_inspect.passes.memory.out_of_memory import out_of_memory_rows, out_of_memory_tables
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, Column, HeadlineRow, Input, Report, Table, Value

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
