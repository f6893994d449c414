"""The instructions of source lines: their cost in a step, the bytes that they send, and those live at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.executed_collectives import NOT_EXECUTED, ExecutedTotals
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import Tally
from hlo_inspect.figure import least
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace, find_sources, fitting_rows, is_source_query
from hlo_inspect.hlo.values.op_names import Origin
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.cost.step_facts import bytes_name
from hlo_inspect.report.model import Amount, HeadlineRow
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec


class LineFigures(NamedTuple):
    """A source line with the rows of its instructions. `live` is None if the peak is unknown."""

    source: str
    places: Sequence[RowPlace]
    cost: Tally
    collectives: ExecutedTotals
    live: int | None


def asks_for_source(context: Context, query: str) -> bool:
    """Return True if a query is written as a source file or line, and no instruction fits it."""
    return is_source_query(query) and not fitting_rows(context.views, query)


def find_source_lines(context: Context, query: str) -> list[LineFigures]:
    """Return the source lines of a query, the most expensive first. Raise NoSuchInstructionError if none fits.

    Costs are those of `cost` by source line, bytes at the peak those of `memory`, sent bytes those of `collectives`.
    """
    places = _places_by_source(context)
    costs = dict(context.cost.tally("source").by_label())
    chosen = find_sources(query, places, (origin for origin, _ in _origins(context)), context.module.name)
    sources = [collective.origin.source for collective in context.collectives]
    executed = context.executed.by_label(sources, [not collective.is_point_to_point for collective in context.collectives])
    live: dict[str, int] = {}
    for array in context.live_arrays:
        live[array.source] = live.get(array.source, 0) + array.bytes
    has_peak = context.memory.device is not None
    lines = [
        LineFigures(
            source,
            places[source],
            costs.get(source, Tally()),
            executed.get(source, NOT_EXECUTED),
            live.get(source, 0) if has_peak else None,
        )
        for source in chosen
    ]
    return sorted(lines, key=lambda line: (-least(line.cost.bounds("bytes")), -least(line.cost.bounds("flops")), line.source))


def _places_by_source(context: Context) -> dict[str, list[RowPlace]]:
    places: dict[str, list[RowPlace]] = {}
    for origin, place in _origins(context):
        if origin.source:
            places.setdefault(origin.source, []).append(place)
    return places


def _origins(context: Context) -> Iterator[tuple[Origin, RowPlace]]:
    """Yield each instruction with the origin that its metadata states."""
    for name in context.views.computations:
        view = context.views.for_computation(name)
        for row in range(len(view.names)):
            metadata = view.metadata(row)
            if metadata is not None:
                yield context.provenances.get(metadata).origin, RowPlace(name, row)


def by_cost(context: Context, places: Sequence[RowPlace]) -> list[RowPlace]:
    """Return the places with the kernels first, those of the most bytes before others."""
    kernels = context.kernels.launched
    costs = {(k.view.computation.name, k.row): (least(k.of_step("bytes")), least(k.of_step("flops"))) for k in kernels}
    return sorted(places, key=lambda place: costs.get((place.computation, place.row), (-1, -1)), reverse=True)


_SOURCE_LINES = TableSpec("source_lines", "Source lines in one step").with_columns(
    Column("source", width=28),
    Column("instructions", "count", summed=True, detail=2, get=lambda line: len(line.places)),
    bounded("flops", "flops", lambda line: line.cost.bounds("flops")),
    bounded("matmul_flops", "flops", lambda line: line.cost.bounds("matmul_flops"), 3),
    bounded("bytes_accessed", "bytes", lambda line: line.cost.bounds("bytes"), page_name="bytes_accessed"),
    bounded("collectives", "count", lambda line: line.collectives.count, 1, meaning="collectives that the line makes"),
    bounded("executed_wire_bytes", "bytes", lambda line: line.collectives.wire_bytes, page_name="sent"),
    Column(
        "live_bytes",
        "bytes",
        summed=True,
        optional=True,
        page_name="live_at_peak",
        meaning="bytes that the line's arrays have at the peak of memory",
        get=lambda line: line.live,
    ),
)

TABLES = (_SOURCE_LINES,)


def source_lines_table(context: Context, lines: Sequence[LineFigures]) -> Table:
    """Return one row per source line."""
    return _SOURCE_LINES.of(lines, columns=_SOURCE_LINES.with_flags({"bytes_accessed": {"page_name": bytes_name(context)}}))


def source_rows(lines: Sequence[LineFigures]) -> Iterator[HeadlineRow]:
    """Yield the source line, or their number, and the number of instructions."""
    name = lines[0].source if len(lines) == 1 else f"{len(lines):,} source lines"
    yield HeadlineRow("", (f"{name}: ", Amount(sum(len(line.places) for line in lines), "count", "instruction")))
