"""The sections of a module's view, in the order in which somebody reads who wants to know why a step is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo_inspect.report.html.charts.all_charts import module_charts
from hlo_inspect.report.html.charts.roofline import kernels_left_out
from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.html.sections.optimizer_words import optimizer_words
from hlo_inspect.report.model import Report, Table

_PLAN = (
    PageSection(
        "step",
        "Where the step goes",
        tables=("step", "resources", "time_by_phase", "cost_by_phase"),
        nothing="No instruction of this text is known to take time.",
        command="time",
    ),
    PageSection(
        "kernels",
        "Kernels",
        tables=("kernel_groups", "kernels", "cost_by_fusion_kind", "kernels_phase_differences"),
        nothing="No kernel runs on the device in this text.",
    ),
    PageSection(
        "scopes",
        "Scopes",
        tables=("time_by_scope", "time_by_source", "cost_by_scope", "cost_by_source"),
        nothing="No instruction has an op_name or a source line.",
    ),
    PageSection(
        "collectives",
        "Collectives",
        tables=(
            "collective_groups",
            "collectives",
            "collectives_by_axis",
            "collectives_by_kind",
            "collectives_by_size",
            "collectives_by_phase",
            "point_to_point",
            "collective_links",
            "exposed_collectives",
            "mesh_axes",
        ),
        nothing="This module has no collectives: its devices send each other nothing.",
    ),
    PageSection(
        "memory",
        "Memory",
        tables=(
            "live_at_peak_groups",
            "live_at_peak",
            "live_by_role",
            "live_by_scope",
            "live_by_source",
            "largest_arrays",
            "live_bytes",
            "memory_fit",
        ),
        nothing="No array of this text is known to take device memory.",
        command="memory",
    ),
    PageSection(
        "parameters",
        "Parameters",
        tables=("params_by_role", "buffers", "params_not_donated", "params_donated", "params", "output_groups", "outputs"),
        nothing="The entry computation has no parameters, or is not in the text.",
    ),
    PageSection(
        "optimizer",
        "Optimizer",
        tables=("optimizer_groups", "optimizer", "optimizer_update"),
        nothing="No parameter is updated as an optimizer does it.",
    ),
    PageSection("loops", "Loops", tables=("loops",), nothing="This module has no loop."),
    PageSection(
        "fusions",
        "Fusions",
        tables=("fusion_groups", "fusions", "fusions_by_kind", "fusions_by_root", "fusion_content"),
        nothing="This module has no fusions: the compiler had not made them yet, or there was nothing to fuse.",
    ),
    PageSection(
        "custom-calls",
        "Custom calls",
        tables=("custom_calls", "custom_calls_by_target"),
        nothing="This module has no custom calls.",
    ),
    PageSection(
        "program", "Program", tables=("cost", "opcodes", "call_stacks"), nothing="No instruction of this module could be read."
    ),
)


def module_sections(report: Report, tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """The sections as planned with their pictures, and a last one with the tables that no other has."""
    pictures = module_charts(tables)
    words = {"optimizer": optimizer_words(tables)}
    if not pictures["kernels"]:
        words["kernels"] = _no_roofline(tables)
    sections = tuple(replace(one, pictures=pictures.get(one.name, ()), text=words.get(one.name, "")) for one in _PLAN)
    planned = {name for one in sections for name in (*one.tables, *(chart.table for chart in one.pictures))}
    rest = tuple(table.name for table in tables if table.on_page and table.name not in planned and table.rows)
    return (*sections, PageSection("more", "More", tables=rest)) if rest else sections


def _no_roofline(tables: Sequence[Table]) -> str:
    """Why there is no picture of kernels; empty where there are none."""
    left_out = kernels_left_out({table.name: table for table in tables})
    return f"No kernel has a place on a roofline: {left_out}." if left_out else ""
