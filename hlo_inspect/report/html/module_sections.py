"""The sections of a module's page: which tables and pictures are in each, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlo_inspect.report.cells import cell, heading
from hlo_inspect.report.html.charts.roofline import kernels_left_out
from hlo_inspect.report.html.charts.rows import Tables, by_name
from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.html.pictures import pictures_of
from hlo_inspect.report.model import Column, Row, Table
from hlo_inspect.report.options import with_relative_paths

_TABLES_OF_MEASURED = "parts kernel_groups kernels collectives rates by_axis by_phase by_scope by_source by_device runs"
_MEASURED = PageSection(
    "measured",
    "Measured time of the step",
    tables=tuple(f"measured_{name}" for name in _TABLES_OF_MEASURED.split()),
    command="measured",
)
"""The first section of a module that ran in a recorded profile."""

_PLAN = (
    PageSection(
        "step",
        "Time of the step",
        tables=("step", "resources", "time_by_phase", "cost_by_phase"),
        nothing="No instruction of this module has a known time.",
        command="time",
    ),
    PageSection(
        "kernels",
        "Kernels",
        tables=("kernel_groups", "kernels", "matmuls_by_type", "cost_by_fusion_kind", "kernels_phase_differences"),
        nothing="This module has no kernel.",
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
            "collectives_by_kind_and_phase",
            "point_to_point",
            "collective_links",
            "exposed_collectives",
            "mesh_axes",
        ),
        nothing="This module has no collectives: its devices send nothing to each other.",
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
            "parameter_copies",
            "live_bytes",
            "memory_fit",
        ),
        nothing="No array of this module has a known place in device memory.",
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
        nothing="No update of a parameter matches an optimizer.",
    ),
    PageSection("loops", "Loops", tables=("loops",), nothing="This module has no loop."),
    PageSection(
        "fusions",
        "Fusions",
        tables=("fusion_groups", "fusions", "fusions_by_kind", "fusions_by_root", "fusion_content"),
        nothing="This module has no fusions: the compiler has not run fusion yet, or found nothing to fuse.",
    ),
    PageSection(
        "custom-calls",
        "Custom calls",
        tables=("custom_calls", "custom_calls_by_target"),
        nothing="This module has no custom calls.",
    ),
    PageSection(
        "program",
        "Program",
        tables=("cost", "opcodes", "flags", "call_stacks"),
        nothing="No instruction of this module could be read.",
    ),
)

"""In the order in which somebody reads who wants to know why a step is slow."""


def module_sections(tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """Return the sections as planned with their pictures, and a last one with the tables that no other has."""
    named = by_name(tables)
    words = {"optimizer": _optimizer_words(named)}
    drawn = named | by_name(with_relative_paths([named[name] for name in _DRAWN_WITH_PATHS if name in named]))
    plan = (_MEASURED, *_PLAN) if _MEASURED.tables[0] in named else _PLAN
    pictures = {section.name: pictures_of(section.name, drawn) for section in plan}
    if not pictures["kernels"]:
        words["kernels"] = _no_roofline(named)
    sections = tuple(replace(section, pictures=pictures[section.name], text=words.get(section.name, "")) for section in plan)
    planned = {name for section in sections for name in (*section.tables, *(chart.table for chart in section.pictures))}
    rest = tuple(table.name for table in tables if table.on_page and table.name not in planned and table.rows)
    return (*sections, PageSection("more", "More", tables=rest)) if rest else sections


def _no_roofline(tables: Tables) -> str:
    """Return why there is no picture of kernels; empty if there are no kernels."""
    left_out = kernels_left_out(tables)
    return f"No kernel has a point on the roofline: {left_out}." if left_out else ""


_DRAWN_WITH_PATHS = ("roofline", "source_tree", "timeline")
_MOST_RULES = 4
_NO_CONSTANTS = frozenset({"rule", "weights", "bytes", "fusions"})


def _optimizer_words(tables: Tables) -> str:
    """Return a sentence for each of the first rules; empty if nothing is updated."""
    groups = tables.get("optimizer_groups")
    if groups is None:
        return ""
    sentences = [_rule_in_words(groups.columns, row) for row in groups.rows[:_MOST_RULES]]
    left = len(groups.rows) - len(sentences)
    return " ".join([*sentences, f"The table has {left:,} more."] if left else sentences)


def _rule_in_words(columns: Iterable[Column], row: Row) -> str:
    texts = {
        column.name: (heading(column), cell(value, None, column, raw_bytes=False, of_sums=False))
        for column, value in zip(columns, row, strict=True)
        if value is not None and value != "" and column.unit != "bool"
    }
    rule, weights, size = (texts.get(name, ("", "?"))[1] for name in ("rule", "weights", "bytes"))
    constants = [f"{name} {text}" for key, (name, text) in texts.items() if key not in _NO_CONSTANTS]
    said = f"{rule} updates {weights} weight{'' if weights == '1' else 's'} of {size}"
    return f"{said}: {', '.join(constants)}." if constants else f"{said}."
