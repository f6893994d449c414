"""HI313: a parameter that is not donated and is there twice."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.copied_parameters import find_copied
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.report.model import Finding


class CopiedParameter(Rule):
    """Parameters are live together with a copy.

    What it finds
        Copies and transposes of a parameter that is not donated, such as a frozen weight, if both are live at the peak. Arrays
        below 1 MiB or 1 % of the peak are left out. HI306 is the rule for donated parameters.

    Why it matters
        The parameter takes twice its memory, and each step writes the copy again. XLA inserts it if the parameter and its user
        have different layouts, as a `wrapped_transpose` on GPU.

    How to fix it
        Transpose the array once, before the step. Or give the argument the layout of its user:
        `jax.jit(..., in_shardings=Format(Layout(...)))`, or `Layout.AUTO`.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          w = f32[512,1024]{1,0} parameter(0)
          turned = f32[1024,512]{1,0} transpose(w), dimensions={1,0}
          ROOT r = f32[8]{0} custom-call(turned), custom_call_target="reads"
        }
    """

    code = "HI313"

    def check(self, context: Context) -> Iterator[Finding]:
        if is_small(context):
            return
        kept = {leaf.number for leaf in context.interface.parameters if leaf.donated is False}
        for number, array in find_copied(context.live_arrays, least_worth(context)):
            if number in kept:
                message = f"{array.shape}, {size(array.bytes)}, is a {array.relation} of parameter {number}; "
                yield self.finding(context, f"{message}both are live at the peak", array.line, array.name, array.bytes)
