"""Columns of figures that may be known in part: each is followed by the column of its lower bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hlo_inspect.report.model import Column, Unit

if TYPE_CHECKING:
    from hlo_inspect.analysis.calls import Bounds
    from hlo_inspect.analysis.cost.roofline import Seconds


def bounded(
    name: str, unit: Unit, figure: Callable[[Any], Bounds], detail: int = 0, *, summed: bool = True
) -> tuple[Column, Column]:
    """A column of a count or a size."""
    column = Column(name, unit, summed=summed, detail=detail, get=lambda row: figure(row).exact)
    return column, column.lower_bound(lambda row: figure(row).least)


def bounded_seconds(
    name: str, time: Callable[[Any], Seconds | None], detail: int = 0, *, optional: bool = False, summed: bool = True
) -> tuple[Column, Column]:
    """A column of a time; `None` for a row that has none."""

    def exact(row: object) -> float | None:
        seconds = time(row)
        return None if seconds is None else seconds.exact

    def least(row: object) -> float | None:
        seconds = time(row)
        return None if seconds is None else seconds.least

    column = Column(name, "seconds", summed=summed, detail=detail, optional=optional, get=exact)
    return column, column.lower_bound(least)
