"""The facts of a module that every command gives, and many faults of a text. Others are in tests/cases/passes."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings.reading_problems import READING_PROBLEMS

DATA = Path(__file__).parents[1] / "data"
COMMANDS = ("summary", "params", "fusions", "collectives")

BODY = "ENTRY %main (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p)\n}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_module_without_a_header_is_called_after_its_entry(command: str) -> None:
    assert hlo_inspect.inspect(DATA / "handmade/headerless.txt", (command,)).facts["module.name"] == "module_only"


@pytest.mark.parametrize("command", COMMANDS)
def test_unreadable_lines_are_counted_if_all_lines_are_read(command: str) -> None:
    """Lines 5 and 7 are no instructions; who skips lines cannot know how many it could not have read."""
    report = hlo_inspect.inspect(DATA / "handmade/unreadable_lines.txt", (command,))
    reads_all = command in {"summary", "params", "fusions"}
    assert report.facts["module.unparsed_lines"] == (2 if reads_all else None)
    assert any(note.startswith("module.unparsed_lines:") for note in report.notes) != reads_all
    if reads_all:
        assert [(f.rule, f.location.line if f.location else None) for f in report.findings] == [("HI001", 5), ("HI001", 7)]


def test_bytes_that_are_no_text() -> None:
    text = f"HloModule m\n\n{BODY}".encode().replace(b"negate(%p)", b'negate(%p), metadata={op_name="\xff"}')
    (finding,) = hlo_inspect.inspect(text).findings
    assert (finding.rule, str(finding.location)) == ("HI005", "<text>:5")


def test_faults_of_one_kind_are_bounded() -> None:
    """Every fault counts; those beyond the first twenty are one finding that says how many they are."""
    lines = "".join(f"  %x.{n} = f32[4]{{0}} negate(%gone.{n})\n" for n in range(50))
    text = f"HloModule m\n\n{BODY.replace('  ROOT', f'{lines}  ROOT')}"
    findings = [finding for finding in hlo_inspect.inspect(text).findings if finding.rule == "HI008"]
    assert [finding.location.line for finding in findings[:20] if finding.location] == list(range(5, 25))
    assert len(findings) == 21
    assert findings[-1].message.startswith("30 more")


def test_each_rule_has_its_severity() -> None:
    errors = {"HI002", "HI007", "HI008", "HI009", "HI010", "HI014"}
    assert {page.code for page in READING_PROBLEMS if page.severity == "error"} == errors
    warnings = {f"HI{n:03}" for n in (1, 3, 4, 5, 6, 13, 15)}
    assert {page.code for page in READING_PROBLEMS if page.severity == "warning"} == warnings
