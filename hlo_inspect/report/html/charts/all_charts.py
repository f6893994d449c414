"""The pictures of a module, by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hlo_inspect.report.html.charts.collectives import axes_chart, largest_chart, sizes_chart
from hlo_inspect.report.html.charts.loops import loops_chart
from hlo_inspect.report.html.charts.memory import curve_chart, fit_chart
from hlo_inspect.report.html.charts.mesh import mesh_chart
from hlo_inspect.report.html.charts.parameters import parameters_chart
from hlo_inspect.report.html.charts.roofline import roofline_chart
from hlo_inspect.report.html.charts.rows import Tables
from hlo_inspect.report.html.charts.step import step_chart
from hlo_inspect.report.html.charts.timeline import timeline_chart
from hlo_inspect.report.html.charts.trees import live_chart, scopes_chart, sources_chart
from hlo_inspect.report.html.model import Chart
from hlo_inspect.report.model import Table
from hlo_inspect.report.relative_paths import with_relative_paths

CHARTS: Mapping[str, tuple[Callable[[Tables], Chart | None], ...]] = {
    "step": (step_chart, timeline_chart),
    "kernels": (roofline_chart,),
    "scopes": (scopes_chart, sources_chart),
    "collectives": (axes_chart, mesh_chart, sizes_chart, largest_chart),
    "memory": (fit_chart, curve_chart, live_chart),
    "parameters": (parameters_chart,),
    "loops": (loops_chart,),
}

_WITH_PATHS = frozenset({"source_tree", "roofline", "timeline"})


def module_charts(tables: Iterable[Table]) -> dict[str, tuple[Chart, ...]]:
    """The pictures of each section; a picture for which a report has nothing is left out."""
    found = {table.name: table for table in tables}
    shown = [table for table in found.values() if table.name in _WITH_PATHS]
    found |= {table.name: table for table in with_relative_paths(shown)}
    return {
        section: tuple(chart for chart in (draw(found) for draw in charts) if chart is not None)
        for section, charts in CHARTS.items()
    }
