"""HI102: parameters that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, entry_line, numbered
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.report.model import Finding


class UnusedParameter(Rule):
    """Parameters that are neither read nor donated.

    What it finds
        Arrays of the entry's parameters that are an operand of no instruction of the entry. Donated arrays are left out,
        because their buffer has a use. Arrays without elements are left out too.

    Why it matters
        The caller transfers the array, and it takes device memory for the whole step. No result depends on it.

    How to fix it
        Remove the argument from the compiled function. `jax.jit` removes unused arguments by default (`keep_unused=False`).
        They stay in exported functions and in functions lowered with `keep_unused=True`.

    Example
        HloModule step

        ENTRY main {
          x = f32[8]{0} parameter(0)
          mask = pred[1024]{0} parameter(1)
          ROOT y = f32[8]{0} negate(x)
        }
    """

    code = "HI102"
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        unused = [p for p in context.interface.parameters if p.unused and not p.donated and p.shape.bytes != 0]
        if unused:
            size = total(p.shape.bytes for p in unused) or 0
            message = f"no instruction reads {numbered(unused)}"
            yield self.finding(context, message, entry_line(context), unused[0].name, size)
