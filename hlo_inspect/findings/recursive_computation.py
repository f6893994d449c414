"""HI502: computations that call themselves."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class RecursiveComputation(Rule):
    """Computations that call themselves.

    What it finds
        Computations in a cycle of calls, and computations that a cycle calls.

    Why it matters
        XLA has no recursion and refuses such a module. The number of runs of these computations is unknown, so every figure
        of a step is unknown.

    How to fix it
        Dump the module again. Such text comes from an edit, or from two modules with equal names in one file.

    Example
        HloModule step

        again {
          x = f32[8]{0} parameter(0)
          ROOT y = f32[8]{0} call(x), to_apply=again
        }

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT y = f32[8]{0} call(x), to_apply=again
        }
    """

    code = "HI502"
    saves = False
    severity = "error"

    def check(self, context: Context) -> Iterator[Finding]:
        graph = context.call_graph
        for name in sorted(set(graph.calls) - set(graph.order)):
            yield self.finding(context, f"computation {name} calls itself", graph.line_of(name), name)
