"""The tables of kernels: one by one, and equal ones together, with what they cost in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.cost.labels import NOT_FUSED, printed
from hlo_inspect.analysis.op_names import UNKNOWN
from hlo_inspect.analysis.time.kernel_costings import Costing
from hlo_inspect.hlo.shapes import array_leaves
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.grouping import joined_name
from hlo_inspect.passes.origins import joined_sources, phase_source
from hlo_inspect.report.model import Column, Table

NO_KERNEL = "(no kernel)"
"""The row of what XLA's model counts and no kernel does: tables of pointers, barriers."""


# -- tables -----------------------------------------------------------------------------------------------------------------


def kernels_table(context: Context) -> Table:
    """One row a kernel."""
    columns = (
        Column("name", get=_name),
        Column("kind", detail=1, get=_kind),
        Column("fusion_kind", detail=9, optional=True, get=_fusion_kind),
        Column("shape", detail=9, get=_shape),
        Column("computation", detail=8, get=lambda row: _first(row, lambda kernel: kernel.instruction.computation.name)),
        *_figures(context),
        Column("op_name", detail=6, get=lambda row: _first(row, lambda kernel: kernel.labels.op_name)),
        _SOURCE,
        Column("line", "number", detail=7, get=lambda row: _first(row, lambda kernel: kernel.instruction.line)),
    )
    title = f"Kernels of one step, by {_order(context)}"
    return Table.of("kernels", title, columns, context.on_machine.costings, page_as="kernel_groups")


def kernel_groups(context: Context) -> Table:
    """The same with equal kernels in one row."""
    columns = (
        Column("name", get=_name, width=20),
        Column("kind", detail=4, get=_kind),
        Column("fusion_kind", detail=9, optional=True, get=_fusion_kind),
        Column("shape", detail=3, get=_short_shape, width=24),
        Column("sites", "count", summed=True, detail=3, get=lambda row: len(row.kernels)),
        *_figures(context),
        Column("scope", detail=6, get=lambda row: _first(row, lambda kernel: kernel.labels.scope)),
        _SOURCE,
    )
    title = f"Kernels of one step, equal ones together, by {_order(context)}"
    return Table.of("kernel_groups", title, columns, context.on_machine.costing_groups)


def _order(context: Context) -> str:
    profile = context.on_machine.profile
    return "bytes accessed" if profile is None else f"time at least on {profile.name}"


def _figures(context: Context) -> Iterator[Column]:
    has_times = context.on_machine.profile is not None
    yield from bounded("runs", "count", lambda row: row.runs, detail=1)
    yield from bounded("flops", "flops", lambda row: row.flops)
    yield from bounded("matmul_flops", "flops", lambda row: row.matmul_flops, detail=8)
    yield from bounded("bytes", "bytes", lambda row: row.size, page_name="bytes_accessed")
    yield Column("flop_per_byte", "number", detail=3, optional=True, get=lambda row: row.intensity)
    if has_times:
        yield from bounded("bound_s", "seconds", lambda row: row.time and row.time.bound)
        yield from bounded("estimate_s", "seconds", lambda row: row.time and row.time.estimate, optional=True)
        yield from bounded("compiler_s", "seconds", lambda row: row.time and row.time.compiler, 5, optional=True)
    yield Column("share", "share", optional=True, get=lambda row: row.share)
    yield Column("bound_by", detail=1 if has_times else 9, optional=True, get=lambda row: row.time and row.time.bound_by)
    yield Column("phase", detail=1, get=lambda row: _first(row, lambda kernel: kernel.labels.phase) or UNKNOWN)
    yield phase_source(lambda row: joined_sources(kernel.labels.phase_from for kernel in row.kernels))


def _name(row: Costing) -> str:
    """The name of a kernel; of several what their names have in common, else their kind."""
    if not row.kernels:
        return NO_KERNEL
    name = joined_name([kernel.instruction.name for kernel in row.kernels])
    return f"{_kind(row)} {name.removeprefix('* ')}" if name.startswith("* ") else name


def _kind(row: Costing) -> str:
    return row.kernels[0].kind if row.kernels else NO_KERNEL


def _fusion_kind(row: Costing) -> str | None:
    kind = row.kernels[0].labels.kind if row.kernels else NOT_FUSED
    return None if kind == NOT_FUSED else kind


def _shape(row: Costing) -> str | None:
    shape = row.kernels[0].instruction.shape if row.kernels else None
    return None if shape is None else str(shape)


def _short_shape(row: Costing) -> str | None:
    """The shape; of a tuple its first array and how many more there are."""
    leaves = array_leaves(row.kernels[0].instruction.shape if row.kernels else None)
    if len(leaves) < 2:
        return _shape(row)
    return f"{leaves[0][1]} + {len(leaves) - 1} more"


def _source(row: Costing) -> str:
    return printed(row.kernels[0].labels.source) if row.kernels else ""


def _first(row: Costing, get: Callable[[Kernel], str | int]) -> str | int | None:
    return get(row.kernels[0]) if row.kernels else None


_SOURCE = Column("source", detail=1, width=16, get=_source)
