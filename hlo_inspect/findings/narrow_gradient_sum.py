"""HI403: gradients that are summed over devices in a narrow type and widened afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import CollectiveResult, results_of
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.wide_types import is_narrower
from hlo_inspect.findings.rule import WORTH_SENDING, Rule
from hlo_inspect.graph.readers import readers_behind
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.values.op_names import BACKWARD, OPTIMIZER
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape
from hlo_inspect.report.model import Finding

_SLICES = {"slice", "dynamic-slice"}
_NARROW_BITS = 16


class NarrowGradientSum(Rule):
    """Gradients are summed in a narrow type and then widened.

    What it finds
        All-reduces and reduce-scatters of the backward pass or of the optimizer that add 16-bit numbers or smaller ones. All
        readers convert the sum to a wider type. The results have 1 MiB or more in one step.

    Why it matters
        Each addition rounds to 8 bits (bf16) or 11 bits (f16). The wider type behind the sum does not bring back what the sum
        over many devices has lost.

    How to fix it
        Convert the gradients before the reduction, or keep the loss function's parameters in f32 and convert them inside. It
        doubles the bytes of these collectives.

    Example
        HloModule step, replica_count=2

        add {
          a = bf16[] parameter(0)
          b = bf16[] parameter(1)
          ROOT s = bf16[] add(a, b)
        }

        ENTRY main {
          g = bf16[1048576]{0} parameter(0)
          r = bf16[1048576]{0} all-reduce(g), replica_groups={{0,1}}, to_apply=add,
            metadata={op_name="jit(f)/transpose(jvp())/dot_general"}
          ROOT c = f32[1048576]{0} convert(r)
        }
    """

    code = "HI403"
    severity = "info"
    saves = False
    threshold = WORTH_SENDING

    def check(self, context: Context) -> Iterator[Finding]:
        pairs = zip(context.collectives, context.collective_phases, strict=True)
        sums = [collective for collective, phase in pairs if collective.reduction == "add" and phase in {BACKWARD, OPTIMIZER}]
        narrowed: dict[tuple[str, str], list[CollectiveResult]] = {}
        for result in results_of(context.views, context.call_graph, sums):
            wide_type = _widened_to(context.views, result) if BITS.get(result.shape.dtype, 0) <= _NARROW_BITS else ""
            if is_narrower(wide_type, result.shape.dtype):
                narrowed.setdefault((result.shape.dtype, wide_type), []).append(result)
        for (narrow, wide_type), results in narrowed.items():
            size_of_all = sum(result.bytes * result.runs for result in results)
            if size_of_all >= self.least(context):
                first = results[0].collective
                what = f"{len(results)} gradients are" if len(results) > 1 else "a gradient is"
                message = f"{what} summed over {first.group_size} devices in {narrow} and converted to {wide_type} afterwards"
                yield self.finding_on(context, first, message, None)


def _widened_to(views: Views, result: CollectiveResult) -> str:
    """Return the type to which all readers of a result convert it; empty if one reads it in another way."""
    types: set[str] = set()
    for reader in readers_behind(views, result.place, result.element, lambda row: row.opcode in _SLICES):
        shape = reader.shape if reader is not None and reader.opcode == "convert" else None
        if not isinstance(shape, ArrayShape) or types - {shape.dtype}:
            return ""
        types.add(shape.dtype)
    return types.pop() if types else ""
