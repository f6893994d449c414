"""HI302: files about memory beside the text that say something else than the text."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, size
from hlo_inspect.report.model import Finding


class DifferingMemoryFiles(Rule):
    """XLA's memory files disagree with the module.

    What it finds
        Files beside the text in a dump directory (`-buffer-assignment.txt`, `-live-range.txt`) that disagree with it.
        Arguments, outputs, aliases or constants differ, or temporaries or the peak differ by more than 1 %. hlo-inspect then
        shows the figures of these files. It reports files that name other instructions than the text, and does not use them.

    Why it matters
        The files may belong to another module or run; then either the files or the text misleads. Otherwise hlo-inspect
        computed the memory wrongly: please report the dump.

    How to fix it
        Dump the module again into an empty directory.

    Example
        A directory with `m.txt` and a `m-buffer-assignment.txt` of another program.
    """

    code = "HI302"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        sidecars = context.sidecars
        line = context.module.first_line
        if sidecars.refused:
            names = ", ".join(sidecars.found)
            yield self.finding(context, f"{names}: not used, since {sidecars.refused}", line)
        for figure in context.memory.stated:
            if figure.differs and figure.computed is not None:
                what = figure.name.removesuffix("_bytes")
                message = (
                    f"{sidecars.found[0]} states {figure.stated:,} bytes of {what}; computed from the text: {figure.computed:,}"
                )
                at_stake = abs(figure.stated - figure.computed)
                yield self.finding(context, f"{message} (difference {size(at_stake)})", line, what, at_stake)
