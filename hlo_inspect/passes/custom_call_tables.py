"""The tables of custom calls, with what they do in a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step import CallFigure, StepCall, step_by_target, total_of_step
from hlo_inspect.analysis.fusions import operand_bytes, result_bytes
from hlo_inspect.graph.calls import Bounds
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.custom_call_markers import TRANSFERS
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.grouping import group_rows
from hlo_inspect.report.model import Column, Table

_Group = Sequence[StepCall]


def _figure(figure: CallFigure) -> Callable[[_Group], Bounds]:
    return lambda group: total_of_step(group, figure)


def _known_by(group: _Group) -> str | None:
    """All ways in which calls of one target are known, `None` where none is."""
    return ", ".join(dict.fromkeys(one.cost.known_by for one in group if one.cost.known_by)) or None


_COLUMNS = (
    Column("target", get=lambda group: group[0].target),
    Column("count", "count", summed=True, get=len),
    *bounded("runs", "count", _figure("runs"), 1),
    *bounded("flops", "flops", _figure("flops")),
    *bounded("least_flops", "flops", _figure("least_flops"), 3),
    *bounded("matmul_flops", "flops", _figure("matmul_flops"), 2),
    *bounded("transcendentals", "count", _figure("transcendentals"), 4),
    *bounded("bytes", "bytes", _figure("bytes"), page_name="bytes_accessed"),
    Column("known_by", detail=1, optional=True, get=_known_by),
    Column("line", "number", detail=5, get=lambda group: group[0].line),
)
_AS_PRINTED = (
    Column("operand_bytes", "bytes", summed=True, detail=9, get=lambda group: _printed(group, operand_bytes)),
    Column("result_bytes", "bytes", summed=True, detail=9, get=lambda group: _printed(group, result_bytes)),
)


def _printed(group: _Group, size: Callable[[Instruction], int | None]) -> int | None:
    """The bytes of arrays as the calls print them, each call once."""
    return total(size(one.instruction) for one in group)


def custom_call_tables(found: Sequence[StepCall]) -> Iterator[Table]:
    """One row a target, what is moved to and from the host, and what is not known."""
    yield Table.of("custom_calls", "Custom calls of one step by target", _COLUMNS, step_by_target(found))
    transfers = [call for call in found if call.target in TRANSFERS]
    yield from (table for table in (_transfers(transfers), _unknown_calls(found)) if table.rows)


def by_target(context: Context, *, with_cost: bool) -> Table:
    """One row a target: with what its calls do in one step, or counted as they are printed."""
    if with_cost:
        title = "Custom calls of one step by target"
        return Table.of("custom_calls_by_target", title, (*_COLUMNS, *_AS_PRINTED), step_by_target(context.cost.calls))
    columns, counts = (Column("target"), Column("count", "count", summed=True)), context.custom_call_targets.most_common()
    return Table("custom_calls_by_target", "Custom calls by target, each counted once", columns, tuple(counts))


def _transfers(found: Iterable[StepCall]) -> Table:
    """What is moved between host and device memory, by target."""
    columns = (
        Column("target", get=lambda group: group[0].target),
        Column("count", "count", summed=True, get=len),
        *bounded("runs", "count", _figure("runs")),
        *bounded("bytes", "bytes", _moved),
    )
    return Table.of("host_transfers", "Moved between host and device memory in one step", columns, step_by_target(found))


def _moved(group: _Group) -> Bounds:
    total = Bounds.exactly(0)
    for one in group:
        size = result_bytes(one.instruction)
        amount = Bounds(0, None, "a shape is not known") if size is None else Bounds.exactly(size)
        total = total.plus(amount.times(one.runs))
    return total


def _unknown_calls(found: Iterable[StepCall]) -> Table:
    """One row a target and kernel, with the line of its first call."""
    unknown = [one for one in found if one.is_unknown]
    kernels = group_rows(unknown, lambda one: (one.target, one.kernel))
    columns = (
        Column("target", get=lambda group: group[0].target),
        Column("kernel", get=lambda group: group[0].kernel),
        Column("count", "count", summed=True, get=len),
        *bounded("runs", "count", _figure("runs"), 1),
        *bounded("bytes", "bytes", _figure("bytes"), page_name="bytes_accessed"),
        Column("line", "number", get=lambda group: group[0].line),
    )
    largest_first = sorted(kernels, key=lambda group: -total_of_step(group, "bytes").least)
    return Table.of("unknown_custom_calls", "Custom calls whose work is not known", columns, largest_first)
