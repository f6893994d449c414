"""Planted faults: a fault fires its rule with the stated stake, its mended twin is silent.

Those of tests/data/planted are the project's own; those of `../shared/dumps/planted` are tried if they are there.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.findings import RULE_TABLE
from hlo_inspect.report.model import Finding

OWN = Path(__file__).parents[1] / "data" / "planted"
SHARED = Path(__file__).parents[3] / "shared" / "dumps" / "planted"
EXPECTED: dict[str, Any] = json.loads((OWN / "expected.json").read_text(encoding="utf-8"))
RULES = {
    *("sliced-all-reduce", "sliced-all-gather", "wide-collective", "constant-collective", "accumulated-all-reduce"),
    *("repeated-collective", "small-collectives", "invariant-collective", "involuntary-rematerialization"),
    *("replicated-weight", "missing-recomputation", "missing-offload", "copied-loop-carry", "copied-update-slice"),
    *("widened-matmul", "double-precision", "host-callback", "unsharded-batch"),
}
"""Rules with a pair."""
FLOPS = {"widened-matmul", "double-precision"}


def findings_of(rule: str, source: Path, *thresholds: str) -> list[Finding]:
    report = hlo_inspect.inspect(source, "findings", thresholds=thresholds)
    return [finding for finding in report.findings if finding.name == rule]


def source_of(pair: str, kind: str, folder: Path) -> Path:
    """Return the text of a pair. With the text before optimizations it is a file of a dump directory, as XLA writes it."""
    text, before = OWN / f"{pair}.{kind}.hlo.xz", OWN / f"{pair}.{kind}.before.hlo.xz"
    if not before.exists():
        return text
    for path, name in ((text, "cpu_after_optimizations"), (before, "before_optimizations")):
        (folder / f"module_0001.jit_run.{name}.txt").write_bytes(lzma.decompress(path.read_bytes()))
    return folder / "module_0001.jit_run.cpu_after_optimizations.txt"


def test_each_rule_has_a_pair() -> None:
    assert {pair.partition(".")[0] for pair in EXPECTED} == RULES
    assert RULE_TABLE.keys() >= RULES


@pytest.mark.parametrize("pair", EXPECTED)
def test_a_fault_fires_its_rule_and_its_twin_is_silent(pair: str, tmp_path: Path) -> None:
    rule, stake = pair.partition(".")[0], EXPECTED[pair]["stake"]
    source = source_of(pair, "fault", tmp_path)
    fault = findings_of(rule, source)
    assert sum(finding.stake or 0 for finding in fault) == stake
    assert {finding.stake_unit for finding in fault} == {"flops" if rule in FLOPS else "bytes"}
    assert {finding.severity for finding in fault} == {"warning"}
    sources = {finding.source for finding in fault if finding.source is not None}
    assert all(source.startswith("/train/make_planted.py:") for source in sources)
    if rule != "host-callback":  # each call is a finding
        least = min(int(finding.stake or 0) for finding in fault)
        assert findings_of(rule, source, f"{rule}={least}") == fault
        assert len(findings_of(rule, source, f"{rule}={least + 1}")) < len(fault)
    assert findings_of(rule, source_of(pair, "mended", tmp_path)) == []


@pytest.mark.parametrize("pair", [pair for pair in EXPECTED if EXPECTED[pair]["made"] == "compiled"])
def test_no_new_rule_warns_on_a_mended_program(pair: str, tmp_path: Path) -> None:
    findings = hlo_inspect.inspect(source_of(pair, "mended", tmp_path), "findings").findings
    assert [finding.name for finding in findings if finding.name in RULES] == []


@pytest.fixture
def own_texts() -> tuple[list[str], list[str]]:
    """Return the texts of the same faults from two compilers."""
    older = sorted((OWN / "jax_0_9_2").iterdir())
    return [str(OWN / path.name) for path in older], [str(path) for path in older]


def test_another_compiler_finds_nothing_new(
    own_texts: tuple[list[str], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer, older = own_texts
    baseline = str(tmp_path / "baseline.json")
    assert run(["lint", *newer, "--baseline", baseline, "--update-baseline"]) == 0
    assert run(["lint", *older, "--baseline", baseline]) == 0
    normalized = []
    for number, path in enumerate(older):
        normalized.append(str(tmp_path / f"{number}.txt"))
        assert run(["normalize", path, "-o", normalized[-1]]) == 0
    assert run(["lint", *normalized, "--baseline", baseline]) == 0
    capsys.readouterr()


def test_one_more_fault_is_new(
    own_texts: tuple[list[str], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer, older = own_texts
    baseline = str(tmp_path / "baseline.json")
    accepted = [path for path in newer if "sliced-all-gather" not in path]
    assert run(["lint", *accepted, "--baseline", baseline, "--update-baseline"]) == 0
    capsys.readouterr()
    assert run(["lint", *older, "--baseline", baseline, "--format", "json"]) == 1
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [finding["name"] for report in reports for finding in report["findings"]] == ["sliced-all-gather"]


def shared_pairs() -> list[dict[str, Any]]:
    if not SHARED.is_dir():
        return []
    stated: list[dict[str, Any]] = json.loads((SHARED / "expect.json").read_text(encoding="utf-8"))["pairs"]
    return [pair for pair in stated if pair["rule"] in RULE_TABLE]


@pytest.mark.parametrize("pair", shared_pairs(), ids=lambda pair: pair["rule"])
def test_the_shared_faults(pair: dict[str, Any]) -> None:
    fault, mended = (findings_of(pair["rule"], SHARED / pair[kind]) for kind in ("fault", "mended"))
    assert sum(finding.stake or 0 for finding in fault) == pytest.approx(pair["stake"], rel=0.01)
    assert {finding.stake_unit for finding in fault} == {pair["unit"]}
    assert pair["source"] in {finding.source for finding in fault}
    assert mended == []
