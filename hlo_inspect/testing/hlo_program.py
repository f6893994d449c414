"""A program of a test: what it is expected to be, its facts and findings, and its golden file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hlo_inspect.api import inspect
from hlo_inspect.checks.config import Config
from hlo_inspect.checks.ignores import without_ignored
from hlo_inspect.checks.lint_config import RuleSelection
from hlo_inspect.checks.needed_passes import passes_for
from hlo_inspect.checks.policy import Assertion, Policy, assertion_in, given, resolve
from hlo_inspect.checks.runner import CHECK_COMPILED, CheckResult, CheckRun, counts_collectives
from hlo_inspect.errors import HloInspectError, InputError, UnknownFactError, did_you_mean, printable
from hlo_inspect.findings.reading_problems import truncation
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.passes import FINDINGS, all_specs, specs_about
from hlo_inspect.passes.partitioning import lacks_collectives
from hlo_inspect.report.facts import fact_names, find_spec
from hlo_inspect.report.formats.terminal import table_text
from hlo_inspect.report.model import Finding, Report, Severity, reaching
from hlo_inspect.report.render_options import RenderOptions, with_relative_paths
from hlo_inspect.report.table import Table, Value, number_of

MAX_LINES = 16
"""Lines of a failure: with those that pytest adds it fits in 25."""

WIDTH = 100
_RULE = "─"


class BeforePartitioningError(pytest.fail.Exception):  # type: ignore[name-defined, misc]
    """A question about the collectives of a program that is not partitioned yet: `.compile()` makes the one that runs."""


class GoldenPlace(NamedTuple):
    """Folder of the test's file, and True if golden files are written."""

    folder: Path
    updates: bool = False


def check_facts(assertions: Sequence[Assertion]) -> None:
    """Raise UsageError for a fact that does not exist, or an expectation that does not fit it."""
    for assertion in assertions:
        if assertion.rows is None:
            resolve(assertion, specs_about(assertion.fact.scalar))


class HloProgram:
    """A program of a test. Each question inspects it, for no more than its answer needs.

    A text that is truncated or unreadable fails the test: it never passes.
    """

    def __init__(self, source: Openable, options: Mapping[str, Any], config: Config, place: GoldenPlace) -> None:
        self._source = source
        self._options = dict(options)
        self._config = config
        self._place = place
        self._reports: dict[tuple[str, ...], Report] = {}

    def __repr__(self) -> str:
        return "<program of a test>"

    def expect(self, *conditions: str) -> HloProgram:
        """Fail the test unless all conditions hold: `"collectives.all-gather.executed_count == 0"`. Return the program.

        Conditions are those of `hlo-inspect check --assert`: on facts and on rows of tables.
        """
        __tracebackhide__ = True
        try:
            assertions = [assertion_in(given("expect", text)) for text in conditions]
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        if not assertions:
            raise pytest.UsageError("expect takes conditions, such as 'params.donated_bytes >= 180 MiB'")
        self.expect_all(assertions)
        return self

    def expect_all(self, assertions: Sequence[Assertion]) -> None:
        """Fail the test unless all assertions hold."""
        __tracebackhide__ = True
        policy = Policy(tuple(assertions))
        try:
            report = self._report(tuple(passes_for(policy)))
            (outcome,) = CheckRun(policy).outcomes([report])
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        failed = [result for result in outcome.results if not result.passed]
        if any(result.reason == CHECK_COMPILED for result in failed):
            raise _before_partitioning(result.check for result in failed if result.reason == CHECK_COMPILED)
        if failed:
            pytest.fail(_failure_text(report.module_name, failed, len(outcome.results)), pytrace=False)

    @property
    def facts(self) -> Mapping[str, Value]:
        """Facts by name, each computed on request; None if the value is unknown. A misspelt name raises UnknownFactError."""
        return _Facts(self)

    def fact(self, name: str) -> Value:
        """Return the value of a fact. Raise BeforePartitioningError if it is about collectives that are not there yet."""
        __tracebackhide__ = True
        specs = specs_about(name)
        if find_spec(name, specs) is None:
            raise UnknownFactError(f"there is no fact {name!r}{did_you_mean(name, fact_names(specs), cutoff=0.4)}")
        policy = Policy((assertion_in(given("facts", f"{name} known")),))
        try:
            report = self._report(tuple(passes_for(policy)))
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        if counts_collectives(name) and lacks_collectives(report):
            raise _before_partitioning([name])
        return report.facts[name]

    def findings(self, *rules: str, least: Severity = "info") -> list[Finding]:
        """Return the findings of these rules (codes, names, globs; all without any) that have severity `least` or a higher one.

        Findings that the configuration ignores are left out.
        """
        __tracebackhide__ = True
        selection = RuleSelection(rules or self._config.lint.selection.select, self._config.lint.selection.ignore)
        try:
            selection.check()
            report = self._report((FINDINGS,))
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        return reaching(without_ignored(selection.of_findings(report.findings), self._config.lint.ignores), least)

    def golden(self, name: str) -> HloProgram:
        """Fail the test unless the normal text of the program is that of the file `name` beside the test. Return the program.

        `pytest --hlo-update` writes the file.
        """
        __tracebackhide__ = True
        from hlo_inspect.testing.golden import compare_with_golden

        try:
            difference = compare_with_golden(self._source, self._options, self._place.folder / name, self._place.updates)
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        if difference:
            pytest.fail(difference, pytrace=False)
        return self

    def _report(self, passes: tuple[str, ...]) -> Report:
        """Inspect the program. Raise InputError if its text is truncated, or holds no whole module."""
        if passes not in self._reports:
            report = inspect(self._source, passes, **self._options)
            cut = truncation(report)
            if cut is not None:
                raise InputError(f"{report.module_name} is truncated: its answers would be incomplete", cut.location)
            self._reports[passes] = report
        return self._reports[passes]


def _before_partitioning(figures: Iterable[str]) -> BeforePartitioningError:
    return BeforePartitioningError(f"BeforePartitioningError: {', '.join(figures)}: {CHECK_COMPILED}", pytrace=False)


def _failure_text(module: str, failed: Sequence[CheckResult], number: int) -> str:
    """Return the text about failed conditions of a module, `number` of which were checked."""
    lines = [f"{printable(module)}: {len(failed)} of {number_of(number, 'condition')} failed"]
    shown = list(failed[: MAX_LINES - 2])
    free = MAX_LINES - 1 - len(shown)
    for position, result in enumerate(shown):
        lines.append(f"  {printable(result.message)}")
        room = free // (len(shown) - position)
        rows = _broken_rows(result.broke, room) if result.broke is not None else []
        lines += rows
        free -= len(rows)
    if len(failed) > len(shown):
        lines.append(f"  {len(failed) - len(shown)} more")
    return "\n".join(lines)


def _broken_rows(table: Table, room: int) -> list[str]:
    """Return heading and first rows of a table, in `room` lines at most. The last row sums the others."""
    if room < 2:
        return []
    (shown,) = with_relative_paths([table.top(max(room - 2, 1))])
    text = table_text(shown, RenderOptions(width=WIDTH)).splitlines()[1:]
    lines = [line for line in text if not line.startswith(_RULE)]
    total = 1 if table.total is not None else 0
    return [f"    {line}" for line in lines[: len(lines) - total][:room]]


class _Facts(Mapping[str, Value]):
    def __init__(self, program: HloProgram) -> None:
        self._program = program

    def __getitem__(self, name: str) -> Value:
        __tracebackhide__ = True
        return self._program.fact(name)

    def __iter__(self) -> Iterator[str]:
        return fact_names(all_specs())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "<facts of a program>"
