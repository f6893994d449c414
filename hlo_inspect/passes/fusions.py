"""What was fused: kinds, roots, content, the largest by bytes moved; and what is left to custom calls."""

from __future__ import annotations

from collections import Counter

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.fusions import OPCODES, CustomCall, Fusion, fused_opcodes
from hlo_inspect.hlo.module import Wants
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Row, Table, Value

KINDS = frozenset({"kLoop", "kInput", "kOutput", "kCustom"})


class Fusions(Pass):
    """Every fusion over all computations, and every custom call.

    The root is that of the fused computation; a fusion is multi-output when that is a tuple. Bytes moved are operands and
    results as their shapes say, without regard to what the fusion reads of them.
    """

    name = "fusions"
    wants = Wants(opcodes=OPCODES, operands=OPCODES, checked=True)
    specs = (
        FactSpec("fusions.count", "count", "fusion instructions over all computations"),
        FactSpec("fusions.kind.<kind>", "count", "fusions of a kind", KINDS),
        FactSpec("fusions.multi_output_count", "count", "fusions whose root is a tuple"),
        FactSpec("custom_calls.count", "count", "custom-call instructions over all computations"),
        FactSpec("custom_calls.target.<target>", "count", "custom calls of a target"),
    )

    def facts(self, context: Context) -> dict[str, Value]:
        fusions, calls = context.fusions, context.custom_calls
        kinds = Counter(fusion.kind for fusion in fusions)
        targets = Counter(call.target for call in calls)
        facts: dict[str, Value] = {"fusions.count": len(fusions)}
        facts |= {f"fusions.kind.{kind}": kinds[kind] for kind in sorted(KINDS | set(kinds))}
        facts["fusions.multi_output_count"] = sum(fusion.is_multi_output for fusion in fusions)
        facts["custom_calls.count"] = len(calls)
        return facts | {f"custom_calls.target.{target}": count for target, count in sorted(targets.items())}

    def tables(self, context: Context) -> list[Table]:
        fusions = context.fusions
        return [
            _largest(fusions),
            by_kind(fusions),
            _by_root(fusions),
            _content(fusions),
            by_target(context.custom_calls),
        ]


def _moved(fusion: Fusion) -> int:
    """For the order only: an unknown size counts nothing."""
    return (fusion.operand_bytes or 0) + (fusion.result_bytes or 0)


def _largest(fusions: list[Fusion]) -> Table:
    columns = (
        Column("name"),
        Column("kind", detail=1),
        Column("root", detail=1),
        Column("instructions", "count", summed=True, detail=2),
        Column("outputs", "count", summed=True, detail=3),
        Column("operand_bytes", "bytes", summed=True),
        Column("result_bytes", "bytes", summed=True),
        Column("computation", detail=7),
        Column("op_name", detail=4),
        Column("source", detail=5),
        Column("line", "number", detail=6),
    )
    rows = tuple(_row(fusion) for fusion in sorted(fusions, key=_moved, reverse=True))
    return Table("fusions", "Fusions, by bytes moved", columns, rows)


def _row(fusion: Fusion) -> Row:
    origin = fusion.origin
    return (
        fusion.instruction.name,
        fusion.kind,
        fusion.root_opcode,
        len(fusion.callee.opcodes) if fusion.callee else None,
        fusion.outputs,
        fusion.operand_bytes,
        fusion.result_bytes,
        fusion.instruction.computation.name,
        origin.op_name,
        origin.source,
        fusion.instruction.line,
    )


def by_kind(fusions: list[Fusion]) -> Table:
    """One row a kind."""
    columns = (
        Column("kind"),
        Column("count", "count", summed=True),
        Column("multi_output", "count", summed=True),
        Column("instructions", "count", summed=True, detail=2),
        Column("operand_bytes", "bytes", summed=True, detail=3),
        Column("result_bytes", "bytes", summed=True, detail=1),
    )
    kinds: dict[str, list[Fusion]] = {}
    for fusion in fusions:
        kinds.setdefault(fusion.kind, []).append(fusion)
    rows = [
        (
            kind or "(none printed)",
            len(members),
            sum(f.is_multi_output for f in members),
            total(len(f.callee.opcodes) if f.callee else None for f in members),
            total(f.operand_bytes for f in members),
            total(f.result_bytes for f in members),
        )
        for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]
    return Table("fusions_by_kind", "Fusions by kind", columns, tuple(rows))


def _by_root(fusions: list[Fusion]) -> Table:
    columns = (Column("kind"), Column("root"), Column("count", "count", summed=True))
    counts = Counter((f.kind, f.root_opcode) for f in fusions)
    rows = tuple((kind, root, count) for (kind, root), count in counts.most_common())
    return Table("fusions_by_root", "Fusions by root", columns, rows, page_rows=12)


def _content(fusions: list[Fusion]) -> Table:
    columns = (Column("opcode"), Column("count", "count", summed=True))
    return Table("fusion_content", "Inside of fusions", columns, tuple(fused_opcodes(fusions).most_common()), page_rows=12)


def by_target(calls: list[CustomCall]) -> Table:
    """One row a target."""
    columns = (
        Column("target"),
        Column("count", "count", summed=True),
        Column("operand_bytes", "bytes", summed=True, detail=1),
        Column("result_bytes", "bytes", summed=True, detail=1),
    )
    rows = []
    for target, count in Counter(call.target for call in calls).most_common():
        of_target = [call for call in calls if call.target == target]
        operand, result = (total(c.operand_bytes for c in of_target), total(c.result_bytes for c in of_target))
        rows.append((target, count, operand, result))
    return Table("custom_calls", "Custom calls by target", columns, tuple(rows))
