"""From the name of a fact in a check to its specification, its value and why it has none; the list of all facts.

A name that no `FactSpec` covers is a `UsageError` with the closest names: a misspelt check must not pass in silence. A family
without listed members takes any (the target of a custom call); one whose segment is `<n>` takes a whole number from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlo_inspect.checks.expressions import Condition, bind
from hlo_inspect.checks.policy import Assertion
from hlo_inspect.errors import did_you_mean
from hlo_inspect.report.facts import exact_name, fact_names, find_spec, is_family, members_of
from hlo_inspect.report.model import LOWER_BOUND, PART_NOTE, Column, FactSpec, Input, Report, Row, Table, Value

_LIKE_A_NAME = 0.4  # likeness to the name that was meant: names of facts are long and share much


@dataclass(frozen=True, slots=True)
class Check:
    """An assertion about a fact that exists; `member` takes the place of the angle brackets of a family."""

    name: str
    spec: FactSpec
    member: str | None
    condition: Condition
    assertion: Assertion


def resolve(assertion: Assertion, specs: Sequence[FactSpec]) -> Check:
    """The check of an assertion, or a `UsageError` at the fact or at the expression that does not fit it."""
    name = assertion.fact.scalar
    spec, member = find_fact(assertion, specs)
    if member is None and spec.members is not None:
        _require_known_values(assertion, spec, spec.members)
    try:
        condition = bind(assertion.expression, spec.unit)
    except ValueError as error:
        raise assertion.place.error(f"{name}: {error}") from error
    return Check(name, spec, member, condition, assertion)


def find_fact(assertion: Assertion, specs: Sequence[FactSpec]) -> tuple[FactSpec, str | None]:
    """The specification of the fact, with the member where it is a family; `UsageError` with the closest names."""
    name = assertion.fact.scalar
    found = find_spec(name, specs)
    if found is None:
        raise assertion.fact.error(f"there is no fact {name!r}{did_you_mean(name, fact_names(specs), cutoff=_LIKE_A_NAME)}")
    return found


def _require_known_values(assertion: Assertion, spec: FactSpec, known: frozenset[str]) -> None:
    """Refuses a value that the fact, a text with a closed list of values, never has."""
    names = sorted(known)
    for value in assertion.expression.values:
        if value.text not in known:
            hint = did_you_mean(value.text, names) or f"; it is one of {', '.join(names)}"
            raise assertion.place.error(f"{spec.name} is never {value.text!r}{hint}")


def value_of(check: Check, report: Report) -> Value:
    """The value of the fact: 0 for a member of a family that does not occur. A fact that is known is its own lower bound."""
    name = _present(check.name, report)
    if name in report.facts:
        return report.facts[name]
    if check.member is None:
        raise check.assertion.fact.error(f"the fact {check.name!r} is not computed by this command")
    return 0


def _present(name: str, report: Report) -> str:
    """The name, or that of the fact itself where it has no lower bound in the report."""
    return name if name in report.facts else exact_name(name)


def remark(check: Check, report: Report) -> str:
    """What else is to know of the value: why it is unknown; of an open family, that only a similar member occurs."""
    name = _present(check.name, report)
    if name in report.facts:
        return _why_unknown(name, check.spec, report) if report.facts[name] is None else ""
    if check.spec.members is not None or check.member is None:
        return ""
    occurring = [member for name in report.facts for member in members_of(name, check.spec) if member]
    hint = did_you_mean(check.member, occurring)
    return f"{check.member} does not occur{hint}" if hint else ""


def _why_unknown(name: str, spec: FactSpec, report: Report) -> str:
    mention = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    reasons = [note.removeprefix(f"{name}: ") for note in report.notes if mention.search(note)]
    reasons = reasons or [note for note in report.notes if note.startswith(PART_NOTE)]
    reasons = reasons or [spec.absent or "the report does not say why"]
    if name + LOWER_BOUND in report.facts:
        reasons.append(f"its lower bound is {name}{LOWER_BOUND}")
    return "; ".join(reasons)


# -- the facts that checks can name ------------------------------------------------------------------------------------

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
