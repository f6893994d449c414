"""The pictures of the sections of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlo_inspect.report.formats.html.charts.chart_rows import Tables
from hlo_inspect.report.formats.html.charts.collective_charts import axes_chart, largest_chart, mesh_chart, sizes_chart
from hlo_inspect.report.formats.html.charts.difference_charts import (
    before_after_chart,
    changes_chart,
    collectives_by_pass_chart,
    figures_by_pass_chart,
    peak_differences_chart,
    scope_differences_chart,
)
from hlo_inspect.report.formats.html.charts.measured_charts import bounds_chart, measured_parts_chart, waits_chart
from hlo_inspect.report.formats.html.charts.memory import curve_chart, fit_chart, parameters_chart
from hlo_inspect.report.formats.html.charts.roofline_chart import roofline_chart
from hlo_inspect.report.formats.html.charts.step import loops_chart, step_chart
from hlo_inspect.report.formats.html.charts.timeline_chart import timeline_chart
from hlo_inspect.report.formats.html.charts.tree_charts import live_chart, scopes_chart, sources_chart
from hlo_inspect.report.formats.html.page_model import Chart

PICTURES: Mapping[str, tuple[Callable[[Tables], Chart | None], ...]] = {
    "measured": (measured_parts_chart, bounds_chart, waits_chart),
    "step": (step_chart, timeline_chart),
    "kernels": (roofline_chart,),
    "work": (scopes_chart, sources_chart),
    "collectives": (axes_chart, mesh_chart, sizes_chart, largest_chart),
    "memory": (fit_chart, curve_chart, live_chart),
    "parameters": (parameters_chart,),
    "loops": (loops_chart,),
    "passes": (collectives_by_pass_chart, figures_by_pass_chart),
    "changes": (changes_chart,),
    "facts": (before_after_chart,),
    "peak": (peak_differences_chart,),
    "scopes": (scope_differences_chart,),
}
"""The pictures of the sections that have some."""


def pictures_of(section: str, tables: Tables) -> tuple[Chart, ...]:
    """Return the charts of the section for which a report has rows."""
    return tuple(chart for chart in (draw(tables) for draw in PICTURES.get(section, ())) if chart is not None)
