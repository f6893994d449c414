"""The directives of a case, held against the report on its text."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import pytest

import hlo_inspect
from hlo_inspect.errors import HloInspectError, UsageError
from hlo_inspect.passes import FINDINGS
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.request import OPTIONS
from tests.calling import call_text
from tests.cases.case import Case, CaseError, Directive, cases_of, is_figure, value_of, words_of
from tests.tables import totals

_OPTIONS = {flag: option for option in OPTIONS for flag in option.info.flags}
_FACT = re.compile(r"(?P<name>\S+)(?: (?P<sign>==|>=) (?P<value>.+))?")
_RUNS = ("RUN", "WITH")
_PLACES = ("line", "lines", "source")
"""Columns that the place of a row in its text decides."""
_OF_FINDINGS = ("line=", "column=", "severity=", "subject=", "stake=", "stake_unit=", "share=", "share_of=", "source=")


@dataclass(frozen=True)
class Run:
    """Commands and their options on a text."""

    words: tuple[str, ...]
    text: str
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return shlex.join(self.words)

    @property
    def report(self) -> Report:
        return _report_of(self)

    @property
    def page(self) -> str:
        """The printed page, with single blanks."""
        page = StringIO()
        FORMATS["table"]([self.report], page, RenderOptions(width=200))
        return " ".join(page.getvalue().split())

    def columns(self, table: str, names: Iterable[str], line: int) -> list[dict[str, Any]]:
        """Return these columns of the rows of a table. Raise CaseError if there is no such table or column."""
        try:
            return [{name: record[name] for name in names} for record in self.report.table(table).records()]
        except (KeyError, UsageError) as error:
            raise CaseError(line, f"{self}: {error}") from None

    def answers(self) -> Iterator[tuple[str, object]]:
        """Yield what equal programs have in common, by name."""
        yield "facts", {**self.report.facts}
        yield "findings", Counter(finding.rule for finding in self.report.findings)
        for table in self.report.tables:
            names = [name for name in (column.name for column in table.flat().columns) if name not in _PLACES]
            yield table.name, [[record[name] for name in names] for record in table.flat().records()]


@lru_cache(maxsize=32)
def _report_of(run: Run) -> Report:
    commands: list[str] = []
    options: dict[str, Any] = {}
    waiting = iter(run.words)
    for word in waiting:
        if word in _OPTIONS:
            option = _OPTIONS[word]
            value: Any = True if option.type is bool else next(waiting)
            options[option.name] = int(value) if option.type is int else value
        elif "=" in word:
            name, _, value = word.partition("=")
            options[name] = (value,) if name == "thresholds" else value
        else:
            commands.append(FINDINGS if word == "lint" else word)
    try:
        return hlo_inspect.inspect(run.text, commands, **options)
    except HloInspectError as error:
        raise CaseError(run.line, f"{run}: {error}") from None


class Result(NamedTuple):
    """The answer to an expectation: what there is, and the directive's words with it if it is one thing."""

    is_met: bool
    actual: str
    better: str | None = None


class NotMetError(CaseError):
    """An expectation that is not true of a run. `better` is its text with what is true, None if only a person can say."""

    def __init__(self, line: int, message: str, better: str | None = None) -> None:
        super().__init__(line, message)
        self.better = better


def meet(case: Case) -> Iterator[NotMetError]:
    """Yield the expectations of a case that are not met. Raise CaseError for the first directive that cannot be read.

    A case and each of its runs have one or more.
    """
    run = Run((), case.text)
    directives = [*case.directives]
    if not directives:
        raise CaseError(case.first, "a case without an expectation shows nothing")
    for directive, following in zip(directives, [*directives[1:], None], strict=True):
        is_of_next = directive.name == "RUN" and following is not None and following.name == "WITH"
        if directive.name in _RUNS and not is_of_next and (following is None or following.name in _RUNS):
            raise CaseError(directive.line, "a run without an expectation shows nothing")
        if directive.name == "RUN":
            words = words_of(directive.words, directive.line)
            paths = [str(case.path.parent / word) if word.startswith("./") else word for word in words]
            run = Run(tuple(paths), case.text, directive.line)
        elif directive.name == "WITH":
            run = Run(run.words, _replaced(case.text, directive), directive.line)
        elif directive.name not in _EXPECTATIONS or (directive.no and directive.name not in _NEGATED):
            raise CaseError(directive.line, f"there is no directive {directive.no}{directive.name}")
        elif not run.words:
            raise CaseError(directive.line, "the expectation stands before the first RUN")
        else:
            yield from _not_met(case, run, directive)


def _not_met(case: Case, run: Run, directive: Directive) -> Iterator[NotMetError]:
    """Yield nothing, or what stands in place of what is expected."""
    result = _EXPECTATIONS[directive.name](case, run, directive)
    if result.is_met == bool(directive.no):
        expected = f"{run}: expected {directive.no}{directive.name} {directive.words}"
        yield NotMetError(directive.line, f"{expected}\n{result.actual}", None if directive.no else result.better)


def _replaced(text: str, directive: Directive) -> str:
    for word in words_of(directive.words, directive.line):
        old, sign, new = word.partition("=")
        if not sign or old not in text:
            raise CaseError(directive.line, f"{word!r} is no WORD=TEXT whose word the text has")
        text = text.replace(old, new.replace("\\n", "\n"))
    return text


def _pairs(directive: Directive) -> tuple[str, dict[str, Any]]:
    """Return the table of a row and its values by column. All figures but line numbers need a reason."""
    table, *words = words_of(directive.words, directive.line)
    pairs = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise CaseError(directive.line, f"{word!r} is not COLUMN=VALUE")
        pairs[name] = value_of(value)
    _need_reason(directive, [value for name, value in pairs.items() if name not in _PLACES])
    return table, pairs


def _need_reason(directive: Directive, values: Iterable[object]) -> None:
    if any(is_figure(value) for value in values) and not directive.reason:
        raise CaseError(directive.line, "a figure needs its reason: two blanks, # and how it was worked out")


def _written(value: object) -> str:
    """Return a value as a case has it."""
    if value is None or isinstance(value, bool):
        return {None: "?", True: "yes", False: "no"}[value]
    return f"{value:_}" if isinstance(value, int) else repr(value) if isinstance(value, float) else shlex.quote(str(value))


def _written_pairs(pairs: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_written(value)}" for name, value in pairs.items())


def _equal(value: object, expected: object) -> bool:
    if is_figure(value) and is_figure(expected):
        return bool(value == pytest.approx(expected, rel=1e-9, abs=0))
    expected = str(expected) if isinstance(value, str) and is_figure(expected) else expected
    return value == expected and isinstance(value, bool) == isinstance(expected, bool)


def _fact(_: Case, run: Run, directive: Directive) -> Result:
    match = _FACT.fullmatch(directive.words)
    if match is None or bool(match["sign"]) == bool(directive.no):
        raise CaseError(directive.line, "a fact is NAME == VALUE or NAME >= VALUE; NO FACT has a name alone")
    facts, name = run.report.facts, match["name"]
    if directive.no or name not in facts:
        return Result(name in facts, f"{name} is {_written(facts[name])}" if name in facts else "there is no such fact")
    expected = value_of(match["value"])
    _need_reason(directive, [expected])
    if match["sign"] == ">=" and facts[name] is None:
        name = f"{name}.lower_bound"
    if name not in facts:
        return Result(is_met=False, actual=f"{match['name']} is unknown without a bound")
    better = f"{match['name']} {match['sign']} {_written(facts[name])}"
    is_bound = match["sign"] == "==" or name != match["name"]
    return Result(is_bound and _equal(facts[name], expected), f"it is {_written(facts[name])}", better if is_bound else None)


def _row(_: Case, run: Run, directive: Directive) -> Result:
    table, pairs = _pairs(directive)
    records = run.columns(table, pairs, directive.line)
    first = next(iter(pairs))
    near = [_written_pairs(record) for record in records if _equal(record[first], pairs[first])]
    actual = "\n".join(f"there is {row}" for row in near or map(_written_pairs, records))
    return Result(any(_are_equal(row, pairs) for row in records), actual, f"{table} {near[0]}" if len(near) == 1 else None)


def _are_equal(record: Mapping[str, object], pairs: Mapping[str, object]) -> bool:
    return all(_equal(record[name], value) for name, value in pairs.items())


def _table(_: Case, run: Run, directive: Directive) -> Result:
    table, *names = words_of(directive.words, directive.line)
    expected = [[value_of(word) for word in words_of(row, directive.line)] for row in directive.rows]
    _need_reason(directive, [value for row in expected for name, value in zip(names, row, strict=False) if name not in _PLACES])
    actual = [[*record.values()] for record in run.columns(table, names, directive.line)]
    has_form = list(map(len, actual)) == list(map(len, expected))
    is_met = has_form and all(map(_equal, chain(*actual), chain(*expected)))
    return Result(is_met, "\n".join(f"//| {' '.join(map(_written, row))}" for row in actual))


def _total(_: Case, run: Run, directive: Directive) -> Result:
    table, pairs = _pairs(directive)
    record = {name: totals(run.report.table(table).flat()).get(name) for name in pairs}
    return Result(_are_equal(record, pairs), _written_pairs(record), f"{table} {_written_pairs(record)}")


def _finding(_: Case, run: Run, directive: Directive) -> Result:
    code, *words = words_of(directive.words, directive.line)
    pairs = {word.partition("=")[0]: value_of(word.partition("=")[2]) for word in words if word.startswith(_OF_FINDINGS)}
    _need_reason(directive, [value for name, value in pairs.items() if name not in ("line", "column")])
    message = " ".join(word for word in words if not word.startswith(_OF_FINDINGS))
    findings = [
        {**finding._asdict(), **{name: getattr(finding.location, name, None) for name in ("line", "column")}}
        for finding in run.report.findings
    ]
    are_met = (row["rule"] == code and message in row["message"] and _are_equal(row, pairs) for row in findings)
    shown = (_written_pairs({name.rstrip("="): row[name.rstrip("=")] for name in _OF_FINDINGS}) for row in findings)
    return Result(
        any(are_met), "\n".join(f"{row['rule']} {words} {row['message']}" for row, words in zip(findings, shown, strict=True))
    )


def _findings(_: Case, run: Run, directive: Directive) -> Result:
    codes = sorted(finding.rule for finding in run.report.findings)
    return Result(codes == sorted(directive.words.split()), f"there are {' '.join(codes) or 'none'}")


def _note(_: Case, run: Run, directive: Directive) -> Result:
    return Result(any(directive.words in note for note in run.report.notes), "\n".join(run.report.notes))


def _notes(_: Case, run: Run, directive: Directive) -> Result:
    return Result(len(run.report.notes) == int(directive.words or 0), "\n".join(run.report.notes))


def _page(_: Case, run: Run, directive: Directive) -> Result:
    return Result(directive.words in run.page, run.page)


def _same(case: Case, run: Run, directive: Directive) -> Result:
    text = next(cases_of(case.path.parent / directive.words)).text if directive.words else case.text
    answers, others = [*run.answers()], [*Run(run.words, text, directive.line).answers()]
    pairs = zip_longest(answers, others, fillvalue=("a table", None))
    different = [f"{name}: {answer}\nnot {expected}" for (name, answer), (_, expected) in pairs if answer != expected]
    return Result(not different, "\n".join(different))


def _error(_case: Case, run: Run, directive: Directive) -> Result:
    command, *options = run.words
    done = call_text(command, "-", *options, given=run.text)
    said = f"{done.returncode}: {' '.join(done.stderr.split())}"
    status, _, message = directive.words.partition(": ")
    return Result(said.startswith(f"{status}: ") and message in said, said)


_EXPECTATIONS: dict[str, Callable[[Case, Run, Directive], Result]] = {
    "FACT": _fact,
    "ROW": _row,
    "TABLE": _table,
    "TOTAL": _total,
    "FINDING": _finding,
    "FINDINGS": _findings,
    "NOTE": _note,
    "NOTES": _notes,
    "PAGE": _page,
    "EQUAL": _same,
    "ERROR": _error,
}
_NEGATED = ("FACT", "ROW", "FINDING", "NOTE", "PAGE")
