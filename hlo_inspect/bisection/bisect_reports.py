"""The report of `bisect`: what is necessary for a condition, what XLA cannot do without, and a sentence for an issue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hlo_inspect.bisection.flags import FlagBisection
from hlo_inspect.bisection.passes import PassBisection
from hlo_inspect.bisection.trials import Trial, Trials
from hlo_inspect.bisection.versions import VersionBisection, text_changes
from hlo_inspect.compiler.program import FlagValue
from hlo_inspect.errors import first_few
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import HeadlineRow, Input, Report, Severity
from hlo_inspect.report.table import ALL_ROWS, Column, Table
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.request import Request

COMMAND = "bisect"
_SHOWN = 6
"""Names in a sentence."""


def passes_report(path: str, trials: Trials, result: PassBisection) -> Report:
    """Return the report on passes; `path` names the program."""
    condition, total = trials.condition.text, f"{len(result.passes):,} passes"
    if not result.whole.holds:
        text = f"false for the program as it is: {condition}; {result.whole.value}; there is nothing to bisect"
        return _report(path, trials, text, [NECESSARY.of([]), REQUIRED.of([]), OTHERS.of([])], "error")
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
    report = _report(path, trials, f"{text}; {total}, {trials.effort}", tables)
    note = "a necessary pass need not be at fault: it can prepare what another one gets wrong"
    return replace(report, notes=(*report.notes, note)) if necessary else report


def flags_report(path: str, trials: Trials, result: FlagBisection) -> Report:
    """Return the report on two sets of flags."""
    condition, states = trials.condition.text, f"with A: {result.old.value}, with B: {result.new.value}"
    if not result.necessary:
        text = f"{_truth(result.new)} by A and by B: {condition}; {states}; there is nothing to bisect"
        return _report(path, trials, text, [NECESSARY.of([])], "error")
    names = first_few([change.name for change in result.necessary], _SHOWN)
    rows = [_Necessary(change.name, old=_flag(change.old), new=_flag(change.new)) for change in result.necessary]
    text = (
        f"{condition}: {_truth(result.new)} by {names} of B; {states}; {len(result.differing):,} flags differ, {trials.effort}"
    )
    return _report(path, trials, text, [NECESSARY.of(rows)])


def versions_report(path: str, trials: Trials, result: VersionBisection, request: Request) -> Report:
    """Return the report on versions, with what `diff` says of the two between which the condition turns."""
    condition, old, new = trials.condition.text, result.old, result.new
    before, since = f"{old.version.label} ({old.trial.value})", f"{new.version.label} ({new.trial.value})"
    if not result.necessary:
        text = f"{_truth(new.trial)} with {before} and with {since}: {condition}; there is nothing to bisect"
        return _report(path, trials, text, [NECESSARY.of([])], "error")
    changes = text_changes(trials, result, request)
    between = f"; {first_few(result.between, _SHOWN)} between them cannot be tried" if result.between else ""
    states = f"since {since}, but not with {before}" if new.trial.holds else f"with {before}, but not since {since}"
    text = f"{condition} {states}{between}; {trials.effort}"
    if changes.facts.get("diff.same_schedule"):
        code = "".join(f": {part}" for row in changes.headline if row.label == "code" for part in row.parts)
        text = f"{text}; the programs are equal: the difference is below HLO{code}"
    rows = [_Necessary(new.version.name, old=old.trial.value, new=new.trial.value)]
    own = _report(path, trials, text, [NECESSARY.of(rows)], more=changes.tables)
    return replace(
        changes,
        command=COMMAND,
        input=own.input,
        title=path,
        tables=own.tables,
        headline=(*own.headline, *changes.headline),
        notes=(*own.notes, *changes.notes),
    )


def _report(
    path: str, trials: Trials, text: str, tables: Sequence[Table], severity: Severity | None = None, more: Sequence[Table] = ()
) -> Report:
    """Return a report whose page begins with a sentence, with the steps that decide nothing behind its tables."""
    undecided = UNDECIDED.of(trials.undecided, on_page=bool(trials.undecided))
    place = Input(path, first_line=1, lines=0, bytes=0)
    row = HeadlineRow("", (text,), severity)
    return Report(COMMAND, place, Facts({}, ()), (*tables, undecided, *more), notes=trials.notes, title=path, headline=(row,))


def _truth(trial: Trial) -> str:
    return "true" if trial.holds else "false"


def _flag(value: FlagValue | None) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


class _Necessary(NamedTuple):
    """Row of what is necessary: a pass with the value without it and what it changes, a flag or version with two values."""

    name: str
    value: str | None = None
    change: str | None = None
    old: str | None = None
    new: str | None = None


NECESSARY = TableSpec("necessary", "Necessary", page_rows=ALL_ROWS).with_columns(
    Column("name", width=40, meaning="pass, flag or version by which the condition turns; a pair of passes with a comma"),
    Column("value", width=32, optional=True, meaning="what the condition looks at, without the pass"),
    Column("change", width=40, optional=True, meaning="what the pass changes in the module, as `history` has it"),
    Column("old", width=24, optional=True, meaning="value of the flag in A (none: XLA's own), or by the version before"),
    Column("new", width=24, optional=True, meaning="value of the flag in B (none: XLA's own), or by this version"),
)
REQUIRED = TableSpec("required", "Required: does not compile without", page_rows=ALL_ROWS).with_columns(
    Column("name", width=28, meaning="pass that XLA cannot do without here"),
    Column("reason", width=48, wraps=True, meaning="message of the compiler without it", get=lambda own: own.trial.reason),
)
UNDECIDED = TableSpec("undecided", "Steps that do not decide the condition", page_rows=ALL_ROWS).with_columns(
    Column("name", width=40, meaning="passes that are disabled, flags of B, or version of the compiler"),
    Column("reason", width=48, wraps=True, meaning="why the condition is unknown, or why the version cannot be tried"),
)
OTHERS = TableSpec("others", "Without these another value, by which the condition holds", page_rows=ALL_ROWS).with_columns(
    Column("name", width=28, meaning="pass without which the value is another one"),
    Column("value", width=32, meaning="what the condition looks at, without it", get=lambda own: own.trial.value),
)
