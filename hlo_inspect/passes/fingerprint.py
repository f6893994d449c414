"""Two hashes of a module: of its program and of its schedule."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

NOT_SCHEDULED = "the module is not scheduled"


class Fingerprint(Pass):
    """Two hashes of each module: of its program, and of its schedule.

    Two texts of one program have the same first hash: it does not depend on the names of module, computations, instructions and
    channels, on metadata, on the order of independent lines, nor on whether the text is scheduled. The second one is that of
    the program with the order of its instructions; a module that is not scheduled has none. Both are the same on every machine.
    `normalize` prints the text that they are made of; a version of hlo-inspect that spells that otherwise gives other hashes,
    and its changelog says so.
    """

    name = "fingerprint"
    wants = Wants(graph=True)
    specs = (
        FactSpec("fingerprint.program", "text", "hash of the program, 32 hexadecimal digits"),
        FactSpec("fingerprint.schedule", "text", "hash of the program and its schedule", absent=NOT_SCHEDULED),
    )

    def run(self, context: Context) -> Section:
        columns = (Column("module"), Column("program"), Column("schedule"))
        if context.module.quoted_lines:  # a part of a module, of which `of_part` says so
            return Section({spec.name: None for spec in self.specs}, [Table("fingerprint", "Fingerprint", columns, ())])
        canonical = context.canonical
        facts: dict[str, Value] = {"fingerprint.program": canonical.program, "fingerprint.schedule": canonical.schedule}
        row = (context.module.name, canonical.program, canonical.schedule or "")
        return Section(facts, [Table("fingerprint", "Fingerprint", columns, (row,))])
