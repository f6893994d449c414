"""HI302: files about memory beside the text that say something else than the text."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.base import Rule, size
from hlo_inspect.report.model import Finding


class DifferingMemoryFiles(Rule):
    """XLA's files about memory say something else.

    What it finds
        Files beside the text in a dump directory (`-buffer-assignment.txt`, `-live-range.txt`) whose arguments, outputs,
        aliases or constants are not those that the text gives, or whose temporaries or peak differ by more than 1 %; and
        files that name other instructions than the text. The first are used in place of what was worked out, the others
        are not used.

    Why it matters
        Either the files are of another module or another run, so that one of the two misleads, or the memory of this
        program was worked out wrong: please report the dump then.

    How to fix it
        Dump into an empty directory.

    Example
        A directory with `m.txt` and a `m-buffer-assignment.txt` of another program.
    """

    code = "HI302"
    name = "differing-memory-files"
    severity = "warning"

    def check(self, context: Context) -> Iterator[Finding]:
        sidecars = context.sidecars
        line = context.module.first_line
        if sidecars.refused:
            names = ", ".join(sidecars.found)
            yield self.finding(context, f"{names}: not used, since {sidecars.refused}", line)
        for figure in context.stated_figures:
            if figure.differs and figure.computed is not None:
                what = figure.name.removesuffix("_bytes")
                message = (
                    f"{sidecars.found[0]} states {figure.stated:,} bytes of {what}; computed from the text: {figure.computed:,}"
                )
                at_stake = abs(figure.stated - figure.computed)
                yield self.finding(context, f"{message} (difference {size(at_stake)})", line, what, at_stake)
