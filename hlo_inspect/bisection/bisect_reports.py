"""The report of `bisect`: what is necessary for a condition, what XLA cannot do without, and a sentence for an issue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.bisection.flags import FlagBisection
from hlo_inspect.bisection.passes import PassBisection
from hlo_inspect.compiler.program import FlagValue
from hlo_inspect.errors import first_few
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import HeadlineRow, Input, Report, Severity
from hlo_inspect.report.table import ALL_ROWS, Column, Table
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "bisect"
_SHOWN = 6
"""Names in a sentence."""


def passes_report(path: str, condition: str, result: PassBisection, effort: str, notes: Sequence[str]) -> Report:
    """Return the report on passes; `path` names the program, `condition` says in words what holds."""
    total = f"{len(result.passes):,} passes"
    if not result.whole.holds:
        text = f"false for the program as it is: {condition}; {result.whole.value}; there is nothing to bisect"
        return bisect_report(path, text, "error", [table.of([]) for table in (NECESSARY, REQUIRED, OTHERS)], notes)
    necessary = [own.name for own in result.necessary]
    if necessary:
        pairs = len(result.necessary[0].names) > 1
        kind = "pair of passes" if pairs else "pass"
        which = f"any {kind} of {first_few(necessary, _SHOWN)}" if len(necessary) > 1 else f"the {kind} {necessary[0]}"
        text = f"{condition} ({result.whole.value}), but not if {which} is disabled"
    else:
        text = f"{condition} ({result.whole.value}), whichever pass or pair of the likeliest is disabled"
    rows = [_Necessary(own.name, own.trial.value, own.change or None) for own in result.necessary]
    tables = [NECESSARY.of(rows), REQUIRED.of(result.required), OTHERS.of(result.others)]
    said = (*notes, "a necessary pass need not be at fault: it can prepare what another one gets wrong") if necessary else notes
    return bisect_report(path, f"{text}; {total}, {effort}", None, tables, said)


def flags_report(path: str, condition: str, result: FlagBisection, effort: str, notes: Sequence[str]) -> Report:
    """Return the report on two sets of flags."""
    states = f"with A: {result.old.value}, with B: {result.new.value}"
    if not result.necessary:
        text = f"{'true' if result.new.holds else 'false'} by A and by B: {condition}; {states}; there is nothing to bisect"
        return bisect_report(path, text, "error", [NECESSARY.of([])], notes)
    names = first_few([change.name for change in result.necessary], _SHOWN)
    rows = [_Necessary(change.name, old=_flag(change.old), new=_flag(change.new)) for change in result.necessary]
    turned = "true" if result.new.holds else "false"
    text = f"{condition}: {turned} by {names} of B; {states}; {len(result.differing):,} flags differ, {effort}"
    return bisect_report(path, text, None, [NECESSARY.of(rows)], notes)


def bisect_report(path: str, text: str, severity: Severity | None, tables: Sequence[Table], notes: Sequence[str]) -> Report:
    """Return a report whose page begins with a sentence."""
    place = Input(path, first_line=1, lines=0, bytes=0)
    row = HeadlineRow("", (text,), severity)
    return Report(COMMAND, place, Facts({}, ()), tuple(tables), notes=tuple(notes), title=path, headline=(row,))


def _flag(value: FlagValue | None) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


class _Necessary(NamedTuple):
    """Row of what is necessary: a pass with the value without it and what it changes, or a flag with its two values."""

    name: str
    value: str | None = None
    change: str | None = None
    old: str | None = None
    new: str | None = None


NECESSARY = TableSpec("necessary", "Necessary", page_rows=ALL_ROWS).with_columns(
    Column("name", width=40, meaning="pass or flag that the condition needs; a pair of passes with a comma"),
    Column("value", width=32, optional=True, meaning="what the condition looks at, without the pass"),
    Column("change", width=40, optional=True, meaning="what the pass changes in the module, as `history` has it"),
    Column("old", width=24, optional=True, meaning="value of the flag in A; none if it has XLA's own"),
    Column("new", width=24, optional=True, meaning="value of the flag in B; none if it has XLA's own"),
)
REQUIRED = TableSpec("required", "Required: does not compile without", page_rows=ALL_ROWS).with_columns(
    Column("name", width=28, meaning="pass that XLA cannot do without here"),
    Column("reason", width=48, wraps=True, meaning="message of the compiler without it", get=lambda own: own.trial.reason),
)
OTHERS = TableSpec("others", "Without these another value, by which the condition holds", page_rows=ALL_ROWS).with_columns(
    Column("name", width=28, meaning="pass without which the value is another one"),
    Column("value", width=32, meaning="what the condition looks at, without it", get=lambda own: own.trial.value),
)
