"""A fact, a table row and a finding depend on the module and the options, never on other passes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.findings import RULE_TABLE, RULES
from hlo_inspect.inspection import module_reports
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Table
from hlo_inspect.request import Request
from tests.calling import call

DATA = Path(__file__).parent / "data"
DUMPS = (
    "cpu/constants.after.txt",
    "cpu/scan_forward.before.txt",
    "cpu/sgd_unused.after.txt",
    "handmade/aliases.txt",
    "handmade/control_flow.txt",
    "handmade/custom_calls.txt",
    "handmade/cut_off.txt",
    "handmade/dynamic_shapes.txt",
    "handmade/memory_spaces.txt",
    "handmade/unreadable_lines.txt",
    "prints/large_constants.txt",
    "tpu/between_slices.after.txt",
)
PROFILES = (None, "h100-sxm")
NAMES = PASSES.names
COUNTING = ("summary", "memory", "time")
"""The passes whose reports have the findings of all rules."""


def reports_of(dumps: Iterable[str], passes: str | tuple[str, ...], profile: str | None) -> dict[str, Report]:
    """Return the report of each dump."""
    with Inspection(Request(passes, profile=profile)) as inspection:
        return {dump: next(inspection.reports(DATA / dump)) for dump in dumps}


@cache
def alone(name: str, profile: str | None) -> dict[str, Report]:
    """Return the report of each dump with one pass."""
    return reports_of(DUMPS, name, profile)


def different_facts(first: Report, second: Report) -> set[str]:
    """Return the facts whose values another report lacks, except the lines that a command skips."""
    return {name for name, value in first.facts.items() if second.facts.get(name, "absent") != value} - {
        "module.unparsed_lines"
    }


def contents(tables: Iterable[Table]) -> list[tuple[Any, ...]]:
    return [(table.name, [column.name for column in table.columns], table.rows) for table in tables]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", NAMES)
def test_passes_give_the_same_report_alone_and_together(name: str, profile: str | None) -> None:
    """All ordered pairs of passes are compared, each on every sixth dump."""
    for number, other in enumerate(other for other in NAMES if other != name):
        for dump, both in reports_of(DUMPS[number % 6 :: 6], (name, other), profile).items():
            first, second = (alone(each, profile)[dump] for each in (name, other))
            assert (other, dump, different_facts(first, both) | different_facts(second, both)) == (other, dump, set())
            assert contents(both.tables) == contents((*first.tables, *second.tables)), (other, dump)
            assert set(both.findings) == {*first.findings, *second.findings}, (other, dump)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_fact_has_the_same_value_in_all_passes(profile: str | None) -> None:
    for dump in DUMPS:
        values: dict[str, set[object]] = {}
        for name in NAMES:
            for fact, value in alone(name, profile)[dump].facts.items():
                values.setdefault(fact, set()).add(value)
        assert {fact for fact, several in values.items() if len(several) > 1} <= {"module.unparsed_lines"}


@pytest.mark.parametrize("name", NAMES)
def test_a_command_gives_the_report_of_the_python_call(name: str) -> None:
    for dump in DUMPS[::2]:
        answer, report = command(name, DATA / dump), alone(name, None)[dump]
        assert answer["facts"] == dict(report.facts)
        assert [table["rows"] for table in answer["tables"]] == [list(map(list, table.flat().rows)) for table in report.tables]
        assert [finding["message"] for finding in answer["findings"]] == [finding.message for finding in report.findings]


# -- the option --quick -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", [*DUMPS[::3], "cpu/adamw_step.after.txt", "phases/two_layers.txt.xz"])
@pytest.mark.parametrize("name", ["summary", "params", "memory"])
def test_quick_changes_no_known_value(name: str, dump: str) -> None:
    quick, whole = (hlo_inspect.inspect(DATA / dump, name, quick=quick) for quick in (True, False))
    values = {fact: value for fact, value in quick.facts.items() if value is not None and not fact.endswith(".lower_bound")}
    assert values.items() <= whole.facts.items()
    reasons = {note.partition(":")[0] for note in quick.notes}
    absent = {spec.name for spec in quick.specs if spec.absent}  # for a reason that the list of facts gives
    assert {fact for fact, value in quick.facts.items() if value is None} <= reasons | absent
    assert set(quick.findings) <= set(whole.findings)
    assert {table.name for table in quick.tables} <= {table.name for table in whole.tables}


def test_quick_leaves_phases_unknown_if_names_do_not_tell() -> None:
    """The dump has no names, so the number of collectives of each phase is unknown, not 0."""
    text = re.sub(r", metadata=\{[^}]*\}", "", (DATA / "cpu/adamw_step.after.txt").read_text(encoding="utf-8"))
    quick, whole = (hlo_inspect.inspect(text, ("summary", "collectives"), quick=quick) for quick in (True, False))
    counts = [f"collectives.phase.{phase}.count" for phase in ("forward", "backward", "unknown")]
    assert [quick.facts[fact] for fact in counts] == [None] * 3
    assert [whole.facts[fact] for fact in counts] == [1, 1, 0]
    notes = "\n".join(quick.notes)
    assert all(f"{fact}: names leave this phase open, and --quick skips" in notes for fact in counts)
    assert {row["phase"] for row in quick.table("collectives").records()} == {None}
    assert "collectives_by_phase" not in {table.name for table in quick.tables}
    assert {row["phase"] for row in whole.table("collectives").records()} == {"forward", "backward"}


def test_quick_keeps_phases_if_names_alone_decide() -> None:
    """Collectives without a name have the phase `unknown`."""
    text = re.sub(r", metadata=\{[^}]*\}", "", (DATA / "cpu/adamw_step.after.txt").read_text(encoding="utf-8"))
    quick, whole = (hlo_inspect.inspect(text, "summary", phases="names", quick=quick) for quick in (True, False))
    facts = {name: value for name, value in whole.facts.items() if name.startswith("collectives.")}
    assert facts.items() <= quick.facts.items()
    assert facts["collectives.phase.unknown.count"] == 2


# -- findings ---------------------------------------------------------------------------------------------------------------


def command(*arguments: str | Path) -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(call(*arguments, "--format", "json").stdout)
    return answered


def findings_of(name: str, path: Path) -> list[tuple[str, str]]:
    """Return the findings that a command counts, in their order."""
    options = ("--fail-on", "info") if name == "check" else ()
    return [(finding["rule"], finding["message"]) for finding in command(name, path, *options)["findings"]]


def module_list_row(path: Path, *options: str) -> dict[str, Any]:
    """Return the row of the list of modules."""
    (table,) = command("list", path, *options)["tables"]
    (row,) = table["rows"]
    return dict(zip([column["name"] for column in table["columns"]], row, strict=True))


EXAMPLES = {rule.name: rule.page().example for rule in RULES if rule.page().example.startswith("HloModule")}


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a module that makes a rule fire."""
    path = tmp_path / "example.txt"
    path.write_text(EXAMPLES[request.param] + "\n", encoding="utf-8")
    return path


def test_all_commands_count_the_same_findings(example: Path) -> None:
    expected = findings_of("summary", example)
    assert [findings_of(name, example) for name in ("memory", "time", "check")] == [expected] * 3
    assert module_list_row(example)["findings"] == len(expected)
    statuses = [call(name, example, "--fail-on", "info").returncode for name in ("summary", "memory", "time", "list", "check")]
    assert statuses == [int(bool(expected))] * 5


def test_a_page_of_a_single_pass_names_it_in_its_findings(example: Path) -> None:
    """Its findings are a part of those of all rules."""
    expected = set(hlo_inspect.inspect(example).findings)
    for name in sorted(set(NAMES) - set(COUNTING)):
        report = hlo_inspect.inspect(example, name)
        assert set(report.findings) <= expected
        assert report.findings_scope.partition(" (")[0] == f" of {name}"  # some text prints no shardings
        assert not report.findings or f"Findings of {name}" in str(report)


def test_the_findings_line_counts_rules_that_quick_leaves_out(tmp_path: Path) -> None:
    """38 rules need more than single lines. In `list` the number of findings becomes a lower bound."""
    path = DATA / "cpu/sgd_unused.after.txt"
    line = "findings     0 errors, 0 warnings, 1 info (38 rules left out by --quick): HI102 unused-parameter"
    assert sum(entry.reads != "lines" for entry in RULE_TABLE.values()) == 38
    assert line in call("summary", path, "--quick").stdout.decode()
    row = module_list_row(path, "--quick")
    assert (row["findings"], row["findings_lower_bound"], row["warnings"], row["warnings_lower_bound"]) == (None, 1, None, 0)
    assert module_list_row(path)["findings"] == 1


def test_only_check_runs_costly_rules_on_a_large_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HI307 is a rule on device memory. Other commands leave it out of a large module."""
    path = tmp_path / "large.txt"
    path.write_text(EXAMPLES["large-constant"] + "\n", encoding="utf-8")
    whole = findings_of("summary", path)
    monkeypatch.setattr(module_reports, "LARGE_MODULE", 1)
    left = [findings_of(name, path) for name in COUNTING]
    assert left == [left[0]] * 3
    assert len(left[0]) < len(whole)
    assert findings_of("check", path) == whole
    assert (module_list_row(path)["findings"], module_list_row(path)["findings_lower_bound"]) == (None, len(left[0]))
    assert "14 rules left out above 1 instructions, `check --fail-on` runs all" in call("memory", path).stdout.decode()


def test_malformed_and_missing_attributes_are_findings() -> None:
    """`to_apply %add` is malformed. A missing attribute is a finding only of commands that depend on it."""
    text = "HloModule m, num_partitions=2\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n"
    text += "  a = f32[4]{0} all-reduce(p), replica_groups={{0,1}}, to_apply %add\n"
    text += "  ROOT d = f32[] dot(a, p)\n}\n"
    messages = {name: [f.message for f in hlo_inspect.inspect(text, name).findings if f.rule == "HI001"] for name in NAMES}
    malformed, missing = "a: expected an attribute", "d is printed without lhs_contracting_dims, which its cost depends on"
    assert messages["summary"] == messages["memory"] == messages["time"] == messages["cost"] == [malformed, missing]
    assert messages["collectives"] == messages["fusions"] == [malformed]
