"""HI103: aliases and donors of the header that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class DanglingAlias(Rule):
    """Aliases or donors that the entry does not have.

    What it finds
        Entries of `input_output_alias` and `buffer_donor` with an index that does not exist. The index is a parameter number,
        a parameter index or an output index of the entry computation.

    Why it matters
        XLA refuses such a module. If the text was edited or joined from two dumps, its facts on donation describe another
        program.

    How to fix it
        Dump the module again, or correct the indices in the header.

    Example
        HloModule step, input_output_alias={ {}: (3, {}, may-alias) }

        ENTRY main {
          w = f32[8]{0} parameter(0)
          ROOT new = f32[8]{0} negate(w)
        }
    """

    code = "HI103"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in context.interface.faults:
            yield self.finding(context, fault.message, context.module.first_line, stake=fault.bytes)
