"""SARIF: its form by the standard's schema, if there is one; its sense by hand, which no schema knows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.report.ci_runs import FAILING, GATHERS, HOLDING, UNDECIDED, checked, linted, rendered

SCHEMA = os.environ.get("HLO_INSPECT_SARIF_SCHEMA", "")
"""File of the standard's JSON schema; `.ci/run` brings it."""


def run_of(text: str) -> dict[str, Any]:
    (run,) = json.loads(text)["runs"]
    assert isinstance(run, dict)
    return run


@pytest.mark.extras("HLO_INSPECT_SARIF_SCHEMA")
def test_the_schema_of_the_standard_takes_it_and_refuses_a_damaged_file(tmp_path: Path) -> None:
    schema = json.loads(Path(SCHEMA).read_text(encoding="utf-8"))
    for text in (checked("sarif", FAILING, HOLDING, UNDECIDED), linted("sarif", GATHERS, tmp_path), checked("sarif", HOLDING)):
        jsonschema.validate(json.loads(text), schema)
    damaged = json.loads(checked("sarif", FAILING))
    damaged["runs"][0]["results"][0]["level"] = "info"
    with pytest.raises(jsonschema.ValidationError, match="info"):
        jsonschema.validate(damaged, schema)


def test_a_result_has_rule_level_and_message() -> None:
    run = run_of(checked("sarif", FAILING, HOLDING, UNDECIDED))
    failed, undecided = run["results"]
    assert (failed["ruleId"], failed["level"]) == ("HI092", "error")
    assert failed["message"]["text"] == f"jit_step: {FAILING.removesuffix(' == 0')} is 1, expected == 0"
    assert (undecided["ruleId"], undecided["level"]) == ("HI090", "error")
    for result in run["results"]:
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["help"]["markdown"].startswith("## What it finds")
    assert run_of(checked("sarif", HOLDING))["results"] == []


def test_the_place_is_the_line_of_python_if_it_lies_in_the_repository(tmp_path: Path) -> None:
    """The dump says /train/programs.py: of that path programs.py exists below the root, in a folder of another machine too."""
    (place,) = run_of(checked("sarif", FAILING, folder=tmp_path))["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "hlo/jit_step.txt"
    assert place["logicalLocations"] == [{"fullyQualifiedName": "jit_step"}]
    (tmp_path / ".git").mkdir()
    (tmp_path / "programs.py").touch()
    inside = tmp_path / "deeper"
    inside.mkdir()
    (place,) = run_of(checked("sarif", FAILING, folder=inside))["results"][0]["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "programs.py"}, "region": {"startLine": 66}}
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "programs.py").touch()
    (place,) = run_of(checked("sarif", FAILING, folder=tmp_path))["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "train/programs.py"}


def test_no_path_of_the_run_is_in_the_file(tmp_path: Path) -> None:
    text = linted("sarif", GATHERS, tmp_path)
    assert run_of(text)["results"]
    assert str(tmp_path) not in text
    assert "module_0003" not in text


def test_results_of_equal_findings_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    results = run_of(linted("sarif", GATHERS, tmp_path))["results"]
    fingerprints = [result["partialFingerprints"]["hloInspect/v1"] for result in results]
    assert len(fingerprints) == 2
    assert [fingerprint.rpartition(":")[2] for fingerprint in fingerprints] == ["1", "2"]
    assert len({fingerprint.rpartition(":")[0] for fingerprint in fingerprints}) == 1
    assert all(len(set(result["partialFingerprints"].values())) == 1 for result in results)


def test_large_stakes_come_before_small(tmp_path: Path) -> None:
    smaller = GATHERS.replace("g = f32[2097152]{0} all-gather(a)", "g = f32[1048576]{0} all-gather(a2)").replace(
        "  g =", "  a2 = f32[262144]{0} broadcast(one), dimensions={}\n  g ="
    )
    messages = [result["message"]["text"] for result in run_of(linted("sarif", smaller, tmp_path))["results"]]
    assert [message.partition(": sends")[0] for message in messages] == ["step: h", "step: g"]


def test_an_ignored_finding_is_suppressed_with_its_reason(tmp_path: Path) -> None:
    entry = '[[tool.hlo-inspect.lint.ignores]]\nrule = "constant-collective"\nreason = "kept for the decoder"\n'
    (tmp_path / "pyproject.toml").write_text(entry, encoding="utf-8")
    results = run_of(linted("sarif", GATHERS, tmp_path))["results"]
    assert [result["suppressions"] for result in results] == [
        [{"kind": "external", "justification": "kept for the decoder"}]
    ] * 2


def test_the_name_of_a_module_is_a_safe_path() -> None:
    (result,) = run_of(rendered("sarif", "text", module="../../a b"))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "hlo/..%2F..%2Fa%20b.txt"
