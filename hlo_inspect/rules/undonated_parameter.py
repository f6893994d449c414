"""HI101: parameters that could be donated."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.parameters import saved_by_donating
from hlo_inspect.report.model import Finding
from hlo_inspect.rules.base import Rule, entry_line, numbered

WORTH_DONATING = 1 << 10  # bytes; scalars and counters are not worth a finding


class UndonatedParameter(Rule):
    """Parameters that could be donated and are not.

    What it finds
        Arrays of the entry's parameters that are in neither `input_output_alias` nor `buffer_donor`, while an
        output of the same shape, type, sharding and layout takes no parameter's buffer. Arrays below 1 KiB are left
        out. The bytes at stake are those that are saved when every such output takes a parameter's buffer.

    Why it matters
        XLA allocates a second buffer for the output, so that the old and the new value are in device memory at
        once. For the weights and the optimizer's state of a training step that doubles their memory.

    How to fix it
        In JAX name the arguments that the caller does not use again: `jax.jit(step, donate_argnums=(0,))`. The
        column `not_donated_because` of `hlo-inspect params` gives the reason for each parameter that is not
        donated.

    Example
        HloModule step

        ENTRY main {
          w = f32[1024]{0} parameter(0)
          ROOT new = f32[1024]{0} negate(w)
        }
    """

    code = "HI101"
    name = "undonated-parameter"
    severity = "warning"
    passes = ("params",)

    def check(self, context: Context) -> Iterator[Finding]:
        interface = context.interface
        wasted = [p for p in interface.parameters if p.could_be_donated and (p.shape.bytes or 0) >= WORTH_DONATING]
        if not wasted:
            return
        size = saved_by_donating(wasted, interface.outputs)
        message = (
            f"{numbered(wasted)} could be donated: outputs of the same shape, type and sharding take no parameter's buffer; "
            f"that would save up to {size:,} bytes"
        )
        yield self.finding(context, message, entry_line(context), wasted[0].name, size)
