"""The facts of a partial or truncated module: those that are about the whole module are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.figure import at_least
from hlo_inspect.report.model import PART_NOTE, Amount, HeadlineRow, Report
from hlo_inspect.report.table import LOWER_BOUND, Column, Table, Value, lower_bound, number_of, plain

_TRUNCATED = "the module is truncated, and its missing part counts too"
_OF_WHOLE = frozenset({"module.computations", "module.instructions", "module.entry_instructions", "module.devices"})
_FAMILIES_OF_WHOLE = ("params.", "outputs.", "optimizer.", "cost.", "memory.", "time.", "fingerprint.")
_OF_KERNELS, _OF_A_STEP = frozenset({"fusions", "fusion_groups"}), frozenset({"flops", "bytes"})
_TABLES_OF_WHOLE = frozenset({"buffers"})
_SUMS_OF_WHOLE = ("cost.", "time.", "custom_calls.unknown_count")
_SUMS_OVER_RUNS = frozenset({"flops", "least_flops", "matmul_flops", "transcendentals", "bytes"})
"""Facts of all runs of custom calls."""
NO_SUMS = frozenset(
    f"time.{name}"
    for name in ("exposed_collective_s", "step_s", "estimate_exposed_collective_s", "estimate_step_s", "mfu_bound")
)
"""Facts that have no lower bound: the missing part may hide collectives, or hold the model's other FLOPs."""
_WITH_EXPOSED_PART = frozenset({"step", "time_by_phase", "time_by_scope", "time_by_source"})
"""Tables of whose times the exposed part of collectives is a part: their sums bound nothing either."""
_EXPOSED = frozenset({"exposed_s", "estimate_exposed_s"})
_OF_A_RUN = {"operand_bytes": "operands", "result_bytes": "", "wire_bytes": "sent"}
"""Columns of one run, with their words on a page."""
_STATED_BY_XLA = frozenset({"out_of_memory", "out_of_memory_parts"})
"""Tables of the lines around the quoted ones: they stay as they are."""


def is_partial_report(report: Report) -> bool:
    """Return True if a report is about quoted lines."""
    return any(note.startswith(PART_NOTE) for note in report.notes)


def partial_report(report: Report, lines: int) -> Report:
    """Return the report of `lines` quoted lines, made from that of a module without other lines.

    Its facts are those of `partial_facts`.
    """
    counted = number_of(lines, "quoted instruction line")
    row = HeadlineRow("", (f"PARTIAL MODULE: {counted}; counts cover these lines only",), severity="warning")
    headline = (row, *_headline(report))
    return replace(report, tables=_tables(report.tables), notes=_notes(report.notes, lines), headline=headline)


def needs_whole_module(fact: str) -> bool:
    """Return True if a fact is about a whole module, so that quoted lines do not tell it."""
    return fact in _OF_WHOLE or fact.startswith(_FAMILIES_OF_WHOLE) or ".executed_" in fact


def partial_facts(facts: Mapping[str, Value]) -> dict[str, Value]:
    """Return the facts that quoted lines determine; the others are unknown."""
    kept = {name: value for name, value in facts.items() if not (name.endswith(LOWER_BOUND) and needs_whole_module(name))}
    return {name: None if needs_whole_module(name) else value for name, value in kept.items()}


def truncated_facts(facts: Mapping[str, Value]) -> dict[str, Value]:
    """Return the facts of a truncated text: sums over the whole module, or over its runs, are lower bounds."""
    bounded: dict[str, Value] = {}
    for name, value in facts.items():
        if not is_sum_of_whole(name):
            bounded.setdefault(name, value)
        elif name.endswith(LOWER_BOUND):
            bounded[name] = value
        else:
            low = None if name in NO_SUMS else lower_bound(value)
            bounded[name] = at_least(low, _TRUNCATED) if isinstance(low, int | float) and low else None
    return bounded


def is_sum_of_whole(fact: str) -> bool:
    """Return True if a fact is a sum over the whole module or over its runs."""
    family, _, name = fact.removesuffix(LOWER_BOUND).rpartition(".")
    return fact.startswith(_SUMS_OF_WHOLE) or ".executed_" in fact or (family == "custom_calls" and name in _SUMS_OVER_RUNS)


def truncation_notes(facts: Mapping[str, Value]) -> list[str]:
    """Return why each sum over a truncated module is unknown, for those that a whole one would have."""
    exact = [name for name, value in facts.items() if plain(value) is not None and not name.endswith(LOWER_BOUND)]
    return [f"{name}: {_TRUNCATED}" for name in exact if is_sum_of_whole(name)]


def truncated_tables(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield the tables of a truncated text: a page marks their totals as lower bounds, and exposed times have none."""
    for table in tables:
        no_sums = {c.name for c in table.columns if table.name in _WITH_EXPOSED_PART or c.name in _EXPOSED}
        columns = (column._replace(summed=column.summed and column.name not in no_sums) for column in table.columns)
        yield replace(table, columns=tuple(columns), lacks_rows=True)


def _headline(report: Report) -> Iterator[HeadlineRow]:
    """Yield the first lines, with the collectives as they are counted in the quoted ones."""
    count, into, sent = (report.facts.get(f"collectives.{name}") for name in ("count", "operand_bytes", "wire_bytes"))
    for row in report.headline:
        if row.label == "collectives" and count:
            operands = (Amount(into, "bytes"), " of operands, ")
            quoted = (Amount(count, "count"), " quoted, ", *operands, Amount(sent, "bytes"), " sent")
            yield row._replace(parts=quoted)
        else:
            yield row


def _notes(notes: Iterable[str], lines: int) -> tuple[str, ...]:
    """Replace the notes on figures of a whole module by one note."""
    what = f"{number_of(lines, 'instruction line')} without a computation"
    note = f"{PART_NOTE}: {what}; parameters, outputs and counts of runs are unknown"
    return (note, *(note for note in notes if not needs_whole_module(note.partition(":")[0])))


def _tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables with single rows on the page, and the bytes of one run, as those of a step are unknown."""
    left_out = {table.page_as for table in tables} | _TABLES_OF_WHOLE
    return tuple(
        table if table.name in _STATED_BY_XLA else _table(table, on_page=table.on_page and table.name not in left_out)
        for table in tables
    )


def _table(table: Table, *, on_page: bool) -> Table:
    unknown = {index for index, column in enumerate(table.columns) if table.name in _OF_KERNELS and column.name in _OF_A_STEP}
    rows = [tuple(None if index in unknown else value for index, value in enumerate(row)) for row in table.rows]
    spaces = {index for index, column in enumerate(table.columns) if column.name == "memory_space"}
    stated = {index for index in spaces if any(row[index] for row in rows)}  # 0 is the device's memory
    return replace(
        table,
        title=table.title.replace(" of one step", " as quoted").replace(" in one step", ""),
        rows=tuple(rows),
        columns=tuple(_column(column, is_stated=index in stated) for index, column in enumerate(table.columns)),
        page_as="",
        on_page=on_page,
    )


def _column(column: Column, *, is_stated: bool) -> Column:
    """Return a column as the page of quoted lines has it: always if it holds figures of one run, or `is_stated`."""
    if column.name == "runs" or column.name in _OF_A_STEP or column.name.startswith("executed_"):
        return column._replace(detail=9)
    if column.name in _OF_A_RUN:
        return column._replace(detail=0, page_name=column.page_name or _OF_A_RUN[column.name])
    return column._replace(detail=0) if is_stated else column
