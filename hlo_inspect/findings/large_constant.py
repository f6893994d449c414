"""HI304: constants that take memory in the program."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.base import Rule, size
from hlo_inspect.report.model import Finding

LARGE = 1 << 20


class LargeConstant(Rule):
    """Constants of more than 1 MiB.

    What it finds
        Arrays of more than 1 MiB that are constants of the program, with the scope that they come from.

    Why it matters
        A constant takes device memory for as long as the program is loaded, on every device whole, beside the array that
        it was made from. It makes compilation slow and the compiled program large, and another value compiles it again.

    How to fix it
        Hand the array in as an argument instead of closing over it. Where XLA folded it, build it on the device: from
        `iota`, or behind `jax.lax.optimization_barrier`.

    Example
        HloModule step

        ENTRY main {
          x = f32[512,1024]{1,0} parameter(0)
          table = f32[512,1024]{1,0} constant({...})
          ROOT y = f32[512,1024]{1,0} add(x, table)
        }
    """

    code = "HI304"
    name = "large-constant"
    severity = "warning"

    def check(self, context: Context) -> Iterator[Finding]:
        for array in context.largest_arrays.constants():
            padded = array.shape.padded_bytes or 0
            if padded > LARGE:
                scope = f", of {array.labels.op_name}" if array.labels.op_name else ""
                message = f"constant {array.shape} takes {size(padded)} on every device{scope}"
                yield self.finding(context, message, array.line, array.name, padded)
