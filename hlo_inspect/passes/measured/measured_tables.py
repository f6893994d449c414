"""The tables of `measured`: kernels, collectives, self time by label, runs and devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.measured.measured_rows import CollectiveRow, KernelRow, MeasuredRows
from hlo_inspect.passes.measured.rates import RATES, achieved_rates, rates_table
from hlo_inspect.profiler.measurements import SECONDS_PER_PS, DeviceWaits, SampleTimes, labels_of_devices
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec


def measured_tables(context: Context, rows: MeasuredRows) -> Iterator[Table]:
    """Yield the tables, the kernels first."""
    has_bounds = context.on_machine.kernel_times is not None
    flags = {name: {"detail": 0} for name in ("bound_s", "lost_s", "ratio")} if has_bounds else {}
    yield _KERNELS.of(rows.kernels, columns=_KERNELS.with_flags(flags))
    equal = group_rows(rows.kernels, lambda row: (row.kind, row.labels, row.flops, row.bytes, row.runs, row.bound_s))
    groups = sorted(map(_merged, equal), key=lambda row: -row.self_s)
    yield _KERNEL_GROUPS.of(groups, columns=_KERNEL_GROUPS.with_flags(flags))
    yield _PARTS.of(_parts(rows))
    if rows.collectives:
        yield _COLLECTIVES.of(rows.collectives)
        yield _by(_BY_AXIS, rows.collectives, lambda row: row.axis or "no axis")
    profile = context.on_machine.profile
    if profile is not None:
        yield rates_table(achieved_rates(context, rows), profile.name)
    yield _by(_BY_PHASE, rows.kernels, lambda row: row.labels.phase or UNKNOWN)
    yield _by(_BY_SCOPE, rows.kernels, lambda row: row.labels.scope)
    yield _by(_BY_SOURCE, rows.kernels, lambda row: row.labels.source)
    devices = _devices(rows)
    title = "" if rows.waits else "Devices: mean step and busy time"
    yield _DEVICES.of(devices, title=title, on_page=len(devices) > 1)
    labels = labels_of_devices(rows.times.devices)
    samples = sorted(rows.times.samples, key=lambda sample: -sample.step)
    yield _RUNS.of([_Run(labels[sample.device], sample) for sample in samples])


# -- kernels ----------------------------------------------------------------------------------------------------------------


def _rounded(ratio: float | None) -> float | None:
    """Return a ratio with 4 digits: more would be noise. A large one is whole."""
    rounded = None if ratio is None else float(f"{ratio:.4g}")
    return int(rounded) if rounded is not None and rounded >= 1e4 else rounded


_SHARE_OF_SELF = "share of the self times of all kernels"
_SELF_S = Column("self_s", "seconds", summed=True)
_SHARE = Column("share", "share", summed=True, page_name="share_of_self", meaning=_SHARE_OF_SELF)
_BOUNDS = (
    Column("bound_s", "seconds", detail=9, optional=True),
    Column("lost_s", "seconds", detail=9, optional=True, meaning="self time above the bound: `self_s` - `bound_s`"),
    Column("ratio", "number", detail=9, optional=True, real=True, page_name="self/bound", get=lambda row: _rounded(row.ratio)),
    Column("flops_per_s", "flops_per_s", detail=5, optional=True, get=lambda row: row.rate(row.flops)),
    Column("bytes_per_s", "bytes_per_s", detail=6, optional=True, get=lambda row: row.rate(row.bytes)),
)
_KERNELS = TableSpec(
    "measured_kernels",
    "Measured instructions by self time, means of a step",
    TablePlace("measured", "Measured kernels", "single", 1),
    page_as="measured_kernel_groups",
).with_columns(
    Column("name"),
    Column("kind", detail=4, meaning="opcode"),
    Column("computation", detail=8),
    Column("events", "count", summed=True, detail=8),
    Column("runs", "number", real=True),
    Column("median_s", "seconds", detail=9),
    Column("p90_s", "seconds", detail=9, meaning="90th percentile of the time of one execution"),
    Column("time_s", "seconds", detail=7, meaning="time of all executions in one step, with all that they contain"),
    _SELF_S,
    _SHARE,
    Column("async_s", "seconds", detail=7, optional=True, meaning="time from start to done of an asynchronous operation"),
    *_BOUNDS,
    phase_column(attrgetter("labels.phase"), detail=3),
    Column("op_name", detail=8, get=lambda row: row.labels.op_name or None),
    Column("source", detail=1, width=16, get=lambda row: printed(row.labels.source)),
    Column("line", "number", detail=8),
)


def _merged(kernels: Sequence[KernelRow]) -> KernelRow:
    """Return equal kernels of several layers as one row. Its figures are sums of a step, its median is the middle one."""

    def whole(values: Iterable[float | None]) -> float | None:
        numbers = [value for value in values if value is not None]
        return math.fsum(numbers) if len(numbers) == len(kernels) else None

    return kernels[0]._replace(
        name=joined_name([row.name for row in kernels]),
        runs=math.fsum(row.runs for row in kernels),
        median_s=sorted(row.median_s for row in kernels)[len(kernels) // 2],
        self_s=math.fsum(row.self_s for row in kernels),
        share=math.fsum(row.share for row in kernels),
        bound_s=whole(row.bound_s for row in kernels),
        flops=whole(row.flops for row in kernels),
        bytes=whole(row.bytes for row in kernels),
    )


_KERNEL_GROUPS = TableSpec(
    "measured_kernel_groups",
    "Measured kernels of one step, merged, by self time: means",
    TablePlace("measured", "Measured kernels", "merged"),
    page_rows=15,
).with_columns(
    Column("name", width=24),
    Column("kind", detail=4, meaning="opcode"),
    Column("runs", "number", detail=1, real=True),
    Column("median_s", "seconds", detail=9),
    _SELF_S,
    _SHARE,
    *_BOUNDS,
    phase_column(attrgetter("labels.phase"), detail=2),
    Column("source", detail=1, width=16, get=lambda row: printed(row.labels.source)),
)


# -- collectives ------------------------------------------------------------------------------------------------------------


def _sent(row: CollectiveRow) -> int | None:
    return None if row.sent is None else round(row.sent)


_COLLECTIVES = TableSpec(
    "measured_collectives",
    "Measured collectives of one step by self time: means",
    TablePlace("measured", "Measured collectives", "single"),
).with_columns(
    Column("name", get=attrgetter("collective.start.name")),
    Column("kind", detail=2, get=attrgetter("collective.kind")),
    Column("axis", detail=1, optional=True),
    Column("group_size", "count", detail=3, optional=True, get=attrgetter("collective.group_size")),
    Column("runs", "number", real=True),
    Column("median_s", "seconds", detail=9),
    _SELF_S,
    Column("wait_s", "seconds", optional=True),
    Column("transfer_s", "seconds", optional=True),
    Column("executed_wire_bytes", "bytes", page_name="sent", optional=True, get=_sent),
    Column("bus_bytes_per_s", "bytes_per_s", page_name="bus_bandwidth", optional=True, get=attrgetter("bus")),
)


# -- by label, device and run -----------------------------------------------------------------------------------------------


class _Labelled(NamedTuple):
    label: str
    self_s: float
    share: float


def _spec_by(label: str, title: str, place: TablePlace, meaning: str = _SHARE_OF_SELF) -> TableSpec:
    columns = (
        Column(label, width=34, get=attrgetter("label")),
        _SELF_S,
        _SHARE._replace(summed=False, bar="stacked", width=32, meaning=meaning),
    )
    return TableSpec(f"measured_by_{label}", title, place, page_rows=10).with_columns(*columns)


_BY_PHASE = _spec_by("phase", "Self time by phase, means of a step", TablePlace("measured", "Measured time", "by phase", 1))
_BY_SCOPE = _spec_by("scope", "Self time by scope, means of a step", TablePlace("measured", "Measured time", "by scope", 2))
_BY_SOURCE = _spec_by(
    "source", "Self time by source line, means of a step", TablePlace("measured", "Measured time", "by source line", 3)
)
_BY_AXIS = _spec_by(
    "axis",
    "Self time of collectives by axis, means of a step",
    TablePlace("measured", "Measured collectives", "by axis", 1),
    "share of the self times of all collectives",
)


def _by(
    table: TableSpec,
    rows: Sequence[KernelRow] | Sequence[CollectiveRow],
    label: Callable[[object], str] | Callable[[KernelRow], str] | Callable[[CollectiveRow], str],
) -> Table:
    """Return the self time of rows by a label, the longest first."""
    whole = math.fsum(row.self_s for row in rows)
    sums: dict[str, float] = {}
    for row in rows:
        key = label(row)  # type: ignore[arg-type]
        sums[key] = sums.get(key, 0.0) + row.self_s
    labelled = [_Labelled(key, self_s, self_s / whole if whole else 0.0) for key, self_s in sums.items()]
    labelled.sort(key=lambda row: -row.self_s)
    return table.of(labelled, on_page=len(labelled) > 1)


class _DeviceRow(NamedTuple):
    device: str
    samples: int
    step_s: float
    busy_s: float
    waits: DeviceWaits | None

    @property
    def wait_s(self) -> float | None:
        """The time of a step in which it waits; None without collectives whose waiting is known."""
        return None if self.waits is None else self.waits.waited * SECONDS_PER_PS / self.samples

    @property
    def held_s(self) -> float | None:
        """The time of a step in which others wait for it."""
        return None if self.waits is None else self.waits.held * SECONDS_PER_PS / self.samples


def _devices(rows: MeasuredRows) -> list[_DeviceRow]:
    """Return one row per device, the one that others wait for longest first: steps, busy time, waiting in collectives."""
    labels = labels_of_devices(rows.times.devices)
    devices = []
    for device, label in labels.items():
        samples = [sample for sample in rows.times.samples if sample.device == device]
        step = sum(sample.step for sample in samples) * SECONDS_PER_PS / len(samples)
        busy = sum(sample.busy for sample in samples) * SECONDS_PER_PS / len(samples)
        devices.append(_DeviceRow(label, len(samples), step, busy, rows.waits.get(device)))
    return sorted(devices, key=lambda row: (-row.waits.held if row.waits is not None else 0, -row.busy_s))


_DEVICES = TableSpec(
    "measured_by_device",
    "Devices: mean step and busy time, and waiting in collectives: its own, and that of others for it",
    TablePlace("measured", "Measured time", "by device", 4),
    page_rows=8,
).with_columns(
    Column("device"),
    Column("samples", "count", summed=True, meaning="runs of the device"),
    Column("step_s", "seconds", meaning="mean time of the step on the device"),
    Column("busy_s", "seconds", meaning="mean time of a step in which an execution runs"),
    Column(
        "wait_s",
        "seconds",
        page_name="waits",
        optional=True,
        meaning="time of the step in which the device waits in collectives",
    ),
    Column(
        "held_s",
        "seconds",
        page_name="others_wait",
        optional=True,
        meaning="time of the step in which others wait for the device",
    ),
    Column(
        "last",
        "count",
        page_name="times_last",
        optional=True,
        meaning="collectives that the device began last",
        get=lambda row: row.waits and row.waits.last,
    ),
)


class _Part(NamedTuple):
    part: str
    time_s: float
    whole_s: float


_PARTS = TableSpec(
    "measured_parts", "Parts of the measured step: means", TablePlace("measured", "Measured time", "by part"), page_rows=0
).with_columns(
    Column("part", width=34, meaning="transfer and waiting of collectives, kernels beside no collective, idle"),
    Column("time_s", "seconds", summed=True, meaning="mean time of the part in one step"),
    Column(
        "share",
        "share",
        page_name="share_of_parts",
        bar="stacked",
        width=32,
        meaning="share of all parts",
        get=lambda part: part.time_s / part.whole_s,
    ),
)


def _parts(rows: MeasuredRows) -> list[_Part]:
    """Return the parts of a step: kernels, transfer and waiting of collectives, and idle time, as means over samples.

    They add up to the mean step: kernels that run beside a collective are no part, and collectives share their overlap.
    """
    times = {"kernels": rows.mean_busy_s - rows.collectives_s}
    self_times = math.fsum(row.self_s for row in rows.collectives)
    share = rows.collectives_s / self_times if self_times else 1.0
    for row in rows.collectives:
        whole = row.self_s if row.wait_s is None else row.self_s - row.wait_s
        what = "collectives" if row.wait_s is None else "transfer of collectives"
        for label, seconds in ((what, whole), ("waiting of collectives", row.wait_s or 0.0)):
            key = f"{label}, {row.axis or 'no axis'}"
            times[key] = times.get(key, 0.0) + seconds * share
    times["idle"] = rows.mean_step_s - rows.mean_busy_s
    whole = math.fsum(times.values())
    return [_Part(name, seconds, whole) for name, seconds in times.items() if seconds]


class _Run(NamedTuple):
    """A run on the device of a label."""

    device: str
    sample: SampleTimes


_RUNS = TableSpec(
    "measured_runs", "Runs by step, the slowest first", TablePlace("measured", "Measured time", "by run", 5), page_rows=6
).with_columns(
    Column("device"),
    Column("run", "number", meaning="number of the run", get=attrgetter("sample.run")),
    Column("events", "count", summed=True, get=attrgetter("sample.events")),
    Column("step_s", "seconds", get=lambda run: run.sample.step * SECONDS_PER_PS),
)

TABLES = (
    *(_KERNELS, _KERNEL_GROUPS, _PARTS, _COLLECTIVES, _BY_AXIS, RATES),
    *(_BY_PHASE, _BY_SCOPE, _BY_SOURCE, _DEVICES, _RUNS),
)
