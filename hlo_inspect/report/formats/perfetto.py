"""Timelines as a trace in Chrome's JSON, which ui.perfetto.dev and chrome://tracing open.

A module is a process, a stream a thread. The executions of a recorded profile are a process of their own. Slices of one
thread follow each other or lie within each other, as Perfetto's reader requires (src/trace_processor/importers/json in
https://github.com/google/perfetto). Times are microseconds with three decimals. Begins and ends are rounded, never durations,
so that slices which touch keep touching.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.model import LEFT_OUT, Report
from hlo_inspect.report.render_options import RenderOptions, rendered
from hlo_inspect.report.table import Plain, Table

_NANOSECONDS = 10**9
_FIRST = "compute"
"""The stream that comes first."""
_ARGUMENTS = ("kind", "bytes", "flops", "phase", "op_name", "source", "computation", "line")

_Event = dict[str, Any]


def render_perfetto(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    """Write one document for all modules."""
    processes = count(1)

    def render(report: Report) -> str:
        return ",\n".join(json.dumps(event, ensure_ascii=False) for event in trace_events(report, processes))

    begun = False
    for text in rendered(reports, render, options):
        stream.write((",\n" if begun else '{"displayTimeUnit": "ns", "traceEvents": [\n') + text)
        begun = True
    end = f', "otherData": {json.dumps({LEFT_OUT: options.left_out})}}}' if options.left_out else "}"
    stream.write(f"\n]{end}\n" if begun else f'{{"displayTimeUnit": "ns", "traceEvents": []{end}\n')


def trace_events(report: Report, processes: Iterator[int]) -> Iterator[_Event]:
    """Yield the events of the estimated step, and those of a measured one if the report has it."""
    name = printable(str(report.facts.get("module.name") or report.title))
    profile = f" on {report.profile}" if report.profile is not None else ""
    yield from _process(report.table("time_events"), next(processes), f"{name}{profile}, estimate", (_FIRST,))
    for table in report.tables:
        if table.name == "measured_events":
            yield from _process(table, next(processes), f"{name}, {printable(table.title)}", ())


def _process(table: Table, process: int, name: str, streams: Iterable[str]) -> Iterator[_Event]:
    """Yield the names of a process and its threads, then a complete event for each row, begin by begin.

    The longer of two events with one begin comes first.
    """
    rows = table.records()
    threads = {
        stream: number for number, stream in enumerate(dict.fromkeys((*streams, *(str(row["stream"]) for row in rows))), 1)
    }
    yield _named("process_name", process, 0, name)
    for stream, number in threads.items():
        yield _named("thread_name", process, number, printable(stream))
    events = [_slice(row, process, threads[str(row["stream"])]) for row in rows]
    yield from sorted(events, key=lambda event: (event["tid"], event["ts"], -event["dur"]))


def _named(what: str, process: int, thread: int, name: str) -> _Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(row: dict[str, Plain], process: int, thread: int) -> _Event:
    start, end = (round(_number(row[key]) * _NANOSECONDS) for key in ("begin_s", "end_s"))
    arguments: dict[str, Plain] = {"estimated": row["event"] != "execution"}
    arguments |= {key: _text(row[key]) for key in _ARGUMENTS if row.get(key) not in (None, "")}
    return {
        "ph": "X",
        "name": _title(row),
        "cat": str(row["event"]),
        "ts": start / 1000,
        "dur": (end - start) / 1000,
        "pid": process,
        "tid": thread,
        "args": arguments,
    }


def begin(row: Mapping[str, Plain]) -> float:
    """Return the time at which an event begins, in seconds."""
    return _number(row["begin_s"])


def _title(row: dict[str, Plain]) -> str:
    name = printable(str(row["name"]))
    match row["event"]:
        case "wait":
            return f"wait for {name}"
        case "iteration":
            return f"{name}: an iteration"
        case "iterations":
            return f"{name}: {row['iterations']:,} more iterations"
    return name


def _number(value: Plain) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _text(value: Plain) -> Plain:
    return printable(value) if isinstance(value, str) else value
