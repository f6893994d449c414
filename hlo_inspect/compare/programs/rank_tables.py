"""The report on the ranks of a job: the verdict, the ranks that deviate, and the modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import PurePath
from typing import NamedTuple

from hlo_inspect.compare.programs.deviations import VERDICTS, RankVerdict
from hlo_inspect.compare.programs.module_set import JobRanks
from hlo_inspect.compare.programs.rank_comparison import ComparedSet, RankDeviation
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import FactSpec, HeadlineRow, Input, Report, Severity
from hlo_inspect.report.table import Column, Value, number_of
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "ranks"

RANK_SPECS = (
    FactSpec("ranks.count", "count", "ranks: the directories that fit the pattern"),
    FactSpec("ranks.modules", "count", "modules over all ranks; those of one name and place count once"),
    FactSpec("ranks.deviating", "count", "ranks that deviate in more than names or choices of autotuning"),
    FactSpec("ranks.hangs", "count", "modules of single ranks that hang: rows of rank_deviations with `hangs` true"),
)

_MOST_NAMED = 4
_SAME = "all ranks run the same programs"


def rank_report(
    pattern: str, ranks: JobRanks, sets: Sequence[ComparedSet], miscounts: Sequence[RankDeviation], notes: Sequence[str]
) -> Report:
    """Return the report on all ranks. `pattern` names them, `notes` say what is not compared."""
    deviations = [*(deviation for compared in sets for deviation in compared.deviations), *miscounts]
    deviations.sort(key=lambda each: (each.hangs is not True, not each.deviates, VERDICTS.index(each.verdict)))
    facts: dict[str, Value] = {
        "ranks.count": ranks.size,
        "ranks.modules": len(sets),
        "ranks.deviating": len({deviation.rank for deviation in deviations if deviation.deviates}),
        "ranks.hangs": sum(deviation.hangs is True for deviation in deviations),
    }
    rows = [_DeviationRow(deviation, ranks.labels[deviation.rank]) for deviation in deviations]
    modules = sorted(sets, key=lambda compared: VERDICTS.index(compared.verdict) if compared.verdict else len(VERDICTS))
    return Report(
        COMMAND,
        Input(pattern, first_line=1, lines=0, bytes=0),
        Facts(facts, RANK_SPECS),
        (_RANK_DEVIATIONS.of(rows, on_page=bool(rows)), _RANK_MODULES.of(modules)),
        notes=(*notes, *(note for compared in sets for note in compared.notes)),
        specs=RANK_SPECS,
        title=pattern,
        headline=tuple(_headline(ranks, sets, deviations)),
    )


# -- the first lines ----------------------------------------------------------------------------------------------------------


def _headline(ranks: JobRanks, sets: Sequence[ComparedSet], deviations: Sequence[RankDeviation]) -> Iterator[HeadlineRow]:
    """Yield the verdict, then what does not matter in one line each."""
    cut = [f"{compared.name} of {ranks.named(compared.truncated)}" for compared in sets if compared.truncated]
    if cut:
        yield HeadlineRow("", (f"TRUNCATED {_named(cut)}: not compared",), "warning")
    counted = f"{number_of(ranks.size, 'rank')}, {number_of(len(sets), 'module')}"
    grave = [deviation for deviation in deviations if deviation.deviates]
    severity: Severity = "error" if any(deviation.hangs for deviation in grave) else "warning" if grave else "info"
    yield HeadlineRow("", (f"{counted}: {_verdict(ranks, sets, grave)}",), severity)
    tuned = sorted({deviation.rank for deviation in deviations if deviation.verdict == "algorithm"})
    if tuned:
        yield HeadlineRow("autotuning", (f"{ranks.named(tuned)} chose other algorithms: the same programs",))
    renamed = [compared.name for compared in sets if compared.verdict == "names"]
    if renamed:
        yield HeadlineRow("names", (f"names, numbers or paths differ in {_named(renamed)}: the same programs",))


def _verdict(ranks: JobRanks, sets: Sequence[ComparedSet], grave: Sequence[RankDeviation]) -> str:
    """Return what is wrong: the gravest deviation, and the number of other ranks that deviate."""
    if ranks.size == 1:
        return "nothing to compare with"
    if not grave:
        skipped = sorted({rank for compared in sets for rank in compared.skipped})
        return f"no rank deviates, but {ranks.named(skipped)} cannot be compared in all modules" if skipped else _SAME
    first = grave[0]
    key = first.module, first.verdict, first.hangs
    own = sorted({other.rank for other in grave if (other.module, other.verdict, other.hangs) == key})
    others = {deviation.rank for deviation in grave}.difference(own)
    text = f"{ranks.named(own)} {_PREDICATES[first.verdict][len(own) > 1]} {first.module}{_hang(first, len(own) > 1)}"
    if others:
        text += f"; {number_of(len(others), 'more rank')} {'deviates' if len(others) == 1 else 'deviate'}"
    return text


_PREDICATES: dict[RankVerdict, tuple[str, str]] = dict.fromkeys(VERDICTS, ("deviates in", "deviate in")) | {
    "missing": ("lacks", "lack"),
    "extra": ("alone has", "alone have"),
    "flags": ("has other flags in", "have other flags in"),
}


def _hang(deviation: RankDeviation, are_several: bool) -> str:
    """Return the collective at which the ranks hang, or that it is unknown."""
    if deviation.hangs is None:
        return ", and it is unknown whether they hang" if are_several else ", and it is unknown whether it hangs"
    if not deviation.hangs:
        return ""
    waiting = "others hang" if deviation.verdict == "missing" else "hang" if are_several else "hangs"
    place = f" at {deviation.waits}" if deviation.waits else ""
    source = f" ({PurePath(deviation.source).name})" if deviation.source else ""
    return f"{', and the' if deviation.verdict == 'missing' else ' and'} {waiting}{place}{source}"


def _named(names: Sequence[str]) -> str:
    """Return the first names, or the number of many."""
    return ", ".join(names) if len(names) <= _MOST_NAMED else number_of(len(names), "module")


# -- tables -------------------------------------------------------------------------------------------------------------------


class _DeviationRow(NamedTuple):
    """A deviation, and the name of its rank."""

    deviation: RankDeviation
    label: str


def _source(row: _DeviationRow) -> str | None:
    place = row.deviation.first.own or row.deviation.first.usual
    return (place.source if place is not None else row.deviation.source) or None


_RANK_DEVIATIONS = TableSpec("rank_deviations", "Ranks that deviate from the majority").with_columns(
    Column("module", width=16, meaning="name of the module", get=attrgetter("deviation.module")),
    Column("rank", width=6, is_chosen=True, meaning="rank that deviates", get=attrgetter("label")),
    Column("verdict", width=10, is_chosen=True, get=attrgetter("deviation.verdict")),
    Column("hangs", "bool", is_chosen=True, meaning="true if the job hangs there", get=attrgetter("deviation.hangs")),
    Column(
        "instruction",
        width=14,
        optional=True,
        meaning="first instruction that deviates",
        get=lambda row: row.deviation.first.own and row.deviation.first.own.name,
    ),
    Column(
        "majority_instruction",
        width=15,
        optional=True,
        detail=1,
        page_name="in the majority",
        meaning="instruction of the majority in its place",
        get=lambda row: row.deviation.first.usual and row.deviation.first.usual.name,
    ),
    Column("line", "number", optional=True, detail=4, get=lambda row: row.deviation.first.own and row.deviation.first.own.line),
    Column("source", optional=True, detail=2, width=14, get=_source),
    Column(
        "detail",
        width=40,
        optional=True,
        detail=3,
        meaning="both values, and if the text before optimizations differs too",
        get=lambda row: row.deviation.detail or None,
    ),
    Column("path", detail=5, width=24, is_file=True, meaning="file of the rank", get=attrgetter("deviation.path")),
)
_RANK_MODULES = TableSpec("rank_modules", "Modules of all ranks").with_columns(
    Column("module", width=24, meaning="name of the module", get=attrgetter("name")),
    Column("ranks", "count", meaning="ranks that have the module"),
    Column("programs", "count", meaning="distinct programs"),
    Column("majority", width=32, detail=2, meaning="hash of the program that most ranks run"),
    Column("deviating", "count", meaning="ranks that deviate"),
    Column("verdict", width=10, optional=True),
)
TABLES = (_RANK_DEVIATIONS, _RANK_MODULES)
