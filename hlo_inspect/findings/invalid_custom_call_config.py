"""HI503: custom calls whose configuration cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class InvalidCustomCallConfig(Rule):
    """A known custom call has an unusable configuration.

    What it finds
        Custom calls whose target has a known cost, but whose `backend_config` or operands lack a value that the cost needs.
        Examples are cuBLAS matrix multiplications, and Triton and Mosaic kernels with an estimate.

    Why it matters
        No figure includes the FLOPs and bytes of these calls. Figures of the module are too low or unknown.

    How to fix it
        Look at the `backend_config` in the line. Very old and very new versions of XLA may write it differently: please
        report the line.

    Example
        HloModule step

        ENTRY main {
          a = f32[8,8]{1,0} parameter(0)
          ROOT c = f32[8,8]{1,0} custom-call(a, a),
            custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{}}
        }
    """

    code = "HI503"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        # quoted lines often lack the configuration
        for call in context.cost.calls if not context.module.quoted_lines else ():
            if call.cost.fault:
                name = call.instruction.name
                yield self.finding(context, f"custom call {name}: {call.cost.fault}", call.line, name, call.cost.bytes or 0)
