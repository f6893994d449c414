"""The pictures of a page, by section: of a module, of what compiler passes did to it, of two modules compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hlo_inspect.report.html.charts.before_after import before_after_chart
from hlo_inspect.report.html.charts.collectives import axes_chart, largest_chart, sizes_chart
from hlo_inspect.report.html.charts.compiler_passes import collectives_by_pass_chart, figures_by_pass_chart
from hlo_inspect.report.html.charts.differences import changes_chart, peak_differences_chart
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

Charts = Mapping[str, tuple[Callable[[Tables], Chart | None], ...]]

CHARTS: Charts = {
    "step": (step_chart, timeline_chart),
    "kernels": (roofline_chart,),
    "scopes": (scopes_chart, sources_chart),
    "collectives": (axes_chart, mesh_chart, sizes_chart, largest_chart),
    "memory": (fit_chart, curve_chart, live_chart),
    "parameters": (parameters_chart,),
    "loops": (loops_chart,),
}
_OF_HISTORY: Charts = {"passes": (collectives_by_pass_chart, figures_by_pass_chart)}
_OF_DIFFERENCE: Charts = {
    "changes": (changes_chart,),
    "facts": (before_after_chart,),
    "peak": (peak_differences_chart,),
}

_WITH_PATHS = frozenset({"source_tree", "roofline", "timeline"})


def module_charts(tables: Iterable[Table]) -> dict[str, tuple[Chart, ...]]:
    """The pictures of each section; a picture for which a report has nothing is left out."""
    found = {table.name: table for table in tables}
    shown = [table for table in found.values() if table.name in _WITH_PATHS]
    found |= {table.name: table for table in with_relative_paths(shown)}
    return _drawn(CHARTS, found)


def history_charts(tables: Iterable[Table]) -> dict[str, tuple[Chart, ...]]:
    """The pictures of a report of `history`."""
    return _drawn(_OF_HISTORY, {table.name: table for table in tables})


def difference_charts(tables: Iterable[Table]) -> dict[str, tuple[Chart, ...]]:
    """The pictures of a report of `diff`."""
    return _drawn(_OF_DIFFERENCE, {table.name: table for table in tables})


def _drawn(charts: Charts, tables: Tables) -> dict[str, tuple[Chart, ...]]:
    return {
        section: tuple(chart for chart in (draw(tables) for draw in of_section) if chart is not None)
        for section, of_section in charts.items()
    }
