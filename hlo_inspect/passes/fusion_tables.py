"""Tables of fusions and custom calls that several passes show."""

from __future__ import annotations

from hlo_inspect.analysis.fusions import CustomCall, Fusion
from hlo_inspect.hlo.shapes import total
from hlo_inspect.report.model import Column, Table


def instructions_of(fusion: Fusion) -> int | None:
    """The instructions that are fused, `None` where the text does not hold them."""
    return len(fusion.callee.opcodes) if fusion.callee else None


def by_kind(fusions: list[Fusion]) -> Table:
    """One row a kind."""
    columns = (
        Column("kind", get=lambda group: group[0].kind or "(none printed)"),
        Column("count", "count", summed=True, get=len),
        Column("multi_output", "count", summed=True, get=lambda group: sum(f.is_multi_output for f in group)),
        Column("instructions", "count", summed=True, detail=2, get=lambda group: total(map(instructions_of, group))),
        Column("operand_bytes", "bytes", summed=True, detail=3, get=lambda group: total(f.operand_bytes for f in group)),
        Column("result_bytes", "bytes", summed=True, detail=1, get=lambda group: total(f.result_bytes for f in group)),
    )
    kinds: dict[str, list[Fusion]] = {}
    for fusion in fusions:
        kinds.setdefault(fusion.kind, []).append(fusion)
    return Table.of("fusions_by_kind", "Fusions by kind", columns, sorted(kinds.values(), key=len, reverse=True))


def by_target(calls: list[CustomCall]) -> Table:
    """One row a target."""
    columns = (
        Column("target", get=lambda group: group[0].target),
        Column("count", "count", summed=True, get=len),
        Column("operand_bytes", "bytes", summed=True, detail=1, get=lambda group: total(c.operand_bytes for c in group)),
        Column("result_bytes", "bytes", summed=True, detail=1, get=lambda group: total(c.result_bytes for c in group)),
    )
    targets: dict[str, list[CustomCall]] = {}
    for call in calls:
        targets.setdefault(call.target, []).append(call)
    title = "Custom calls by target"
    return Table.of("custom_calls", title, columns, sorted(targets.values(), key=len, reverse=True))
