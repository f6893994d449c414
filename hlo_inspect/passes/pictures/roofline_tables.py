"""Kernels on the roofline of an accelerator: their FLOP/s by FLOPs a byte, and the limits of the accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES, MASKED, SHARED
from hlo_inspect.analysis.cost.roofline import rate, units_elsewhere
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.analysis.time.costings import Costing
from hlo_inspect.analysis.time.kernel_times import KernelTimes
from hlo_inspect.figure import Figure, Number, Quantity, exact, least
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.passes.top import kernel_groups
from hlo_inspect.report.table import Column, Row, Table
from hlo_inspect.report.table_spec import TableSpec


class _Point(NamedTuple):
    """Equal kernels, which have the row `number` of the table of such; `of_table` is that row.

    `flops` are those of one device, `memory_bytes` those of its memory. `left_out` says why there is no place for them.
    """

    number: int
    of_table: Row
    row: Costing
    flops: float
    memory_bytes: Number | None
    left_out: str

    @property
    def flop_per_byte(self) -> float | None:
        return self.flops / self.memory_bytes if self.memory_bytes else None

    @property
    def above_bound(self) -> float | None:
        """The excess of the estimate over the bound in seconds, None if one of them is unknown."""
        time = self.row.cost.time
        if time is None or isinstance(time.estimate, Figure) or isinstance(time.bound, Figure):
            return None
        return max(0.0, time.estimate - time.bound)

    def rate(self, seconds: Quantity | None) -> float | None:
        """Return the FLOP/s of kernels that take `seconds`; None if unknown."""
        return self.flops / seconds if seconds and not isinstance(seconds, Figure) else None


_ROOFLINE = TableSpec("roofline", "Kernels on the roofline, merged", on_page=False).with_columns(
    Column("group", "number", get=attrgetter("number")),
    Column("flops_of_device", "flops", get=attrgetter("flops")),
    Column("memory_bytes", "bytes"),
    Column("flop_per_memory_byte", "number", get=attrgetter("flop_per_byte")),
    Column("above_bound_s", "seconds", optional=True, get=attrgetter("above_bound")),
    Column("bound_flops_per_s", "flops_per_s", optional=True, get=lambda point: point.rate(point.row.cost.time.bound)),
    Column("estimate_flops_per_s", "flops_per_s", optional=True, get=lambda point: point.rate(point.row.cost.time.estimate)),
    Column("compiler_flops_per_s", "flops_per_s", optional=True, get=lambda point: point.rate(point.row.cost.time.compiler)),
)
"""The columns behind those of `kernel_groups`; without a profile the first one."""


def roofline_tables(context: Context) -> Iterator[Table]:
    """Yield the kernels with a place, those without one by reason, and with a profile the roofs.

    Before fusion it is unknown which bytes reach memory. The places are then by the bytes that kernels read and write, and
    there are no roofs.
    """
    groups = kernel_groups(context)
    times = context.on_machine.kernel_times
    times = times if times is not None and not times.bytes_gap else None
    points = list(_points(context, groups, times))
    left_out, placed = ([point for point in points if bool(point.left_out) == is_out] for is_out in (True, False))
    if left_out:
        yield _LEFT_OUT.of(group_rows(left_out, lambda point: point.left_out))
    if not placed:
        return
    own = _ROOFLINE.of(placed, columns=_ROOFLINE.columns if times is not None else _ROOFLINE.columns[:1])
    rows = tuple((*point.of_table, *row) for point, row in zip(placed, own.rows, strict=True))
    yield replace(own, columns=(*groups.columns, *own.columns), rows=rows)
    if times is not None:
        yield _roofs(context, times.profile, placed)


def _points(context: Context, groups: Table, times: KernelTimes | None) -> Iterator[_Point]:
    for number, (row, of_table) in enumerate(zip(context.on_machine.costing_groups, groups.rows, strict=True)):
        flops = exact(row.cost.flops)
        size = exact(row.cost.size)
        if times is not None:
            flops, size = None if flops is None else flops / times.devices, _memory_bytes(row, times.profile)
        yield _Point(number, of_table, row, flops or 0.0, size, _left_out_reason(row, flops, size, has_times=times is not None))


def _memory_bytes(row: Costing, profile: HardwareProfile) -> Number | None:
    """Return the bytes that all runs move between the device and its memory; None if some are unknown."""
    if isinstance(row.cost.size, Figure):
        return None
    elsewhere = units_elsewhere(profile)
    each = ((least(kernel.runs), unit, size) for kernel in row.kernels for unit, size in kernel.moved)
    return sum(runs * size for runs, unit, size in each if unit not in elsewhere)


def _left_out_reason(row: Costing, flops: float | None, size: Number | None, *, has_times: bool) -> str:
    """Return the first reason that applies, or ""."""
    reasons = {
        "no kernel": not row.kernels,
        "collectives": row.cost.time is not None and row.cost.time.bound_by == "collective",
        "of unknown FLOPs": flops is None,
        "without FLOPs": not flops,
        "of unknown bytes": size is None,
        "without bytes in the device's memory" if has_times else "without bytes": not size,
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


_LEFT_OUT = TableSpec("roofline_left_out", "Kernels without a point on the roofline", on_page=False).with_columns(
    Column("reason", get=lambda group: group[0].left_out),
    Column("sites", "count", summed=True, get=lambda group: sum(len(point.row.kernels) for point in group)),
)


# -- roofs ------------------------------------------------------------------------------------------------------------------


class _Roof(NamedTuple):
    """The most FLOP/s of a unit: bandwidth × FLOPs per byte up to its `peak`."""

    name: str
    peak: float
    bandwidth: float
    lowest: float
    highest: float

    @property
    def ridge(self) -> float:
        return self.peak / self.bandwidth


_ROOFS = TableSpec("roofs", "Peak rates", on_page=False).with_columns(
    Column("unit", get=lambda roof: roof.name),
    Column("flops_per_s", "flops_per_s", get=lambda roof: roof.peak),
    Column("bytes_per_s", "bytes_per_s", get=lambda roof: roof.bandwidth),
    Column("ridge_flop_per_byte", "number", get=lambda roof: roof.ridge),
    Column("from_flop_per_byte", "number", get=lambda roof: min(roof.lowest, roof.ridge)),
    Column("from_flops_per_s", "flops_per_s", get=lambda roof: min(roof.lowest * roof.bandwidth, roof.peak)),
    Column("to_flop_per_byte", "number", get=lambda roof: max(roof.highest, roof.ridge)),
)
ROOFLINE_TABLES = (_ROOFLINE, _LEFT_OUT, _ROOFS)


def _roofs(context: Context, profile: HardwareProfile, placed: Sequence[_Point]) -> Table:
    """Return the roofs of the units of the program, from the fewest to the most FLOPs a byte of the kernels under them."""
    rates = dict(_rates(context, profile))
    bandwidth = profile.memory_bandwidth
    ridges = [peak / bandwidth for peak in rates.values()] if bandwidth else []
    places = [point.flop_per_byte or 0.0 for point in placed] + ridges
    roofs = [_Roof(name, peak, bandwidth, min(places), max(places)) for name, peak in rates.items()] if bandwidth else []
    roofs.sort(key=lambda roof: -roof.peak)
    return _ROOFS.of(roofs, title=f"{_ROOFS.title} of {profile.name}")


def _rates(context: Context, profile: HardwareProfile) -> Iterator[tuple[str, float]]:
    """Yield the rates of the profile that the work of the program uses."""
    flops_index = FIGURES.index("flops")
    units = dict.fromkeys(key.unit for key, row in context.cost.opcodes.rows.items() if row[flops_index])
    for unit in units:
        stated = None if unit in (MASKED, SHARED) else rate(unit, profile)
        if stated is not None:
            yield stated[1], stated[0]
