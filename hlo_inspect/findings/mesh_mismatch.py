"""HI205: a mesh of the user's that does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class MeshMismatch(Rule):
    """The mesh given with `--mesh` does not fit the program.

    What it finds
        Axes of `--mesh` that cover all devices of the program, but divide them differently than its groups and shardings. A
        mesh with another number of devices is a usage error.

    Why it matters
        hlo-inspect cannot give these names to the axes. Tables show `d0`, `d1`, … or the names that the program prints.

    How to fix it
        Give the axes from major to minor, with the sizes of `mesh.shape`. `hlo-inspect collectives` prints them.

    Example
        hlo-inspect collectives dump.txt --mesh data=3,model=2      # if mesh.shape is 2x3
    """

    code = "HI205"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        if context.mesh.note:
            yield self.finding(context, context.mesh.note, context.module.first_line)
