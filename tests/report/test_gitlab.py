"""GitLab's code quality report: the fields, values and uniqueness that its documentation states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.report.ci_runs import FAILING, GATHERS, HOLDING, UNDECIDED, checked, linted

SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def read(text: str) -> list[dict[str, Any]]:
    """Read the output of the format "gitlab", and hold it to the documentation."""
    assert not text.startswith("\ufeff")
    entries = json.loads(text)
    assert isinstance(entries, list)
    for entry in entries:
        assert entry.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert all(isinstance(entry[field], str) and entry[field] for field in entry.keys() - {"location"})
        assert entry["severity"] in SEVERITIES
        path, line = entry["location"]["path"], entry["location"]["lines"]["begin"]
        assert not path.startswith(("/", "./"))
        assert isinstance(line, int)
        assert line >= 1
    fingerprints = [entry["fingerprint"] for entry in entries]
    assert len(set(fingerprints)) == len(fingerprints)
    return entries


def test_failed_checks_are_critical() -> None:
    entries = read(checked("gitlab", FAILING, HOLDING, UNDECIDED))
    assert [(entry["check_name"], entry["severity"]) for entry in entries] == [
        ("failed-check", "critical"),
        ("unknown-value", "critical"),
    ]


def test_warnings_are_major_and_equal_ones_all_shown(tmp_path: Path) -> None:
    entries = read(linted("gitlab", GATHERS, tmp_path))
    assert [entry["severity"] for entry in entries] == ["major", "major"]
    assert entries[0]["location"]["path"] == "hlo/step.txt"


def test_an_empty_report_is_an_empty_list() -> None:
    assert read(checked("gitlab", HOLDING)) == []
