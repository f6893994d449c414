"""HI304: constants that take memory in the program."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, size
from hlo_inspect.report.model import Finding

LARGE = 1 << 20


class LargeConstant(Rule):
    """The program holds a constant of more than 1 MiB.

    What it finds
        Constants of the program of more than 1 MiB, with their scope.

    Why it matters
        A constant takes device memory while the program is loaded, in full on every device. The array that it was made from
        takes memory too. Compilation is slow, and the compiled program is large. Another value needs another compilation.

    How to fix it
        Pass the array as an argument instead of closing over it. If XLA folded an expression into it, build the array on the
        device. Use `iota` for that, or put `jax.lax.optimization_barrier` in front.

    Example
        HloModule step

        ENTRY main {
          x = f32[512,1024]{1,0} parameter(0)
          table = f32[512,1024]{1,0} constant({...})
          ROOT y = f32[512,1024]{1,0} add(x, table)
        }
    """

    code = "HI304"

    def check(self, context: Context) -> Iterator[Finding]:
        for array in context.largest_arrays.constants():
            padded = array.shape.padded_bytes or 0
            if padded > LARGE:
                scope = f", of {array.labels.op_name}" if array.labels.op_name else ""
                message = f"constant {array.shape} takes {size(padded)} on every device{scope}"
                yield self.finding(context, message, array.line, array.name, padded)
