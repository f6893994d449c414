"""The report of `recompiles`: facts, a row for each function and one for each compile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import NamedTuple

from hlo_inspect.compare.programs.reasons import FIRST, LOADED, NOTHING, REASONS
from hlo_inspect.compare.programs.recompilation import Compile, RecompiledFunction
from hlo_inspect.passes.base import FactSheet
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, FactSpec, HeadlineRow, Input, Report
from hlo_inspect.report.table import Column, Plain, Value, number_of
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "recompiles"
RECOMPILE_SPECS = (
    FactSpec("recompiles.functions", "count", "functions, by the names of their modules"),
    FactSpec("recompiles.compiles", "count", "compiles, without loads from a persistent cache"),
    FactSpec("recompiles.loaded", "count", "programs loaded from a persistent cache"),
    FactSpec("recompiles.distinct", "count", "compiles of a program that differs from the nearest earlier one of its function"),
    FactSpec("recompiles.avoidable", "count", "compiles of a program, flags and options that were compiled before"),
    FactSpec("recompiles.reason.<reason>", "count", "compiles with that reason", frozenset(REASONS)),
)
_SHOWN = 3
"""Functions that the first lines name."""


class _CompileRow(NamedTuple):
    """A row of the table `recompiles`."""

    function: str
    compile_: Compile


def recompile_report(path: str, functions: Sequence[RecompiledFunction], notes: Sequence[str]) -> Report:
    """Return the report on the compiles of all functions; `path` names the inputs."""
    ordered = sorted(functions, key=lambda function: (-function.avoidable(), -function.count()))
    sheet = _facts(ordered)
    facts = Facts(sheet.values, RECOMPILE_SPECS)
    rows = [_CompileRow(function.name, compile_) for function in ordered for compile_ in function.compiles]
    return Report(
        COMMAND,
        Input(path, first_line=1, lines=0, bytes=0),
        facts=facts,
        tables=(_RECOMPILES.of(rows), _FUNCTIONS.of(ordered, on_page=len(ordered) > 1)),
        notes=(*sheet.notes, *_settings_notes(rows), *notes),
        specs=RECOMPILE_SPECS,
        title=f"{number_of(len(functions), 'function')} in {path}",
        headline=tuple(_headline(ordered, facts)),
    )


def _facts(functions: Sequence[RecompiledFunction]) -> FactSheet:
    unknown = sum(len(function.unknown()) for function in functions)
    why = f"{number_of(unknown, 'compile')} without a known reason"
    reasons = sum((function.reasons() for function in functions), Counter[str]())
    facts = FactSheet()
    facts.put("recompiles.functions", len(functions))
    facts.put("recompiles.compiles", sum(function.count() for function in functions))
    facts.put("recompiles.loaded", reasons[LOADED])
    facts.put("recompiles.distinct", None if unknown else sum(function.distinct() for function in functions), why)
    facts.put("recompiles.avoidable", None if unknown else sum(function.avoidable() for function in functions), why)
    for reason in REASONS:
        if reasons[reason]:
            facts.put(f"recompiles.reason.{reason}", reasons[reason])
    return facts


def _settings_notes(rows: Sequence[_CompileRow]) -> Iterator[str]:
    """Say for how many compiles flags or options are unknown, with the first reason."""
    lacking = [row.compile_.record for row in rows if row.compile_.record.settings.unknown and not row.compile_.is_load]
    if lacking:
        reason = lacking[0].settings.unknown[0]
        yield f"flags or options are unknown for {len(lacking):,} of {number_of(len(rows), 'module')}: {reason}"
    optimized = sum(row.compile_.record.is_optimized and not row.compile_.is_load for row in rows)
    if optimized:
        yield f"{number_of(optimized, 'module')} without a text before optimizations: reasons are those of optimized programs"


def _verdict(function: RecompiledFunction) -> str:
    """Return the counts of a function, with its first avoidable compile or its reasons."""
    counts = [number_of(function.count(), "compile")]
    loaded = function.reasons()[LOADED]
    counts += [f"{loaded:,} loaded"] if loaded else []
    counts += [number_of(function.distinct(), "distinct program"), f"{function.avoidable():,} avoidable"]
    return f"{function.name}: {', '.join(counts)}{_why(function)}"


def _headline(functions: Sequence[RecompiledFunction], facts: Mapping[str, Plain]) -> Iterator[HeadlineRow]:
    """Yield the verdicts, the worst function first, then the totals. Rows with a severity begin the page."""
    for function in functions[:_SHOWN]:
        yield HeadlineRow("", (_verdict(function),), "warning" if function.avoidable() else "info")
    if len(functions) > _SHOWN:
        yield HeadlineRow("", (Amount(len(functions) - _SHOWN, "count", "more function"),), "info")
    if len(functions) > 1:
        counted = [number_of(int(facts[f"recompiles.{noun}s"] or 0), noun) for noun in ("function", "compile")]
        counted += [f"{_count(facts[f'recompiles.{name}'])} {name}" for name in ("loaded", "distinct", "avoidable")]
        yield HeadlineRow("total", (", ".join(counted),))


def _count(value: Value) -> str:
    return "?" if value is None else f"{value:,}"


def _why(function: RecompiledFunction) -> str:
    """Return the first avoidable compile in words, and all reasons of compiles, the most frequent first."""
    first = next((compile_ for compile_ in function.compiles if compile_.avoidable), None)
    number = f"module {first.record.number}: " if first is not None and first.record.number is not None else ""
    counts = Counter({reason: n for reason, n in function.reasons().items() if reason not in (FIRST, LOADED, NOTHING)})
    reasons = ", ".join(f"{count:,} for {reason}" for reason, count in counts.most_common())
    causes = [f"{number}{first.detail}"] if first is not None else []
    causes += [reasons] if reasons else []
    return f": {'; '.join(causes)}" if causes else ""


def _program(compile_: Compile) -> Value:
    """Return the hash of the program; of a load that of the compile that filled the cache."""
    record = compile_.nearest if compile_.is_load and compile_.nearest is not None else compile_.record
    return record.program or None


def _reason_counts(function: RecompiledFunction) -> str:
    counts = function.reasons()
    return ", ".join(f"{counts[reason]:,} {reason}" for reason in REASONS if counts[reason])


_RECOMPILES = TableSpec("recompiles", "Compiles", page_rows=50).with_columns(
    Column("function", width=16),
    Column(
        "module", "number", optional=True, meaning="number of the module in the dump", get=attrgetter("compile_.record.number")
    ),
    Column(
        "path",
        detail=5,
        width=24,
        is_file=True,
        meaning="file of the text before optimizations",
        get=attrgetter("compile_.record.path"),
    ),
    Column("program", detail=4, width=32, meaning="hash of the program", get=lambda row: _program(row.compile_)),
    Column(
        "nearest",
        "number",
        optional=True,
        detail=1,
        meaning="number of the earlier compile that differs least",
        get=lambda row: row.compile_.nearest and row.compile_.nearest.number,
    ),
    Column(
        "reasons",
        width=12,
        meaning="[reasons](../questions/recompiles.md#the-reasons) of the compile",
        get=lambda row: None if row.compile_.reasons is None else ",".join(row.compile_.reasons),
    ),
    Column("detail", width=60, wraps=True, meaning="the difference in words", get=attrgetter("compile_.detail")),
    Column(
        "avoidable",
        "bool",
        detail=2,
        meaning="true if XLA had compiled the same program with the same flags",
        get=attrgetter("compile_.avoidable"),
    ),
)
_FUNCTIONS = TableSpec("functions", "Functions").with_columns(
    Column("function", width=24, get=attrgetter("name")),
    Column("compiles", "count", summed=True, meaning="compiles of the function", get=methodcaller("count")),
    Column(
        "loaded",
        "count",
        summed=True,
        detail=1,
        meaning="programs that a persistent cache had",
        get=lambda function: function.reasons()[LOADED],
    ),
    Column("distinct", "count", summed=True, meaning="distinct programs", get=methodcaller("distinct")),
    Column("avoidable", "count", summed=True, meaning="compiles that were avoidable", get=methodcaller("avoidable")),
    Column("reasons", width=40, meaning="number of compiles by reason", get=_reason_counts),
)
TABLES = (_RECOMPILES, _FUNCTIONS)
