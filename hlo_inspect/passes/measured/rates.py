"""The rates that the best kernels and collectives of a recorded profile achieved, by the figure of the hardware profile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import limiting_rate
from hlo_inspect.passes.measured.measured_rows import MeasuredRows
from hlo_inspect.report.table import Column, Table, TablePlace, Unit
from hlo_inspect.report.table_spec import TableSpec

MEMORY = "memory.bandwidth"


LEAST_PART = 1e-3
"""Kernels with a smaller part of all bounds are no evidence: what binds them takes next to no time of theirs."""


class _Attempt(NamedTuple):
    """A kernel or collective that a figure of the hardware profile binds; `share` of that figure is what it achieved."""

    figure: str
    name: str
    share: float


class AchievedRate(NamedTuple):
    """The best of the kernels that a figure binds. Rates are in FLOP/s or bytes/s."""

    figure: str
    unit: Unit
    stated: float
    share: float
    name: str
    sites: int

    @property
    def achieved(self) -> float:
        return self.stated * self.share


def achieved_rates(context: Context, rows: MeasuredRows) -> list[AchievedRate]:
    """Return the best rate of each figure that binds a measured kernel; none without a hardware profile."""
    profile = context.on_machine.profile
    by_figure: dict[str, list[_Attempt]] = {}
    for attempt in (*_of_kernels(context, rows), *_of_collectives(context, rows)):
        by_figure.setdefault(attempt.figure, []).append(attempt)
    rates = []
    for figure, attempts in by_figure.items():
        stated = profile.value(figure) if profile is not None else None
        if stated is not None:
            best = max(attempts, key=lambda attempt: attempt.share)
            unit: Unit = "bytes_per_s" if figure.endswith("bandwidth") else "flops_per_s"
            rates.append(AchievedRate(figure, unit, stated, best.share, best.name, len(attempts)))
    return rates


def _of_kernels(context: Context, rows: MeasuredRows) -> Iterator[_Attempt]:
    """Yield the kernels on the device itself: a roofline says whether memory or computing binds each."""
    times = context.on_machine.kernel_times
    least = LEAST_PART * math.fsum(row.bound_s or 0.0 for row in rows.kernels)
    collectives = {row.collective.start.name for row in rows.collectives}
    for row in rows.kernels if times is not None else ():
        kernel = rows.kernel(row.name)
        if kernel is None or times is None or row.name in collectives or not (row.bound_s and row.self_s):
            continue
        if row.bound_s < least:
            continue
        bound_by = times.for_kernel(kernel).bound_by
        figure = MEMORY if bound_by == "memory" else None
        if bound_by == "compute":
            figure = limiting_rate(kernel.parts[0].cost.work, times.profile)
        if figure is not None:
            yield _Attempt(figure, row.name, row.bound_s / row.self_s)


def _of_collectives(context: Context, rows: MeasuredRows) -> Iterator[_Attempt]:
    """Yield the collectives whose transfer is known, without their waiting."""
    times = dict(zip(map(id, context.collectives), context.on_machine.collective_times, strict=False))
    for row in rows.collectives:
        time = times.get(id(row.collective))
        if time is not None and time.bound_s and time.level is not None and row.transfer_s:
            yield _Attempt(f"links.{time.level}.bandwidth", row.collective.start.name, time.bound_s * row.runs / row.transfer_s)


RATES = TableSpec("measured_rates", "Rates of the best kernels", TablePlace("measured", ""), page_rows=0).with_columns(
    Column("figure", width=24, meaning="figure of the hardware profile"),
    Column("unit", detail=9, meaning="unit of the figure"),
    Column("stated", "number", real=True, unit_of="unit", meaning="value of the hardware profile"),
    Column("achieved", "number", real=True, unit_of="unit", meaning="rate of the best kernel that the figure binds"),
    Column("share", "share", page_name="share_of_stated", meaning="achieved rate divided by the stated one"),
    Column("best", meaning="this kernel", get=attrgetter("name")),
    Column("sites", "count", page_name="bound_by_it", meaning="kernels that the figure binds"),
)


def rates_table(rates: list[AchievedRate], profile: str) -> Table:
    """Return the table of the rates, with those of the hardware profile."""
    return RATES.of(rates, title=f"{RATES.title} beside those of {profile}", on_page=bool(rates))
