"""HI209: collectives in a wider type than the program needs."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.program_conversions import ProgramConversions
from hlo_inspect.analysis.cost.wide_types import find_wide
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class WideCollective(WireRule):
    """A collective sends a wider type than the program needs.

    What it finds
        All-gathers, all-to-alls, permutes and broadcasts with a result that is converted to a narrower type right behind.
        Or the operand is converted from a narrower type right before, or before a loop. Slices and moves may stand between.
        Conversions count if the program contains them, because compilers widen types by themselves. Their name
        (`convert_element_type`) shows it. For one with another name it is the text before optimizations in the same dump
        directory, and on TPU that it widens what is sent. The stake is what the narrower type sends less.

    Why it matters
        An f32 array takes twice the bytes of a bf16 array on the links, for the same values.

    How to fix it
        Convert to the narrower type before the collective, and to the wider one behind it. With `jit`, convert the sharded
        weights before the first use, for example with `params.astype(jnp.bfloat16)` at the start of the step.

    Example
        HloModule step, replica_count=2

        ENTRY main {
          p = f32[512,1024]{1,0} parameter(0)
          g = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
          ROOT c = bf16[1024,1024]{1,0} convert(g), metadata={op_name="jit(f)/convert_element_type"}
        }
    """

    code = "HI209"

    def check(self, context: Context) -> Iterator[Finding]:
        if not context.collectives:
            return
        program = ProgramConversions(context.module)
        for wide in find_wide(context.views, context.call_graph, context.collectives, self.least(context), program):
            name = wide.conversion.view.names[wide.conversion.row]
            message = f"{name} converts what is sent; in {wide.narrow} it sends {size(wide.saved)} less a step"
            yield self.finding_on(context, wide.collective, message, wide.saved)
