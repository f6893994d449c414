"""What was fused: kinds, roots, content, the largest by bytes moved; and the custom calls."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.fusions import CUSTOM_CALL, OPCODES
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes import custom_call_tables
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.fusion_tables import fusion_tables
from hlo_inspect.passes.origins import stacks_of
from hlo_inspect.report.model import FactSpec, Section, Table, Value

KINDS = frozenset({"kLoop", "kInput", "kOutput", "kCustom"})


class Fusions(Pass):
    """Fusions by kind, root and content, the largest by bytes moved; custom calls by target.

    Counts are over all computations. The root is that of the fused computation; a fusion is multi-output when its root is a
    tuple. FLOPs and bytes are those of all runs in a step by XLA's cost model: of what is sliced or updated in
    place only that part counts. A fusion inside of another moves nothing by itself. Operand and result bytes are those of one
    run, as the shapes say.
    """

    name = "fusions"
    wants = Wants(opcodes=OPCODES, checked=True)
    table_wants = KERNEL_WANTS | Wants(operands=CUSTOM_CALL)
    specs = (
        FactSpec("fusions.count", "count", "fusion instructions over all computations"),
        FactSpec("fusions.kind.<kind>", "count", "fusions of a kind", KINDS),
        FactSpec("fusions.multi_output_count", "count", "fusions whose root is a tuple"),
        FactSpec("custom_calls.count", "count", "custom-call instructions over all computations"),
        FactSpec("custom_calls.target.<target>", "count", "custom calls of a target"),
    )

    def run(self, context: Context) -> Section:
        found, targets = context.fusion_kinds, context.custom_call_targets
        kinds = dict.fromkeys(KINDS, 0) | {one.kind: one.members for one in found}
        facts: dict[str, Value] = {"fusions.count": sum(one.members for one in found)}
        facts |= {f"fusions.kind.{kind}": count for kind, count in sorted(kinds.items())}
        facts["fusions.multi_output_count"] = sum(one.multi_output for one in found)
        facts["custom_calls.count"] = targets.total()
        facts |= {f"custom_calls.target.{target}": count for target, count in sorted(targets.items())}
        return Section(facts, _tables(context))


def _tables(context: Context) -> Iterator[Table]:
    yield from fusion_tables(context)
    yield custom_call_tables.by_target(context, with_cost=True)
    yield from stacks_of((fusion.view.metadata(fusion.row) for fusion in context.fusions), context.module.frames)
