"""Three hashes of a module: of its program, its schedule, and all that a compilation cache may tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.canonical.cache_parts import CachePart, cache_identity, cache_parts
from hlo_inspect.graph.canonical.elided_constants import hash_with_constants
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table, Value

_NAMES = ("fingerprint.program", "fingerprint.schedule")
_MEANINGS = (
    "instructions, operands, constants",
    "the program, and the order of instructions",
    "both, and names, metadata, weak types, flags, options",
)
IDENTITIES, CACHE_PARTS = "identities", "cache_parts"
"""The tables of all hashes, and of the parts of the third. That is no fact: facts of a module do not depend on names."""

NOT_SCHEDULED = "the module is not scheduled"


class Fingerprint(Pass):
    """Print three hashes of each module: of its program, its schedule, and what a compilation cache tells apart.

    Two texts of one program have the same first hash. It ignores names of modules, computations, instructions and channels,
    metadata, the order of independent lines, and the schedule. The second hash covers the order of instructions too. It is
    absent if the module is not scheduled. The third hash also covers names and metadata, and in a dump directory weak types,
    flags and options. If two modules differ in it alone, one program was compiled twice, and a cache may miss. All are unknown
    for serialized HLO and StableHLO, which lack parts of a program.

    Constants that the text elides as {...} count if module.mlir stands beside it. Every machine prints the same hashes. The
    changelog says when a version of hlo-inspect spells the text that `normalize` prints differently, which changes all hashes.
    """

    name = "fingerprint"
    wants = Wants(graph=True)
    specs = (
        FactSpec(_NAMES[0], "text", "hash of the program, 32 hexadecimal digits"),
        FactSpec(_NAMES[1], "text", "hash of the program and its schedule", absent=NOT_SCHEDULED),
    )

    def run(self, context: Context) -> Section:
        if context.module.quoted_lines:  # a partial module: `partial_report` adds the note
            return Section(dict.fromkeys(_NAMES), list(_tables((), ())))
        origin = context.module.origin
        if origin is not None:
            notes = [
                f"{name}: {origin} lacks the numbers of partitions and replicas, which are part of the program"
                for name in _NAMES
            ]
            return Section(dict.fromkeys(_NAMES), list(_tables((), ())), notes=notes)
        program, schedule = _hashes(context)
        parts = cache_parts(context.module, context.views, (program, schedule), context.settings, context.stablehlo)
        facts: dict[str, Value] = dict(zip(_NAMES, (program, schedule), strict=True))
        row = (context.module.name, program, schedule or "")
        hashes = (program, schedule, cache_identity(parts))
        return Section(facts, list(_tables([row], parts, hashes)), notes=list(_notes(context, parts)))


def _hashes(context: Context) -> tuple[str, str | None]:
    """Return the hashes of program and schedule, with the values of elided constants if they are known."""
    canonical, constants = context.canonical, context.elided_constants or ()
    schedule = canonical.schedule
    return (
        hash_with_constants(canonical.program, constants),
        hash_with_constants(schedule, constants) if schedule is not None else None,
    )


def _tables(
    rows: Sequence[tuple[Value, ...]], parts: Sequence[CachePart], hashes: Sequence[str | None] = ()
) -> Iterator[Table]:
    columns = (Column("module"), Column("program"), Column("schedule"))
    yield Table("fingerprint", "Fingerprint", columns, tuple(rows), page_as=IDENTITIES)
    named = (Column("identity"), Column("hash", width=32), Column("covers", width=54))
    identities = zip(("program", "schedule", "cache"), (hash_ or "" for hash_ in hashes), _MEANINGS, strict=False)
    yield Table(IDENTITIES, "Fingerprints", named, tuple(identities))
    of_parts = (Column("part", get=attrgetter("name")), Column("digest", width=32, get=attrgetter("digest")))
    yield Table.of(CACHE_PARTS, "Parts of the cache's hash", of_parts, parts, on_page=False)


def _notes(context: Context, parts: Sequence[CachePart]) -> Iterator[str]:
    if context.elided_constants is None:
        text = "values of constants that the text elides as {...} are unknown; programs that differ in them alone share it"
        yield f"fingerprint.program: {text}"
    lacking = [part.name for part in parts if part.digest is None]
    if lacking and context.settings is not None:
        yield f"the hash for caches lacks {', '.join(lacking)}: no file beside the module states them"
