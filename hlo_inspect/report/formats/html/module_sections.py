"""The sections of a module's page: which tables and pictures are in each, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlo_inspect.report.cells import cell, heading
from hlo_inspect.report.formats.html.charts.roofline import kernels_left_out
from hlo_inspect.report.formats.html.charts.rows import Tables, by_name
from hlo_inspect.report.formats.html.model import PageSection, TableGroup
from hlo_inspect.report.formats.html.pictures import pictures_of
from hlo_inspect.report.options import with_relative_paths
from hlo_inspect.report.table import Column, Row, Table

_MEASURED = PageSection(
    "measured",
    "Measured time of the step",
    groups=(
        TableGroup(
            "Measured time",
            {
                "measured_parts": "by part",
                "measured_by_phase": "by phase",
                "measured_by_scope": "by scope",
                "measured_by_source": "by source line",
                "measured_by_device": "by device",
                "measured_runs": "by run",
            },
        ),
        TableGroup("Measured kernels", {"measured_kernel_groups": "merged", "measured_kernels": "single"}),
        TableGroup("Measured collectives", {"measured_collectives": "single", "measured_by_axis": "by axis"}),
        TableGroup.of_one("measured_rates"),
    ),
    command="measured",
)
"""The first section of a module that ran in a recorded profile."""

_PLAN = (
    PageSection(
        "step",
        "Time of the step",
        groups=(
            TableGroup(
                "Time of the step",
                {
                    "step": "by part",
                    "resources": "by resource",
                    "time_by_phase": "by phase",
                    "time_by_scope": "by scope",
                    "time_by_source": "by source line",
                },
            ),
            TableGroup.of_one("timeline"),
        ),
        nothing="No instruction of this module has a known time.",
        command="time",
    ),
    PageSection(
        "kernels",
        "Kernels",
        groups=(
            TableGroup(
                "Kernels",
                {"kernel_groups": "merged", "kernels": "single", "kernels_phase_differences": "phases that disagree"},
            ),
        ),
        nothing="This module has no kernel.",
    ),
    PageSection(
        "work",
        "Work",
        groups=(
            TableGroup(
                "Work of the step",
                {
                    "cost_by_scope": "by scope",
                    "cost_by_source": "by source line",
                    "cost_by_phase": "by phase",
                    "cost": "by opcode",
                    "cost_by_fusion_kind": "by kind of fusion",
                    "matmuls_by_type": "products by type",
                },
            ),
        ),
        nothing="No instruction of this module has a known cost.",
    ),
    PageSection(
        "collectives",
        "Collectives",
        groups=(
            TableGroup(
                "Collectives",
                {
                    "collective_groups": "merged",
                    "collectives": "single",
                    "collectives_by_axis": "by axis",
                    "collectives_by_axis_and_kind": "by axis and kind",
                    "collectives_by_kind": "by kind",
                    "collectives_by_phase": "by phase",
                    "collectives_by_kind_and_phase": "by kind and phase",
                    "collective_sizes": "by size",
                    "collectives_by_size": "by kind and size",
                    "collective_links": "by link",
                    "exposed_collectives": "exposed",
                    "collectives_phase_differences": "phases that disagree",
                    "point_to_point": "point to point",
                },
            ),
            TableGroup("Mesh of devices", {"mesh_axes": "axes", "mesh_devices": "devices"}),
        ),
        nothing="This module has no collectives: its devices send nothing to each other.",
    ),
    PageSection(
        "memory",
        "Memory",
        groups=(
            TableGroup(
                "Live at the peak",
                {
                    "live_at_peak_groups": "merged",
                    "live_at_peak": "single",
                    "live_by_role": "by role",
                    "live_by_scope": "by scope",
                    "live_by_source": "by source line",
                    "largest_arrays": "largest arrays, live or not",
                },
            ),
            TableGroup("Live bytes over the schedule", {"live_curve": "with arrays", "live_bytes": "bytes"}),
            TableGroup("Device memory", {"memory_parts": "parts", "memory_fit": "fit", "out_of_memory_parts": "by XLA"}),
            TableGroup("Host transfers", {"host_copies": "copies", "host_transfers": "calls"}),
            TableGroup.of_one("parameter_copies"),
        ),
        nothing="No array of this module has a known place in device memory.",
        command="memory",
    ),
    PageSection(
        "parameters",
        "Parameters",
        groups=(
            TableGroup(
                "Parameters",
                {
                    "params_by_role": "by role",
                    "params": "single",
                    "params_not_donated": "not donated",
                    "params_donated": "donated",
                    "buffers": "sums",
                },
            ),
            TableGroup("Outputs", {"output_groups": "merged", "outputs": "single"}),
        ),
        nothing="The entry computation has no parameters, or is not in the text.",
    ),
    PageSection(
        "optimizer",
        "Optimizer",
        groups=(TableGroup("Updates", {"optimizer_groups": "by rule", "optimizer": "by weight", "optimizer_update": "sum"}),),
        nothing="No update of a parameter matches an optimizer.",
    ),
    PageSection("loops", "Loops", groups=(TableGroup.of_one("loops"),), nothing="This module has no loop."),
    PageSection(
        "fusions",
        "Fusions",
        groups=(
            TableGroup(
                "Fusions",
                {
                    "fusion_groups": "merged",
                    "fusions": "single",
                    "fusions_by_kind": "by kind",
                    "fusions_by_root": "by root",
                    "fusion_content": "by opcode inside",
                },
            ),
        ),
        nothing="This module has no fusions: the compiler has not run fusion yet, or found nothing to fuse.",
    ),
    PageSection(
        "custom-calls",
        "Custom calls",
        groups=(
            TableGroup(
                "Custom calls",
                {
                    "custom_call_target_groups": "merged",
                    "custom_calls_by_target": "by target",
                    "custom_call_groups": "merged, short",
                    "custom_calls": "by target, short",
                    "unknown_custom_calls": "of unknown work",
                },
            ),
        ),
        nothing="This module has no custom calls.",
    ),
    PageSection(
        "program",
        "Program",
        groups=tuple(map(TableGroup.of_one, ("opcodes", "flags", "call_stacks", "compiler_warnings"))),
        nothing="No instruction of this module could be read.",
    ),
)
"""In the order in which somebody reads who wants to know why a step is slow."""


def module_sections(tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """Return the sections as planned with their pictures, and a last one with the tables that no other has."""
    named = by_name(tables)
    words = {"optimizer": _optimizer_words(named)}
    drawn = named | by_name(with_relative_paths([named[name] for name in _DRAWN_WITH_PATHS if name in named]))
    plan = (_MEASURED, *_PLAN) if any(name in named for name in _MEASURED.tables) else _PLAN
    pictures = {section.name: pictures_of(section.name, drawn) for section in plan}
    if not pictures["kernels"]:
        words["kernels"] = _no_roofline(named)
    sections = tuple(replace(section, pictures=pictures[section.name], text=words.get(section.name, "")) for section in plan)
    planned = {name for section in sections for name in (*section.tables, *(chart.table for chart in section.pictures))}
    rest = [table.name for table in tables if table.on_page and table.name not in planned and table.rows]
    return (*sections, PageSection("more", "More", groups=tuple(map(TableGroup.of_one, rest)))) if rest else sections


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
        column.name: (heading(column), cell(value, column, raw_bytes=False, of_sums=False))
        for column, value in zip(columns, row, strict=True)
        if value is not None and value != "" and column.unit != "bool"
    }
    rule, weights, size = (texts.get(name, ("", "?"))[1] for name in ("rule", "weights", "bytes"))
    constants = [f"{name} {text}" for key, (name, text) in texts.items() if key not in _NO_CONSTANTS]
    said = f"{rule} updates {weights} weight{'' if weights == '1' else 's'} of {size}"
    return f"{said}: {', '.join(constants)}." if constants else f"{said}."
