"""What a step costs by scope within scope, and by line within file; of a text that is no schedule how long its kernels take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import Figure
from hlo_inspect.passes.time_tables import TimePart, step_table, time_parts
from hlo_inspect.passes.tree_tables import Path, TreeAmount, TreeMeasure, tree_table
from hlo_inspect.report.model import Table

_COST = (TreeMeasure("flops", "flops", bounded=True), TreeMeasure("bytes_accessed", "bytes", bounded=True))
_TIME = (TreeMeasure("bound_s", "seconds", bounded=True), TreeMeasure("estimate_s", "seconds", bounded=True))
_FIGURES: tuple[Figure, ...] = ("flops", "bytes")


def cost_trees(context: Context) -> Iterator[Table]:
    """FLOPs and bytes of one step, and with a profile its time, at least and by the model. Without a schedule it is
    that of the kernels, one after the other, which have a table too.
    """
    if context.module.entry is None:
        return
    timelines = context.on_machine.timelines
    parts = time_parts(context) if timelines is not None else []
    if timelines is not None and not timelines.is_scheduled:
        parts = [part for part in parts if part.collective is None]
        title = "Kernels one after the other, at least and by the model"
        yield replace(step_table(parts), name="kernel_seconds", title=title, on_page=False)
    measures = (*_COST, *(_TIME if parts else ()))
    scopes = _leaves(context, parts, "scope", _scopes)
    yield tree_table("scope_tree", "One step by scope within scope", "scope", measures, scopes, join_chains=True)
    lines = _leaves(context, parts, "source", _file_and_line)
    yield tree_table("source_tree", "One step by line within file", "source", measures, lines, separator="")


def _leaves(
    context: Context, parts: Sequence[TimePart], label: Literal["scope", "source"], path: Callable[[str], Path]
) -> Iterator[tuple[Path, Sequence[TreeAmount]]]:
    for text, tally in context.cost.by(label).by_label():
        cost = [TreeAmount(tally.least(figure), tally.total(figure) is not None) for figure in _FIGURES]
        yield path(text), cost
    for part in parts:
        times = (TreeAmount(time.least, time.exact is not None) for time in (part.bound, part.estimate))
        yield path(getattr(part, label)), (TreeAmount(0), TreeAmount(0), *times)


def _scopes(label: str) -> Path:
    return tuple(label.split("/"))


def _file_and_line(label: str) -> Path:
    file, colon, line = label.rpartition(":")
    return (file, f":{line}") if colon else (label,)
