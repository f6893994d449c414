"""Tables of costs: a row for each label, what costs most first."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import Figure, Tally
from hlo_inspect.analysis.cost.roofline import Seconds, bound
from hlo_inspect.analysis.time.kernel_times import KernelTimes
from hlo_inspect.analysis.time.step_times import bytes_time, flops_time
from hlo_inspect.passes.base import bounded
from hlo_inspect.report.model import Column, Table, Unit


class _CostRow(NamedTuple):
    """A label with its figures and times; `weight`, a lower bound where it is not known, orders the rows."""

    label: str
    tally: Tally
    compute: Seconds
    memory: Seconds
    weight: float
    weight_is_known: bool


def cost_table(name: str, title: str, label: str, tally: Tally, times: KernelTimes | None) -> Table:
    """One row a label; rows add up to the facts of one run. What takes most time comes first, without a profile what moves most
    bytes; `share` is that of the time or of the bytes, of no row where it is not known of one (`share_notes`). `bound` is
    `None` where what is not known could take longer. A page leaves out these columns where no row has them.

    A page leaves out a table that has one row, except that of opcodes.

    By opcode nothing is bound by anything: the work of a fusion is counted with the opcodes inside, its bytes with the fusion.
    """
    rows = [_row(*labelled, times) for labelled in tally.by_label()]
    whole = sum(row.weight for row in rows) if all(row.weight_is_known for row in rows) else None
    columns = [
        Column(label, get=lambda row: row.label),
        *_figure("flops", "flops", "flops"),
        *_figure("transcendentals", "count", "transcendentals", detail=3),
        *_figure("matmul_flops", "flops", "matmul_flops", detail=1),
        *_figure("bytes_accessed", "bytes", "bytes"),
        Column(
            "share",
            "share",
            detail=1 if whole is not None else _NOT_ON_PAGE,
            get=lambda row: row.weight / whole if whole else None,
        ),
    ]
    if times is not None:
        columns += [
            *bounded("compute_s", "seconds", lambda row: row.compute),
            *bounded("memory_s", "seconds", lambda row: row.memory),
        ]
        if label != "opcode":
            detail = 2 if any(map(_bound, rows)) else _NOT_ON_PAGE
            columns.append(Column("bound", detail=detail, optional=True, get=_bound))
    return Table.of(name, title, columns, sorted(rows, key=_order), on_page=label == "opcode" or len(rows) > 1)


def _row(label: str, tally: Tally, times: KernelTimes | None) -> _CostRow:
    if times is None:
        size = tally.bounds("bytes")
        return _CostRow(label, tally, _NO_TIME, _NO_TIME, size.least, size.is_exact)
    compute, memory = flops_time(tally, times), bytes_time(tally, times)
    are_known = compute.exact is not None and memory.exact is not None
    return _CostRow(label, tally, compute, memory, max(compute.least, memory.least), are_known)


_NO_TIME = Seconds(0.0)
_NOT_ON_PAGE = 9


def share_notes(tally: Tally, times: KernelTimes | None) -> list[str]:
    """Why the rows of the tables of a tally have no shares, where that is so."""
    if _row("", tally, times).weight_is_known:
        return []
    return [f"share: not known, as the {'bytes' if times is None else 'times'} are lower bounds"]


def _bound(row: _CostRow) -> str | None:
    """What takes longer: `None` where that is not known, as more of the other could."""
    longer = bound(row.compute.least, row.memory.least)
    other = row.memory if longer == "compute" else row.compute
    return longer if other.exact is not None else None


def _order(row: _CostRow) -> tuple[float | str, ...]:
    return (-row.weight, -row.tally.bounds("flops").least, -row.tally.bounds("transcendentals").least, row.label)


def _figure(name: str, unit: Unit, figure: Figure, detail: int = 0) -> tuple[Column, Column]:
    return bounded(name, unit, lambda row: row.tally.bounds(figure), detail)


def by_phase(context: Context) -> Table:
    """One row a phase of the training step."""
    cost, times = context.cost, context.on_machine.kernel_times
    return cost_table("cost_by_phase", "Cost of one step by phase", "phase", cost.by("phase"), times)
