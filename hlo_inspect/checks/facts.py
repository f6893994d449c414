"""The facts that checks can name: all that there are, or those of a module with their values."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.report.facts import exact_name, find_spec, is_family
from hlo_inspect.report.model import Column, FactSpec, Input, Report, Row, Table

COMMAND = "check"
_NAMES = (Column("fact", width=40), Column("unit", detail=4), Column("meaning", width=60))
_VALUES = (Column("fact"), Column("value", unit_of="unit"), Column("unit", detail=9), Column("meaning", detail=1))


def facts_report(specs: Iterable[FactSpec]) -> Report:
    """Every fact that there is; of a family its name with the angle brackets."""
    rows = tuple((spec.name, spec.unit, spec.meaning) for spec in specs)
    table = Table("facts", "Facts", _NAMES, rows, page_rows=0)
    return Report(COMMAND, Input("hlo_inspect/passes", first_line=1, lines=0, bytes=0), facts={}, tables=(table,))


def facts_of(report: Report) -> Report:
    """Every fact of a report with its meaning, and its value; of a family the members that occur: all others are 0."""
    table = Table("facts", "Facts", _VALUES, tuple(_rows(report)), page_rows=0)
    return Report(COMMAND, report.input, report.facts, (table,), notes=report.notes, profile=report.profile, specs=report.specs)


def _rows(report: Report) -> Iterable[Row]:
    members: dict[str, list[Row]] = {}
    for name, value in report.facts.items():
        found = find_spec(name, report.specs)
        if found is not None:
            spec, _ = found
            meaning = spec.meaning if exact_name(name) == name else f"a lower bound of {exact_name(name)}"
            members.setdefault(spec.name, []).append((name, value, spec.unit, meaning))
    for spec in report.specs:
        rows = members.get(spec.name, [])
        if is_family(spec) and not rows:
            yield (spec.name, 0, spec.unit, spec.meaning)
        yield from rows
