"""The sections of a module's view, in the order in which somebody reads who wants to know why a step is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.model import Report, Table


@dataclass(frozen=True, slots=True)
class _Planned:
    """A section as it is planned; `nothing` where it has neither pictures nor rows."""

    name: str
    title: str
    tables: tuple[str, ...]
    nothing: str


_PLAN = (
    _Planned(
        "step",
        "Where the step goes",
        ("step", "resources", "time_by_phase", "cost_by_phase", "devices"),
        "The text says nothing that costs time.",
    ),
    _Planned(
        "kernels",
        "Kernels",
        ("kernels", "kernel_groups", "cost_by_fusion_kind", "kernels_phase_differences"),
        "No kernel runs on the device in this text.",
    ),
    _Planned(
        "scopes",
        "Scopes and source lines",
        ("time_by_scope", "time_by_source", "cost_by_scope", "cost_by_source"),
        "No instruction has an op_name or a source line.",
    ),
    _Planned(
        "collectives",
        "Collectives",
        (
            "collectives",
            "collective_groups",
            "collectives_by_axis",
            "collectives_by_kind",
            "collectives_by_size",
            "collectives_by_phase",
            "point_to_point",
            "collective_links",
            "exposed_collectives",
        ),
        "This module has no collectives: nothing is sent between devices.",
    ),
    _Planned(
        "memory",
        "Memory",
        (
            "live_at_peak",
            "live_at_peak_groups",
            "live_by_role",
            "live_by_scope",
            "live_by_source",
            "largest_arrays",
            "live_bytes",
        ),
        "No array of this text is known to take device memory.",
    ),
    _Planned(
        "parameters",
        "Parameters",
        ("params_by_role", "buffers", "params_not_donated", "params_donated", "params", "outputs", "output_groups"),
        "The entry computation has no parameters, or is not in the text.",
    ),
    _Planned(
        "optimizer",
        "Optimizer",
        ("optimizer_groups", "optimizer", "optimizer_update"),
        "No parameter is updated as an optimizer does it.",
    ),
    _Planned("loops", "Loops", ("loops",), "This module has no loop."),
    _Planned(
        "fusions",
        "Fusions",
        ("fusions", "fusion_groups", "fusions_by_kind", "fusions_by_root", "fusion_content"),
        "This module has no fusions: it was printed before the compiler made them, or there was nothing to fuse.",
    ),
    _Planned("custom-calls", "Custom calls", ("custom_calls", "custom_calls_by_target"), "This module has no custom calls."),
    _Planned("program", "Program", ("cost", "opcodes", "call_stacks"), "No instruction of this module could be read."),
)
_LAST = "program"


def module_sections(report: Report, tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """The sections as planned, and in the last one what no other names."""
    planned = {name for one in _PLAN for name in one.tables}
    rest = tuple(table.name for table in tables if table.name not in planned)
    return tuple(
        PageSection(one.name, one.title, tables=one.tables + (rest if one.name == _LAST else ()), nothing=one.nothing)
        for one in _PLAN
    )
