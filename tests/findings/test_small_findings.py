"""Findings below the thresholds of their rules: `lint` says how many there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.findings import RULES, find_rule

GATHER = """HloModule step, replica_count=2

ENTRY main {
  p = f32[512,ROWS]{1,0} parameter(0)
  q = f32[512,128]{1,0} parameter(1)
  g = f32[1024,ROWS]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
  h = f32[1024,128]{1,0} all-gather(q), replica_groups={{0,1}}, dimensions={0}
  c = bf16[1024,ROWS]{1,0} convert(g), metadata={op_name="jit(f)/convert_element_type"}
  d = bf16[1024,128]{1,0} convert(h), metadata={op_name="jit(f)/convert_element_type"}
  ROOT t = (bf16[1024,ROWS], bf16[1024,128]) tuple(c, d)
}
"""
"""bf16 saves half of 512 x ROWS x 4 bytes: 128 KiB for 128 columns, 1 MiB for 1024."""


def lint(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[str], list[str]]:
    """Return the rules of the findings, and the notes on findings."""
    run(["lint", str(path), "--format", "json", *options])
    report = json.loads(capsys.readouterr().out)
    report = report["reports"][0] if "reports" in report else report
    return [finding["name"] for finding in report["findings"]], [note for note in report["notes"] if "below" in note]


def test_findings_below_a_threshold_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.hlo"
    path.write_text(GATHER.replace("ROWS", "1024"), encoding="utf-8")
    single = "1 finding below the thresholds of the rules (wide-collective 1); --threshold RULE=0 lists them"
    several = "2 findings below the thresholds of the rules (wide-collective 2); --threshold RULE=0 lists them"
    assert lint(path, capsys) == (["wide-collective"], [single])
    assert lint(path, capsys, "--threshold", "wide-collective=2MiB") == ([], [several])
    assert lint(path, capsys, "--threshold", "HI209=0") == (["wide-collective"] * 2, [])
    path.write_text(GATHER.replace("ROWS", "128"), encoding="utf-8")
    assert lint(path, capsys) == ([], [several])
    run(["lint", str(path)])
    assert several in " ".join(capsys.readouterr().out.split())


def test_one_page_of_several_modules_adds_them_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two findings of the first module are small, and one of the second, which has another."""
    for name, columns in (("first", "128"), ("second", "1024")):
        (tmp_path / f"{name}.hlo").write_text(GATHER.replace("ROWS", columns), encoding="utf-8")
    run(["lint", str(tmp_path)])
    page = " ".join(capsys.readouterr().out.split())
    assert page.count("below the thresholds") == 1
    assert "3 findings below the thresholds of the rules (wide-collective 3); --threshold" in page


def test_the_page_of_a_rule_says_its_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "HI209"]) == 0
    assert "1.00 MiB in one step on one device; --threshold wide-collective=SIZE sets another" in capsys.readouterr().out
    assert find_rule("HI104").threshold == "16.0 MiB"
    assert find_rule("HI401").threshold == "1.00 GFLOP"  # a product of 794 x 794 x 794
    assert {rule.name for rule in RULES if rule.threshold} == {rule.name for rule in RULES if rule.page().threshold}


def test_a_rule_without_a_threshold_has_none_on_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "HI510"]) == 0
    assert "Threshold" not in capsys.readouterr().out
