"""HI402: work in double precision."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.wide_types import find_double_precision
from hlo_inspect.findings.rule import Rule
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.report.model import Finding, Severity
from hlo_inspect.report.units import format_value


class DoublePrecision(Rule):
    """Instructions compute in double precision.

    What it finds
        Instructions with results in f64 or c128. The stake is their FLOPs of one step. The finding is an info if the program
        has f64 inputs and no float input of another type: it computes in f64 on purpose.

    Why it matters
        Accelerators compute f64 many times slower than f32, or emulate it. One f64 value makes all results of it f64.

    How to fix it
        Find the first f64 value: often a NumPy scalar or `np.random` array with `jax_enable_x64`, or a Python function that
        returns `np.float64`. Convert it to f32, or unset `jax_enable_x64`.

    Example
        HloModule step

        ENTRY main {
          x = f32[4096,1024]{1,0} parameter(0)
          y = f64[4096,1024]{1,0} convert(x)
          ROOT z = f64[4096,1024]{1,0} multiply(y, y)
        }
    """

    code = "HI402"
    resource = "flops"
    threshold = 1_000_000

    def check(self, context: Context) -> Iterator[Finding]:
        if context.module.origin is not None or "f64" not in _types(context):
            return
        work = sorted(find_double_precision(context.views, context.call_graph), key=lambda wide: -wide.flops)
        total = sum(wide.flops for wide in work)
        if total < max(self.least(context), 1):
            return
        inputs = {leaf.shape.dtype for leaf in context.interface.parameters if leaf.shape.dtype.startswith(("f", "bf"))}
        severity: Severity = "info" if inputs == {"f64"} else "warning"
        message = f"{len(work)} instructions compute {format_value(total, 'flops')} a step in f64, this one the most"
        yield self.finding_at(context, work[0].place, message, total, severity)


def _types(context: Context) -> set[str]:
    """Return the types of all results that are arrays."""
    columns = {computation.rows.column for computation in context.views.computations.values()}  # many share one
    shapes = (shape for column in columns for shape in column.shapes)
    return {shape.dtype for shape in shapes if isinstance(shape, ArrayShape)}
