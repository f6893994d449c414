"""The tables of `measured`: kernels, collectives, self time by label, runs and devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.measured.rates import achieved_rates, rates_table
from hlo_inspect.passes.measured.rows import CollectiveRow, KernelRow, MeasuredRows
from hlo_inspect.profiler.measurements import SECONDS_PER_PS, DeviceWaits, labels_of_devices, percentile
from hlo_inspect.report.table import Column, Table


def measured_tables(context: Context, rows: MeasuredRows) -> Iterator[Table]:
    """Yield the tables, the kernels first."""
    has_bounds = context.on_machine.kernel_times is not None
    yield _kernels(rows, has_bounds=has_bounds)
    yield _kernel_groups(rows, has_bounds=has_bounds)
    yield _parts(rows)
    if rows.collectives:
        yield _collectives(rows.collectives)
        yield _by("axis", "Self time of collectives by axis", rows.collectives, lambda row: row.axis or "no axis")
    profile = context.on_machine.profile
    if profile is not None:
        yield rates_table(achieved_rates(context, rows), profile.name)
    yield _by("phase", "Self time by phase", rows.kernels, lambda row: row.labels.phase or UNKNOWN)
    yield _by("scope", "Self time by scope of the program", rows.kernels, lambda row: row.labels.scope)
    yield _by("source", "Self time by source line", rows.kernels, lambda row: row.labels.source)
    yield _devices(rows)
    yield _runs(rows)


# -- kernels ----------------------------------------------------------------------------------------------------------------


def _kernels(rows: MeasuredRows, *, has_bounds: bool) -> Table:
    """Return one row per instruction with events."""
    columns = (
        Column("name", get=lambda row: row.name),
        Column("kind", detail=4, get=lambda row: row.kind),
        Column("computation", detail=8, get=lambda row: row.computation),
        Column("events", "count", summed=True, detail=8, get=lambda row: row.events),
        Column("runs", "number", get=lambda row: row.runs),
        Column("median_s", "seconds", get=lambda row: row.median_s),
        Column("p90_s", "seconds", detail=2, get=lambda row: row.p90_s),
        Column("time_s", "seconds", detail=7, get=lambda row: row.time_s),
        Column("self_s", "seconds", summed=True, get=lambda row: row.self_s),
        Column("share", "share", summed=True, page_name="share_of_self", get=lambda row: row.share),
        Column("async_s", "seconds", detail=7, optional=True, get=lambda row: row.async_s),
        *_bounds(has_bounds=has_bounds),
        phase_column(lambda row: row.labels.phase, detail=3),
        Column("op_name", detail=8, get=lambda row: row.labels.op_name or None),
        Column("source", detail=1, width=16, get=lambda row: printed(row.labels.source)),
        Column("line", "number", detail=8, get=lambda row: row.line),
    )
    title = "Measured instructions by self time; medians are of one execution, self times are means of a step"
    return Table.of("measured_kernels", title, columns, rows.kernels, page_as="measured_kernel_groups")


def _bounds(*, has_bounds: bool) -> Iterator[Column]:
    detail = 0 if has_bounds else 9
    yield Column("bound_s", "seconds", detail=detail, optional=True, get=lambda row: row.bound_s)
    yield Column("ratio", "number", detail=detail, optional=True, page_name="self/bound", get=lambda row: _rounded(row.ratio))
    yield Column("flops_per_s", "flops_per_s", detail=5, optional=True, get=lambda row: row.rate(row.flops))
    yield Column("bytes_per_s", "bytes_per_s", detail=6, optional=True, get=lambda row: row.rate(row.bytes))


def _rounded(ratio: float | None) -> float | None:
    """Return a ratio with 4 digits: more would be noise. A large one is whole."""
    rounded = None if ratio is None else float(f"{ratio:.4g}")
    return int(rounded) if rounded is not None and rounded >= 1e4 else rounded


class _KernelGroup(NamedTuple):
    """Equal kernels of several layers. Figures are sums of a step."""

    kernels: Sequence[KernelRow]

    @property
    def labels(self) -> object:
        return self.kernels[0].labels

    @property
    def runs(self) -> float:
        return math.fsum(row.runs for row in self.kernels)

    @property
    def median_s(self) -> float:
        ordered = sorted(row.median_s for row in self.kernels)
        return ordered[len(ordered) // 2]

    @property
    def self_s(self) -> float:
        return math.fsum(row.self_s for row in self.kernels)

    @property
    def share(self) -> float:
        return math.fsum(row.share for row in self.kernels)

    @property
    def bound_s(self) -> float | None:
        return self._sum([row.bound_s for row in self.kernels])

    @property
    def ratio(self) -> float | None:
        return self.self_s / self.bound_s if self.bound_s else None

    @property
    def flops(self) -> float | None:
        return self._sum([row.flops for row in self.kernels])

    @property
    def bytes(self) -> float | None:
        return self._sum([row.bytes for row in self.kernels])

    def rate(self, amount: float | None) -> float | None:
        return amount / self.self_s if amount is not None and self.self_s else None

    def _sum(self, values: Sequence[float | None]) -> float | None:
        numbers = [value for value in values if value is not None]
        return math.fsum(numbers) if len(numbers) == len(values) else None


def _kernel_groups(rows: MeasuredRows, *, has_bounds: bool) -> Table:
    """Return the instructions as merged rows: equal kernels of layers are one."""
    merged = group_rows(rows.kernels, lambda row: (row.kind, row.labels, row.flops, row.bytes, row.runs, row.bound_s))
    groups = sorted(map(_KernelGroup, merged), key=lambda group: -group.self_s)
    columns = (
        Column("name", width=24, get=lambda group: joined_name([row.name for row in group.kernels])),
        Column("kind", detail=4, get=lambda group: group.kernels[0].kind),
        Column("runs", "number", detail=1, get=lambda group: group.runs),
        Column("median_s", "seconds", detail=1, get=lambda group: group.median_s),
        Column("self_s", "seconds", summed=True, get=lambda group: group.self_s),
        Column("share", "share", summed=True, page_name="share_of_self", get=lambda group: group.share),
        *_bounds(has_bounds=has_bounds),
        phase_column(lambda group: group.kernels[0].labels.phase, detail=2),
        Column("source", detail=1, width=16, get=lambda group: printed(group.kernels[0].labels.source)),
    )
    title = "Measured kernels of one step, merged, by self time; medians are of one execution"
    return Table.of("measured_kernel_groups", title, columns, groups, page_rows=15)


# -- collectives ------------------------------------------------------------------------------------------------------------


def _collectives(rows: Sequence[CollectiveRow]) -> Table:
    """Return one row per collective with events."""
    columns = (
        Column("name", get=lambda row: row.collective.start.name),
        Column("kind", detail=2, get=lambda row: row.collective.kind),
        Column("axis", detail=1, optional=True, get=lambda row: row.axis),
        Column("group_size", "count", detail=3, optional=True, get=lambda row: row.collective.group_size),
        Column("runs", "number", get=lambda row: row.runs),
        Column("median_s", "seconds", detail=1, get=lambda row: row.median_s),
        Column("self_s", "seconds", summed=True, get=lambda row: row.self_s),
        Column("wait_s", "seconds", optional=True, get=lambda row: row.wait_s),
        Column("transfer_s", "seconds", optional=True, get=lambda row: row.transfer_s),
        Column("executed_wire_bytes", "bytes", page_name="sent", optional=True, get=_sent),
        Column("bus_bytes_per_s", "bytes_per_s", page_name="bus_bandwidth", optional=True, get=lambda row: row.bus),
    )
    return Table.of("measured_collectives", "Measured collectives of one step by self time", columns, rows)


def _sent(row: CollectiveRow) -> int | None:
    return None if row.sent is None else round(row.sent)


# -- by label, device and run -----------------------------------------------------------------------------------------------


class _Labelled(NamedTuple):
    label: str
    self_s: float
    share: float


def _by(
    name: str,
    title: str,
    rows: Sequence[KernelRow] | Sequence[CollectiveRow],
    label: Callable[[object], str] | Callable[[KernelRow], str] | Callable[[CollectiveRow], str],
) -> Table:
    """Return the self time of rows by a label, the longest first."""
    whole = math.fsum(row.self_s for row in rows)
    sums: dict[str, float] = {}
    for row in rows:
        key = label(row)  # type: ignore[arg-type]
        sums[key] = sums.get(key, 0.0) + row.self_s
    labelled = sorted((_Labelled(key, self_s, self_s / whole if whole else 0.0) for key, self_s in sums.items()), key=_longest)
    columns = (
        Column(name, width=34, get=lambda row: row.label),
        Column("self_s", "seconds", summed=True, get=lambda row: row.self_s),
        Column("share", "share", page_name="share_of_self", bar="stacked", width=32, get=lambda row: row.share),
    )
    return Table.of(f"measured_by_{name}", title, columns, labelled, page_rows=10, on_page=len(labelled) > 1)


def _longest(row: _Labelled) -> float:
    return -row.self_s


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


def _devices(rows: MeasuredRows) -> Table:
    """Return one row per device, the one that others wait for longest first: steps, busy time, waiting in collectives."""
    labels = labels_of_devices(rows.times.devices)
    devices = []
    for device, label in labels.items():
        samples = [sample for sample in rows.times.samples if sample.device == device]
        step = percentile(sorted(sample.step for sample in samples), 0.5) * SECONDS_PER_PS
        busy = percentile(sorted(sample.busy for sample in samples), 0.5) * SECONDS_PER_PS
        devices.append(_DeviceRow(label, len(samples), step, busy, rows.waits.get(device)))
    devices.sort(key=lambda row: (-row.waits.held if row.waits is not None else 0, -row.busy_s))
    columns = (
        Column("device", get=lambda row: row.device),
        Column("samples", "count", summed=True, get=lambda row: row.samples),
        Column("step_s", "seconds", get=lambda row: row.step_s),
        Column("busy_s", "seconds", get=lambda row: row.busy_s),
        Column("wait_s", "seconds", page_name="waits", optional=True, get=lambda row: row.wait_s),
        Column("held_s", "seconds", page_name="others_wait", optional=True, get=lambda row: row.held_s),
        Column("last", "count", page_name="times_last", optional=True, get=lambda row: row.waits and row.waits.last),
    )
    title = "Devices: median step and busy time; waiting in collectives of a step, its own and that of others for it"
    return Table.of("measured_by_device", title, columns, devices, page_rows=8, on_page=len(devices) > 1)


class _Part(NamedTuple):
    part: str
    time_s: float
    whole_s: float


def _parts(rows: MeasuredRows) -> Table:
    """Return the parts of a step: kernels, transfer and waiting of collectives, and idle time, as means over samples."""
    times = {"kernels": rows.kernels_s - math.fsum(row.self_s for row in rows.collectives)}
    for row in rows.collectives:
        whole = row.self_s if row.wait_s is None else row.self_s - row.wait_s
        what = "collectives" if row.wait_s is None else "transfer of collectives"
        for label, seconds in ((what, whole), ("waiting of collectives", row.wait_s or 0.0)):
            key = f"{label}, {row.axis or 'no axis'}"
            times[key] = times.get(key, 0.0) + seconds
    idle = sum(sample.step - sample.busy for sample in rows.times.samples)
    times["idle"] = rows.times.seconds_of_step(idle)
    whole = math.fsum(times.values())
    columns = (
        Column("part", width=34, get=lambda part: part.part),
        Column("time_s", "seconds", summed=True, get=lambda part: part.time_s),
        Column(
            "share", "share", page_name="share_of_parts", bar="stacked", width=32, get=lambda part: part.time_s / part.whole_s
        ),
    )
    parts = [_Part(name, seconds, whole) for name, seconds in times.items() if seconds]
    return Table.of("measured_parts", "The measured step by what waits, mean", columns, parts, page_rows=0)


def _runs(rows: MeasuredRows) -> Table:
    """Return one row per sample, the slowest first."""
    labels = labels_of_devices(rows.times.devices)
    samples = sorted(rows.times.samples, key=lambda sample: -sample.step)
    columns = (
        Column("device", get=lambda sample: labels[sample.device]),
        Column("run", "number", get=lambda sample: sample.run),
        Column("events", "count", summed=True, get=lambda sample: sample.events),
        Column("step_s", "seconds", get=lambda sample: sample.step * SECONDS_PER_PS),
    )
    return Table.of("measured_runs", "Runs by step, the slowest first", columns, samples, page_rows=6)
