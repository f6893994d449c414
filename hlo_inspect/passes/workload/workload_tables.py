"""The tables and first lines of a workload file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.figure import Number, Quantity, exact, least, total
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.workloads.row import GROUPS, HLO_KINDS, NONE, PASSES, WorkloadRow
from hlo_inspect.workloads.totals import UPDATE, CollectiveLabel, CollectiveSum, WorkloadTotals
from hlo_inspect.workloads.workload_header import MEANINGS, PIPELINE_BYTES
from hlo_inspect.workloads.workload_reader import EqualRows

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


def conventions(totals: WorkloadTotals) -> str:
    """Return the conventions of sizes and times, for the foot of a page."""
    dialect = totals.workload.header.dialect
    return f"{_CONVENTIONS[dialect]}; times are {_UNITS[dialect]} of {_CLIENTS[dialect]}, each row once"


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
    yield from sentence("{} {}", Amount(everything, "count"), time_unit(totals))
    for index, name in enumerate(PASSES):
        yield from sentence(", {} {}" if index else ": {} {}", _words(name), Amount(totals.compute[name], "count"))
    yield from sentence("; {} {}", UPDATE, Amount(totals.compute[UPDATE], "count"))


def _moved(totals: WorkloadTotals) -> Parts:
    yield from sentence("{}, {}", Amount(totals.count(), "count"), Amount(totals.size(), "bytes"))
    groups = [(group, totals.size(group=group)) for group in GROUPS] if totals.has_groups else []
    for index, (group, size) in enumerate([(group, size) for group, size in groups if least(size)]):
        yield from sentence(", {} {}" if index else ": {} {}", _group(group), Amount(size, "bytes"))
    unknown = totals.unknown_size()
    if least(unknown):
        yield from sentence("; {} under unknown words", Amount(unknown, "bytes"))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _group(name: str) -> str:
    return name.upper()


# -- rows -------------------------------------------------------------------------------------------------------------------


_COMPUTE = Column(
    "compute", "count", summed=True, bounded=True, meaning="compute time of all passes, in the unit of the file's simulator"
)
_SIZE = Column("bytes", "bytes", summed=True, bounded=True, get=attrgetter("size"))


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


def _fields(name: str, field: str, words: str) -> tuple[Column, ...]:
    """Return the columns of a pass: `field` begins the names of its fields in a row, `words` are its name in text."""
    return (
        Column(
            f"{name}_comm",
            detail=2,
            optional=True,
            width=13,
            meaning=f"collective of {words}",
            get=attrgetter(f"row.{field}_word"),
        ),
        Column(f"{name}_bytes", "bytes", detail=3, meaning="its bytes", get=attrgetter(f"row.{field}_size")),
        Column(f"{name}_compute", "count", detail=4, meaning=f"compute of {words}", get=attrgetter(f"row.{field}_time")),
    )


WORKLOAD = TableSpec("workload", "Rows, merged, by bytes").with_columns(
    Column("name", width=20, meaning="name of the rows", get=attrgetter("row.name")),
    Column("rows", "count", summed=True, get=attrgetter("times")),
    _COMPUTE,
    _SIZE._replace(meaning="bytes of all collectives of the rows"),
    *_fields("forward", "forward", "the forward pass"),
    *_fields("input_gradient", "input", "the gradient of inputs"),
    *_fields("weight_gradient", "weight", "the gradient of weights"),
    Column("update_compute", "count", detail=5, meaning="compute of the update", get=attrgetter("row.update_time")),
    Column("policy", detail=6, optional=True, meaning="policy in the header of the file", get=attrgetter("row.policy")),
    Column("line", "number", detail=5),
)


def equal_rows(totals: WorkloadTotals, rows: EqualRowList) -> Table:
    """Return the merged rows of the file, those with most bytes first."""
    ordered = sorted(rows, key=lambda equal: (-least(equal.size), -least(equal.compute)))
    return WORKLOAD.of(ordered, title=f"{WORKLOAD.title} (compute in {time_unit(totals)})")


class _PartSums(NamedTuple):
    """The sums of a layer, whose rows are counted, or of a pass, whose collectives are."""

    name: str
    number: Quantity
    compute: Quantity
    size: Quantity


WORKLOAD_LAYERS = TableSpec("workload_layers", "Rows by layer, by compute").with_columns(
    Column("layer", width=20, meaning="layer in the names of rows", get=attrgetter("name")),
    Column("rows", "count", summed=True, get=attrgetter("number")),
    _COMPUTE,
    _SIZE._replace(meaning="bytes of its collectives"),
)


def by_layer(totals: WorkloadTotals, rows: EqualRowList) -> Table:
    """Return one row per layer name, without the numbers in it."""
    layers = [
        _PartSums(
            _DIGITS.sub("#", group[0].row.name),
            sum(equal_row.times for equal_row in group),
            total(equal_row.compute for equal_row in group),
            total(equal_row.size for equal_row in group),
        )
        for group in group_rows(rows, lambda equal: _DIGITS.sub("#", equal.row.name))
    ]
    layers.sort(key=lambda layer: -least(layer.compute))
    return WORKLOAD_LAYERS.of(layers, title=f"{WORKLOAD_LAYERS.title} ({time_unit(totals)})")


# -- sums -------------------------------------------------------------------------------------------------------------------


WORKLOAD_PASSES = TableSpec("workload_passes", "Pass over the rows").with_columns(
    Column("pass", get=lambda row: _words(row.name)),
    _COMPUTE,
    Column("collectives", "count", summed=True, bounded=True, meaning="collectives of the pass", get=attrgetter("number")),
    _SIZE._replace(meaning="bytes of these collectives"),
)


def by_pass(totals: WorkloadTotals) -> Table:
    """Compute and collectives of each pass, and the time after collectives."""
    rows = [_PartSums(name, totals.count(pass_name=name), totals.compute[name], totals.size(pass_name=name)) for name in PASSES]
    rows.append(_PartSums(UPDATE, 0, totals.compute[UPDATE], 0))
    return WORKLOAD_PASSES.of(rows, title=f"{WORKLOAD_PASSES.title} (compute in {time_unit(totals)})")


_LABEL = (
    Column("pass", get=lambda row: _words(row.label.pass_name)),
    Column("collective", meaning="word in the file", get=attrgetter("label.word")),
)
_COUNT = Column("count", "count", summed=True)
WORKLOAD_COLLECTIVES = TableSpec("workload_collectives", "Collectives by pass and group").with_columns(
    *_LABEL,
    Column("kind", detail=5, optional=True, get=lambda row: HLO_KINDS.get(row.label.kind, row.label.kind)),
    Column("group", optional=True, get=lambda row: _group(row.label.group) if row.label.group else None),
    _COUNT._replace(meaning="number of these collectives"),
    _SIZE._replace(meaning="bytes as the simulator counts them"),
    Column("wire_bytes", "bytes", summed=True, detail=1, bounded=True),
)
WORKLOAD_UNKNOWN = TableSpec("workload_unknown", "Words that no client knows (in no total)").with_columns(
    *_LABEL, _COUNT._replace(meaning="cells with the word"), _SIZE._replace(meaning="bytes beside the word")
)


def by_collective(totals: WorkloadTotals) -> Table:
    """Return the collectives that some client knows, by pass, word and group."""
    counts_devices = totals.workload.header.dialect == "simai"
    return WORKLOAD_COLLECTIVES.of(_declared(totals, has_kind=True), without=() if counts_devices else ("wire_bytes",))


def unknown_words(totals: WorkloadTotals) -> Iterator[Table]:
    """Yield a table of the cells whose word no client knows, if there are some."""
    rows = _declared(totals, has_kind=False)
    if rows:
        yield WORKLOAD_UNKNOWN.of(rows)


def _declared(totals: WorkloadTotals, *, has_kind: bool) -> list[CollectiveSum]:
    """Return the collectives in the order of their passes, the largest first."""
    collectives = [collective for collective in totals.collectives if (collective.label.kind is not None) == has_kind]
    return sorted(collectives, key=lambda collective: (PASSES.index(collective.label.pass_name), -least(collective.size)))


class _GroupSums(NamedTuple):
    """The devices and traffic of a group, None if unknown, and the place in the file that states the traffic."""

    name: str
    devices: int | None
    number: Number | None
    size: Number | None
    origin: str


WORKLOAD_GROUPS = TableSpec("workload_groups", "Groups of devices", page_rows=0).with_columns(
    Column("group", get=lambda row: _group(row.name)),
    Column("devices", "count", meaning="devices of one group"),
    Column("count", "count", meaning="collectives of the group", get=attrgetter("number")),
    Column("bytes", "bytes", meaning="bytes of these collectives", get=attrgetter("size")),
    Column("from", detail=2, width=24, meaning="header key, or the reason", get=attrgetter("origin")),
)


def by_group(totals: WorkloadTotals) -> Table:
    """Return the groups of devices, and the traffic between stages of the pipeline, which is in no cell and no total."""
    return WORKLOAD_GROUPS.of(_groups(totals) if totals.has_groups else ())


def _groups(totals: WorkloadTotals) -> Iterator[_GroupSums]:
    parallelism = totals.parallelism
    for group in GROUPS:
        count, size = exact(totals.count(group=group)), exact(totals.size(group=group))
        yield _GroupSums(group, parallelism.sizes[group], count, size, "cells")
    if parallelism.stages is not None:
        transfers, each = parallelism.transfers, totals.workload.header.number(PIPELINE_BYTES)
        moved = 0 if transfers == 0 else transfers * each if transfers is not None and each is not None else None
        yield _GroupSums("pp", parallelism.stages, transfers, moved, "pp_comm of the header, 2 x vpp x ga times")


WORKLOAD_HEADER = TableSpec("workload_header", "Header", page_rows=0).with_columns(
    Column("key", width=24, meaning="key of the header", get=itemgetter(0)),
    Column("value", meaning="its value", get=itemgetter(1)),
    Column("meaning", width=60, meaning="meaning for the simulator", get=itemgetter(2)),
)


def header_keys(totals: WorkloadTotals) -> Table:
    """Return the keys of the header with their meaning."""
    header = totals.workload.header
    keys = [(key.name, key.written, MEANINGS.get(key.name, "no key that a client reads")) for key in header.keys.values()]
    return WORKLOAD_HEADER.of([("policy", header.policy, "how the model is divided"), *keys])


# -- collectives ------------------------------------------------------------------------------------------------------------


class _CellKey(NamedTuple):
    """The properties that merged collectives of rows share."""

    name: str
    label: CollectiveLabel
    size: int | None


class _CellSite(NamedTuple):
    """Equal collectives, the line of the first, the bytes that one device sends for each, and the devices of a group."""

    cell: _CellKey
    times: int
    line: int
    wire: int | None
    devices: int | None


CELLS = TableSpec("collectives", "Collectives of one pass over the rows, merged, by bytes").with_columns(
    Column("name", width=20, get=attrgetter("cell.name")),
    Column("kind", get=lambda site: HLO_KINDS.get(site.cell.label.kind or "", site.cell.label.kind)),
    Column("runs", "count", summed=True, get=attrgetter("times")),
    Column("executed_operand_bytes", "bytes", summed=True, get=lambda site: _times(site.cell.size, site.times)),
    Column("executed_wire_bytes", "bytes", summed=True, detail=1, get=lambda site: _times(site.wire, site.times)),
    Column("operand_bytes", "bytes", detail=4, get=attrgetter("cell.size")),
    Column("group_size", "number", detail=3, get=attrgetter("devices")),
    Column("axis", detail=2, optional=True, get=attrgetter("cell.label.group")),
    Column("phase", detail=2, get=lambda site: _words(site.cell.label.pass_name)),
    Column("form", detail=3, get=attrgetter("cell.label.word")),
    Column("line", "number", detail=5),
)


def cells(totals: WorkloadTotals) -> Table:
    """Return the merged collectives of the rows, those with most bytes first."""
    counts: dict[_CellKey, list[int]] = {}
    for row, equal in totals.workload.distinct.items():
        for name, _, word, size in row.cells:
            label = totals.collective(name, word).label if word is not None and word != NONE else None
            if label is not None and label.kind is not None:
                counts.setdefault(_CellKey(row.name, label, size), [0, equal.line])[0] += equal.count
    rows = [_site(totals, cell, count, line) for cell, (count, line) in counts.items()]
    return CELLS.of(sorted(rows, key=lambda site: -site.times * (site.cell.size or 0)))


def _site(totals: WorkloadTotals, cell: _CellKey, count: int, line: int) -> _CellSite:
    sent = totals.collective(cell.label.pass_name, cell.label.word).wire(cell.size)
    return _CellSite(cell, count, line, sent, totals.parallelism.sizes.get(cell.label.group or ""))


def _times(amount: int | None, times: int) -> int | None:
    return None if amount is None else amount * times
