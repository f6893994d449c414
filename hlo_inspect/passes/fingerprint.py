"""Two hashes of a module: of its program and of its schedule."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

_NAMES = ("fingerprint.program", "fingerprint.schedule")

NOT_SCHEDULED = "the module is not scheduled"


class Fingerprint(Pass):
    """Print two hashes of each module: of its program, and of its schedule.

    Two texts of one program have the same first hash. It ignores names of modules, computations, instructions and channels,
    metadata, the order of independent lines, and the schedule. The second hash covers the order of instructions too. It is
    absent if the module is not scheduled. Both are unknown for serialized HLO and StableHLO, which lack parts of a program.

    Every machine prints the same hashes. They hash the text that `normalize` prints. The changelog says when a version of
    hlo-inspect spells that text differently, which changes all hashes.
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
                f"{name}: {origin} lacks the numbers of partitions and replicas, which are part of the program"
                for name in _NAMES
            ]
            return Section(dict.fromkeys(_NAMES), [Table("fingerprint", "Fingerprint", columns, ())], notes=notes)
        canonical = context.canonical
        facts: dict[str, Value] = dict(zip(_NAMES, (canonical.program, canonical.schedule), strict=True))
        row = (context.module.name, canonical.program, canonical.schedule or "")
        return Section(facts, [Table("fingerprint", "Fingerprint", columns, (row,))])
