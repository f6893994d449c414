"""Two hashes of a module: of its program and of its schedule."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

_NAMES = ("fingerprint.program", "fingerprint.schedule")

NOT_SCHEDULED = "the module is not scheduled"


class Fingerprint(Pass):
    """Two hashes of each module: of its program, and of its schedule.

    Two texts of one program have the same first hash: it does not depend on the names of module, computations, instructions and
    channels, on metadata, on the order of independent lines, nor on whether the text is scheduled. The second one is that of
    the program with the order of its instructions; a module that is not scheduled has none, and of serialized HLO and StableHLO
    neither is known, since these do not hold all that belongs to a program. Both are the same on every machine.
    `normalize` prints the text that they are made of; a version of hlo-inspect that spells that otherwise gives other hashes,
    and its changelog says so.
    """

    name = "fingerprint"
    wants = Wants(graph=True)
    specs = (
        FactSpec(_NAMES[0], "text", "hash of the program, 32 hexadecimal digits"),
        FactSpec(_NAMES[1], "text", "hash of the program and its schedule", absent=NOT_SCHEDULED),
    )

    def run(self, context: Context) -> Section:
        columns = (Column("module"), Column("program"), Column("schedule"))
        if context.module.quoted_lines:  # a partial module: `partial_report` adds the note
            return Section(dict.fromkeys(_NAMES), [Table("fingerprint", "Fingerprint", columns, ())])
        origin = context.module.origin
        if origin is not None:
            notes = [
                f"{name}: {origin} does not hold the numbers of partitions and replicas, which belong to it" for name in _NAMES
            ]
            return Section(dict.fromkeys(_NAMES), [Table("fingerprint", "Fingerprint", columns, ())], notes=notes)
        canonical = context.canonical
        facts: dict[str, Value] = dict(zip(_NAMES, (canonical.program, canonical.schedule), strict=True))
        row = (context.module.name, canonical.program, canonical.schedule or "")
        return Section(facts, [Table("fingerprint", "Fingerprint", columns, (row,))])
