"""JUnit XML as junitparser reads it: a case for each assertion or rule."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from io import StringIO
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from tests.calling import call_text
from tests.report.ci_runs import ADAMW, DATA, FAILING, GATHERS, HOLDING, UNDECIDED, checked, linted


def suites_of(text: str) -> list[TestSuite]:
    """Return the suites, after a look at their sums, which no reader compares."""
    suites = list(JUnitXml.fromstring(text.encode()))
    for suite in suites:
        cases = list(suite)
        kinds = [type(result) for case in cases for result in case.result]
        assert (suite.tests, suite.failures, suite.errors) == (len(cases), kinds.count(Failure), kinds.count(Error))
        names = [(case.classname, case.name) for case in cases]
        assert len(set(names)) == len(names)
    return suites


def cases_of(text: str) -> dict[str, TestCase]:
    return {case.name: case for suite in suites_of(text) for case in suite}


def test_an_assertion_is_a_case() -> None:
    cases = cases_of(checked("junit", FAILING, HOLDING, UNDECIDED))
    assert list(cases) == [FAILING, UNDECIDED, HOLDING]
    assert {case.classname for case in cases.values()} == {"jit_step"}
    (failure,), (error,) = cases[FAILING].result, cases[UNDECIDED].result
    assert isinstance(failure, Failure)
    assert failure.message == "1, expected == 0"
    assert "all-reduce.4" in failure.text
    assert "programs.py:66" in failure.text
    assert isinstance(error, Error)
    assert cases[HOLDING].result == []


def test_a_collective_before_partitioning_is_an_error() -> None:
    cases = cases_of(checked("junit", HOLDING, dump=DATA / "cpu" / "adamw_step.before.txt"))
    (error,) = cases[HOLDING].result
    assert isinstance(error, Error)
    assert ".compile()" in error.message


def test_a_rule_that_is_not_decided_is_skipped() -> None:
    """Optimized texts of jax 0.12 print no shardings."""
    cases = cases_of(call_text("lint", DATA / "jax_0_12" / "bf16_master.after.txt", "--format", "junit").stdout)
    skipped = {name: case.result[0].message for name, case in cases.items() if any(isinstance(r, Skipped) for r in case.result)}
    message = "not decided: the module does not tell enough"
    assert skipped == {"HI104 replicated-weight": message, "HI506 replicated-optimizer-state": message}


def test_a_rule_is_a_case_and_fails_as_the_run_does(tmp_path: Path) -> None:
    """Without --fail-on nothing fails; the findings are the output of their case."""
    case = cases_of(linted("junit", GATHERS, tmp_path))["HI210 constant-collective"]
    assert case.result == []
    assert case.system_out.count("sends constants") == 2
    failed = cases_of(linted("junit", GATHERS, tmp_path, "--fail-on", "warning"))
    assert [name for name, case in failed.items() if case.result] == ["HI210 constant-collective"]


def test_the_input_is_in_the_class_if_there_are_several() -> None:
    done = call_text("check", ADAMW, DATA / "cpu/sgd_unused.after.txt", "--assert", HOLDING, "--format", "junit")
    classes = {case.classname for suite in suites_of(done.stdout) for case in suite}
    assert classes == {"jit_step (adamw_step.after.txt)", "jit_step (sgd_unused.after.txt)"}


def test_control_characters_and_markup_of_a_dump_stay_text(tmp_path: Path) -> None:
    text = linted("junit", GATHERS.replace("HloModule step", "HloModule s<t>&\x1b[31m]]>"), tmp_path)
    assert "\x1b" not in text
    assert cases_of(text)


def test_the_reader_of_the_standard_library_agrees() -> None:
    tree = ET.parse(StringIO(checked("junit", FAILING, HOLDING)))  # noqa: S314 - our own output
    assert [case.get("name") for case in tree.iter("testcase")] == [FAILING, HOLDING]


def test_a_broken_file_is_refused() -> None:
    with pytest.raises(Exception, match=r"mismatch"):
        suites_of(checked("junit", FAILING).replace("</testcase>", ""))
