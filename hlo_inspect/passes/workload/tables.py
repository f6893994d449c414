"""The tables and first lines of a workload file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hlo_inspect.figure import Quantity, exact, least, total
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence
from hlo_inspect.report.table import Column, Table, Value
from hlo_inspect.workloads.header import MEANINGS, PIPELINE_BYTES
from hlo_inspect.workloads.reader import EqualRows
from hlo_inspect.workloads.row import GROUPS, HLO_KINDS, NONE, PASSES, WorkloadRow
from hlo_inspect.workloads.totals import UPDATE, CollectiveLabel, CollectiveSum, WorkloadTotals

_CLIENTS = {"simai": "SimAI", "astra-sim": "ASTRA-sim 1.0"}
_UNITS = {"simai": "ns", "astra-sim": "cycles"}
_CONVENTIONS = {
    "simai": "sizes as SimAI counts them, per device: the gathered array of an ALLGATHER, the whole input of a REDUCESCATTER",
    "astra-sim": "sizes as ASTRA-sim counts them: one device's part of an ALLGATHER, the whole input of a REDUCESCATTER",
}
_DIGITS = lazy_pattern(r"[0-9]+", re.ASCII)


def time_unit(totals: WorkloadTotals) -> str:
    """Return the unit in which the client counts times."""
    return _UNITS[totals.workload.header.dialect]


def conventions(totals: WorkloadTotals) -> list[str]:
    """Return the conventions of sizes and times, for the foot of a page."""
    dialect = totals.workload.header.dialect
    return [f"{_CONVENTIONS[dialect]}; times are {_UNITS[dialect]} of {_CLIENTS[dialect]}, each row once"]


def headline(totals: WorkloadTotals) -> Iterator[HeadlineRow]:
    """Yield the kind of the workload, its compute, and its collectives."""
    yield HeadlineRow("", tuple(_kind_and_size(totals)))
    yield HeadlineRow("compute", tuple(_compute(totals)))
    yield HeadlineRow("collectives", tuple(_moved(totals)))


def _kind_and_size(totals: WorkloadTotals) -> Parts:
    workload, parallelism = totals.workload, totals.parallelism
    rows = Amount(len(workload.rows), "count", "row"), Amount(len(workload.distinct), "count")
    yield from sentence("workload for {}: {}, {} of them distinct", _CLIENTS[workload.header.dialect], *rows)
    if parallelism.text is not None:
        divided = f"; TP {parallelism.tensor} x PP {parallelism.stages} x DP {parallelism.data}"
        yield from sentence("{} on {}", divided, Amount(parallelism.devices, "count", "GPU"))
    elif parallelism.tensor is not None:
        yield f"; TP {parallelism.tensor}"
    if parallelism.experts is not None and parallelism.experts > 1:
        yield f", EP {parallelism.experts}"


def _compute(totals: WorkloadTotals) -> Parts:
    everything = total(totals.compute[name] for name in PASSES)
    yield from sentence("{} {}", _amount(everything, "count"), time_unit(totals))
    for index, name in enumerate(PASSES):
        yield from sentence(", {} {}" if index else ": {} {}", _words(name), _amount(totals.compute[name], "count"))
    yield from sentence("; {} {}", UPDATE, _amount(totals.compute[UPDATE], "count"))


def _moved(totals: WorkloadTotals) -> Parts:
    yield from sentence("{}, {}", _amount(totals.count(), "count"), _amount(totals.size(), "bytes"))
    groups = [(group, totals.size(group=group)) for group in GROUPS] if totals.has_groups else []
    for index, (group, size) in enumerate([(group, size) for group, size in groups if least(size)]):
        yield from sentence(", {} {}" if index else ": {} {}", _group(group), _amount(size, "bytes"))
    unknown = totals.unknown_size()
    if least(unknown):
        yield from sentence("; {} under unknown words", _amount(unknown, "bytes"))


def _amount(amount: Quantity, unit: str) -> Amount:
    return Amount(amount, "bytes" if unit == "bytes" else "count")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _group(name: str) -> str:
    return name.upper()


# -- rows -------------------------------------------------------------------------------------------------------------------


class _EqualRow(NamedTuple):
    """Equal rows with the sums of their compute and bytes."""

    row: WorkloadRow
    times: int
    line: int
    compute: Quantity
    size: Quantity


EqualRowList = list[_EqualRow]


def equal_row_list(totals: WorkloadTotals) -> EqualRowList:
    """Return the distinct rows, with their sums."""
    return [_equal(totals, row, equal) for row, equal in totals.workload.distinct.items()]


def _equal(totals: WorkloadTotals, row: WorkloadRow, equal: EqualRows) -> _EqualRow:
    compute, size = total(equal.sum_of(time) for _, time, _, _ in row.cells), total(_sizes(totals, row, equal))
    return _EqualRow(row, equal.count, equal.line, compute, size)


def _sizes(totals: WorkloadTotals, row: WorkloadRow, equal: EqualRows) -> Iterator[Quantity]:
    """Yield the bytes of the collectives that clients know."""
    for name, _, word, amount in row.cells:
        if word is None or (word != NONE and totals.collective(name, word).label.kind is not None):
            yield equal.sum_of(None if word is None else amount)


def _fields() -> Iterator[Column]:
    """Yield the columns of the fields of merged rows."""
    for index, name in enumerate(PASSES):
        yield Column(f"{name}_comm", detail=2, optional=True, width=13, get=_field(3 + 3 * index))
        yield Column(f"{name}_bytes", "bytes", detail=3, get=_field(4 + 3 * index))
        yield Column(f"{name}_compute", "count", detail=4, get=_field(2 + 3 * index))
    yield Column("update_compute", "count", detail=5, get=_field(11))
    yield Column("policy", detail=6, optional=True, get=_field(12))
    yield Column("line", "number", detail=5, get=lambda equal: equal.line)


def _field(position: int) -> Callable[[_EqualRow], Value]:
    return lambda equal: equal.row[position]


def equal_rows(totals: WorkloadTotals, rows: EqualRowList) -> Table:
    """Return the merged rows of the file, those with most bytes first."""
    columns = (
        Column("name", width=20, get=lambda equal: equal.row.name),
        Column("rows", "count", summed=True, get=lambda equal: equal.times),
        bounded("compute", "count", lambda equal: equal.compute),
        bounded("bytes", "bytes", lambda equal: equal.size),
        *_fields(),
    )
    title = f"Rows, merged, by bytes (compute in {time_unit(totals)})"
    ordered = sorted(rows, key=lambda equal: (-least(equal.size), -least(equal.compute)))
    return Table.of("workload", title, columns, ordered)


def by_layer(totals: WorkloadTotals, rows: EqualRowList) -> Table:
    """Return one row per layer name, without the numbers in it."""
    layers = [
        (
            _DIGITS.sub("#", group[0].row.name),
            group,
            total(equal_row.compute for equal_row in group),
            total(equal_row.size for equal_row in group),
        )
        for group in group_rows(rows, lambda equal: _DIGITS.sub("#", equal.row.name))
    ]
    columns = (
        Column("layer", width=20, get=lambda layer: layer[0]),
        Column("rows", "count", summed=True, get=lambda layer: sum(equal_row.times for equal_row in layer[1])),
        bounded("compute", "count", lambda layer: layer[2]),
        bounded("bytes", "bytes", lambda layer: layer[3]),
    )
    by_compute = sorted(layers, key=lambda layer: -least(layer[2]))
    return Table.of("workload_layers", f"Rows by layer, by compute ({time_unit(totals)})", columns, by_compute)


# -- sums -------------------------------------------------------------------------------------------------------------------


def by_pass(totals: WorkloadTotals) -> Table:
    """Compute and collectives of each pass, and the time after collectives."""
    columns = (
        Column("pass", get=_words),
        bounded("compute", "count", lambda name: totals.compute[name]),
        bounded("collectives", "count", lambda name: _pass_row(totals.count, name)),
        bounded("bytes", "bytes", lambda name: _pass_row(totals.size, name)),
    )
    return Table.of("workload_passes", f"Pass over the rows (compute in {time_unit(totals)})", columns, (*PASSES, UPDATE))


def _pass_row(sum_of: Callable[..., Quantity], name: str) -> Quantity:
    return sum_of(pass_name=name) if name in PASSES else 0


def by_collective(totals: WorkloadTotals) -> Table:
    """Return the collectives that some client knows, by pass, word and group."""
    rows = _declared(totals, has_kind=True)
    counts_devices = totals.workload.header.dialect == "simai"
    columns = (
        *_LABEL,
        Column("kind", detail=5, optional=True, get=lambda row: HLO_KINDS.get(row.label.kind, row.label.kind)),
        Column("group", optional=True, get=lambda row: _group(row.label.group) if row.label.group else None),
        *_DECLARED,
        *([bounded("wire_bytes", "bytes", lambda row: row.wire_bytes, 1)] if counts_devices else []),
    )
    return Table.of("workload_collectives", "Collectives by pass and group", columns, rows)


def unknown_words(totals: WorkloadTotals) -> Iterator[Table]:
    """Yield a table of the cells whose word no client knows, if there are some."""
    rows = _declared(totals, has_kind=False)
    if rows:
        yield Table.of("workload_unknown", "Words that no client knows (in no total)", (*_LABEL, *_DECLARED), rows)


def _declared(totals: WorkloadTotals, *, has_kind: bool) -> list[CollectiveSum]:
    """Return the collectives in the order of their passes, the largest first."""
    collectives = [collective for collective in totals.collectives if (collective.label.kind is not None) == has_kind]
    return sorted(collectives, key=lambda collective: (PASSES.index(collective.label.pass_name), -least(collective.size)))


_LABEL = (
    Column("pass", get=lambda row: _words(row.label.pass_name)),
    Column("collective", get=lambda row: row.label.word),
)
_DECLARED = (
    Column("count", "count", summed=True, get=lambda row: row.count),
    bounded("bytes", "bytes", lambda row: row.size),
)


def by_group(totals: WorkloadTotals) -> Table:
    """Return the groups of devices, and the traffic between stages of the pipeline, which is in no cell and no total."""
    parallelism = totals.parallelism
    size = totals.workload.header.number(PIPELINE_BYTES)
    transfers = parallelism.transfers
    pipeline: tuple[Value, ...] = (
        "PP",
        parallelism.stages,
        transfers,
        0 if transfers == 0 else transfers * size if transfers is not None and size is not None else None,
        "pp_comm of the header, 2 x vpp x ga times",
    )
    rows: list[tuple[Value, ...]] = []
    for group in GROUPS:
        count, moved = exact(totals.count(group=group)), exact(totals.size(group=group))
        rows.append((_group(group), parallelism.sizes[group], count, moved, "cells"))
    if parallelism.stages is not None:
        rows.append(pipeline)
    columns = (
        Column("group"),
        Column("devices", "count"),
        Column("count", "count"),
        Column("bytes", "bytes"),
        Column("from", detail=2, width=24),
    )
    return Table("workload_groups", "Groups of devices", columns, tuple(rows) if totals.has_groups else (), page_rows=0)


def header_keys(totals: WorkloadTotals) -> Table:
    """Return the keys of the header with their meaning."""
    header = totals.workload.header
    rows = [("policy", header.policy, "how the model is divided")]
    rows += [(key.name, key.written, MEANINGS.get(key.name, "no key that a client reads")) for key in header.keys.values()]
    columns = (Column("key", width=24), Column("value"), Column("meaning", width=60))
    return Table("workload_header", "Header", columns, tuple(rows), page_rows=0)


def cells(totals: WorkloadTotals) -> Table:
    """Return the merged collectives of the rows, those with most bytes first."""
    counts: dict[_CellKey, list[int]] = {}
    for row, equal in totals.workload.distinct.items():
        for name, _, word, size in row.cells:
            label = totals.collective(name, word).label if word is not None and word != NONE else None
            if label is not None and label.kind is not None:
                counts.setdefault(_CellKey(row.name, label, size), [0, equal.line])[0] += equal.count
    rows = [
        _CellSite(cell, count, line, totals.collective(cell.label.pass_name, cell.label.word).wire(cell.size))
        for cell, (count, line) in counts.items()
    ]
    rows.sort(key=lambda site: -site.times * (site.cell.size or 0))
    columns = (
        Column("name", width=20, get=lambda site: site.cell.name),
        Column("kind", get=lambda site: HLO_KINDS.get(site.cell.label.kind or "", site.cell.label.kind)),
        Column("runs", "count", summed=True, get=lambda site: site.times),
        Column("executed_operand_bytes", "bytes", summed=True, get=lambda site: _times(site.cell.size, site.times)),
        Column("executed_wire_bytes", "bytes", summed=True, detail=1, get=lambda site: _times(site.wire, site.times)),
        Column("operand_bytes", "bytes", detail=4, get=lambda site: site.cell.size),
        Column("group_size", "number", detail=3, get=lambda site: totals.parallelism.sizes.get(site.cell.label.group or "")),
        Column("axis", detail=2, optional=True, get=lambda site: site.cell.label.group),
        Column("phase", detail=2, get=lambda site: _words(site.cell.label.pass_name)),
        Column("form", detail=3, get=lambda site: site.cell.label.word),
        Column("line", "number", detail=5, get=lambda site: site.line),
    )
    return Table.of("collectives", "Collectives of one pass over the rows, merged, by bytes", columns, rows)


class _CellKey(NamedTuple):
    """The properties that merged collectives of rows share."""

    name: str
    label: CollectiveLabel
    size: int | None


class _CellSite(NamedTuple):
    """Equal collectives, the line of the first, and the bytes that one device sends for each."""

    cell: _CellKey
    times: int
    line: int
    wire: int | None


def _times(amount: int | None, times: int) -> int | None:
    return None if amount is None else amount * times
