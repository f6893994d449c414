"""HI206: a device mesh that is not looked for."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class MeshNotSought(Rule):
    """Too many devices to search for a device mesh.

    What it finds
        Modules whose device groups and shardings have far more device ids than the text has characters.
        `[524288,2]<=[2,524288]T(1,0)`, for example, is short and stands for a million ids.

    Why it matters
        `mesh.shape` and the axes of collectives are unknown.

    How to fix it
        Check the largest of the groups and shardings: no machine has that many devices. The text of a real program of that
        size is longer, and hlo-inspect finds its mesh.

    Example
        HloModule step

        sum {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b)
        }

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT y = f32[8]{0} all-reduce(x), replica_groups=[100000,2]<=[2,100000]T(1,0), to_apply=sum
        }
    """

    code = "HI206"
    saves = False
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        if context.mesh.given_up:
            yield self.finding(context, f"no search for a device mesh: {context.mesh.reason}", context.module.first_line)
