"""HI306: a donated parameter that is there twice."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.copied_parameters import find_copied
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.report.model import Finding


class CopiedDonatedParameter(Rule):
    """Donated parameters are live together with a copy.

    What it finds
        Copies and transposes of a donated parameter that are live at the peak together with the parameter. Both have the same
        type and the same memory space. Arrays below 1 MiB or 1 % of the peak are left out.

    Why it matters
        Donation saves a second buffer; the copy needs a second buffer again. XLA inserts a copy if an instruction reads the
        old value after the new value is written. It also inserts a copy if the parameter and its user have different layouts.

    How to fix it
        Read the old value before the update, or return the needed part of it from the update. If the copy changes the layout,
        give the argument that layout: `jax.jit(..., in_shardings=Format(Layout(...)))`, or `Layout.AUTO`.

    Example
        HloModule step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

        ENTRY main {
          w = f32[512,1024]{1,0} parameter(0)
          old = f32[512,1024]{1,0} copy(w)
          new = f32[512,1024]{1,0} negate(w)
          r = f32[8]{0} custom-call(old, new), custom_call_target="reads"
          ROOT t = (f32[512,1024]{1,0}, f32[8]{0}) tuple(new, r)
        }
    """

    code = "HI306"

    def check(self, context: Context) -> Iterator[Finding]:
        if is_small(context):
            return
        donated = {leaf.number for leaf in context.interface.parameters if leaf.donated}
        for number, array in find_copied(context.live_arrays, least_worth(context)):
            if number in donated:
                message = f"{array.shape}, {size(array.bytes)}, is a {array.relation} of donated parameter {number}; "
                yield self.finding(context, f"{message}both are live at the peak", array.line, array.name, array.bytes)
