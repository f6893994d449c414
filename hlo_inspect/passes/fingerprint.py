"""Three hashes of a module: of its program, its schedule, and all that a compilation cache may tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.canonical.cache_parts import CachePart, cache_identity, cache_parts
from hlo_inspect.graph.canonical.elided_constants import hash_with_constants
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import FactSheet, Pass
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table, Value
from hlo_inspect.report.table_spec import TableSpec

_MEANINGS = (
    "instructions, operands, constants",
    "the program, and the order of instructions",
    "both, and names, metadata, weak types, flags, options",
)
NOT_SCHEDULED = "the module is not scheduled"


_PROGRAM, _SCHEDULE = "fingerprint.program", "fingerprint.schedule"
_FACTS = (
    FactSpec(_PROGRAM, "text", "hash of the program, 32 hexadecimal digits"),
    FactSpec(_SCHEDULE, "text", "hash of the program and its schedule", absent=NOT_SCHEDULED),
)


def _hashes(context: Context) -> tuple[str, str | None]:
    """Return the hashes of program and schedule, with the values of elided constants if they are known."""
    canonical, constants = context.canonical, context.elided_constants or ()
    schedule = canonical.schedule
    return (
        hash_with_constants(canonical.program, constants),
        hash_with_constants(schedule, constants) if schedule is not None else None,
    )


_FINGERPRINT = TableSpec("fingerprint", "Fingerprint", page_as="identities").with_columns(
    Column("module", meaning="name of the module", get=itemgetter(0)),
    Column("program", meaning="hash of the program", get=itemgetter(1)),
    Column("schedule", meaning="hash of the program and its schedule; empty before scheduling", get=itemgetter(2)),
)
_IDENTITIES = TableSpec("identities", "Fingerprints").with_columns(
    Column("identity", meaning="hash by name", get=itemgetter(0)),
    Column("hash", width=32, meaning="32 hexadecimal digits", get=itemgetter(1)),
    Column("covers", width=54, meaning="content that the hash covers", get=itemgetter(2)),
)
CACHE_PARTS = TableSpec("cache_parts", "Parts of the cache's hash", on_page=False).with_columns(
    Column("part", get=attrgetter("name")), Column("digest", width=32)
)
"""The parts of the third hash. That is no fact: facts of a module do not depend on names."""


def _tables(
    rows: Sequence[tuple[Value, ...]] = (), parts: Sequence[CachePart] = (), hashes: Sequence[str | None] = ()
) -> list[Table]:
    identities = zip(("program", "schedule", "cache"), (hash_ or "" for hash_ in hashes), _MEANINGS, strict=False)
    return [_FINGERPRINT.of(rows), _IDENTITIES.of(identities), CACHE_PARTS.of(parts)]


def _notes(context: Context, parts: Sequence[CachePart]) -> Iterator[str]:
    if context.elided_constants is None:
        text = "values of constants that the text elides as {...} are unknown; programs that differ in them alone share it"
        yield f"{_PROGRAM}: {text}"
    lacking = [part.name for part in parts if part.digest is None]
    if lacking and context.settings is not None:
        yield f"the hash for caches lacks {', '.join(lacking)}: no file beside the module states them"


class Fingerprint(Pass):
    """Print three hashes of each module: of its program, its schedule, and what a compilation cache tells apart.

    Two texts of one program have the same first hash. It ignores names of modules, computations, instructions and channels,
    metadata, the order of independent lines and of keys in `backend_config`, and the schedule. The second hash covers the order
    of instructions too. It is absent if the module is not scheduled. The third hash also covers names and metadata, and in a
    dump directory weak types, flags and options. If two modules differ in it alone, one program was compiled twice, and a cache
    may miss. All are unknown for serialized HLO and StableHLO, which lack parts of a program.

    `as_text()` and the dump file of one compile have the same hashes, though the file has `x#1` for an element of a tuple. On
    a TPU that is `after_codegen.txt`: code generation adds to the `backend_config` of `after_optimizations.txt`.

    Constants that the text elides as {...} count if module.mlir stands beside it. Every machine prints the same hashes. Version
    1.1.0 spells the text that `normalize` prints differently, so older hashes are others. `diff`, `query` and `collect` say so.
    """

    name = "fingerprint"
    wants = Wants(graph=True)
    specs = _FACTS
    tables = (_FINGERPRINT, _IDENTITIES, CACHE_PARTS)

    def run(self, context: Context) -> Section:
        facts, origin = FactSheet(), context.module.origin
        if context.module.quoted_lines or origin is not None:  # of a partial module `partial_report` adds the note
            why = f"{origin} lacks the numbers of partitions and replicas, which are part of the program" if origin else ""
            for spec in _FACTS:
                facts.put(spec.name, None, why)
            return Section(facts.values, _tables(), facts.notes)
        program, schedule = _hashes(context)
        parts = cache_parts(context.module, context.views, (program, schedule), context.settings, context.stablehlo)
        facts.put(_PROGRAM, program)
        facts.put(_SCHEDULE, schedule)
        row = (context.module.name, program, schedule or "")
        hashes = (program, schedule, cache_identity(parts))
        return Section(facts.values, _tables([row], parts, hashes), notes=list(_notes(context, parts)))
