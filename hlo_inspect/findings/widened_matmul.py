"""HI401: products whose operands the program widens."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.wide_types import find_widened_products
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value


class WidenedMatmul(Rule):
    """A product multiplies operands that are widened before.

    What it finds
        Products and convolutions of which the program converts both operands from a narrower floating-point type
        (`convert_element_type`). Conversions of a compiler are left out. The stake is the FLOPs of one step.

    Why it matters
        Matrix units multiply bf16 several times as fast as f32, and add up in f32 anyway. The wide operands also take twice the
        bytes.

    How to fix it
        Multiply in the narrow type and ask for a wide result: `jnp.dot(x, w, preferred_element_type=jnp.float32)`. Look for an
        `astype(jnp.float32)`, or for an f32 array that promotes its neighbors.

    Example
        HloModule step

        ENTRY main {
          x = bf16[1024,1024]{1,0} parameter(0)
          w = bf16[1024,1024]{1,0} parameter(1)
          a = f32[1024,1024]{1,0} convert(x), metadata={op_name="jit(f)/convert_element_type"}
          b = f32[1024,1024]{1,0} convert(w), metadata={op_name="jit(f)/convert_element_type"}
          ROOT d = f32[1024,1024]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        }
    """

    code = "HI401"
    resource = "flops"
    threshold = 10**9

    def check(self, context: Context) -> Iterator[Finding]:
        if context.module.origin is not None:  # quoted lines have no graph
            return
        least = self.least(context)
        for wide in find_widened_products(context.views, context.call_graph):
            if wide.flops >= least:
                flops = format_value(wide.flops, "flops")
                message = f"multiplies {wide.narrow} operands that are widened: {flops} a step; use preferred_element_type"
                yield self.finding_at(context, wide.place, message, wide.flops)
