"""`summary --facts`: the facts of the first lines as a policy, and single lines of it as assertions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.checks.policy import parse_assertion
from hlo_inspect.checks.screen_facts import rounded_up
from hlo_inspect.report.table import Unit
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
FSDP = DATA / "cpu/scan_fsdp.after.txt"


def test_the_facts_are_a_policy_that_the_module_passes(tmp_path: Path) -> None:
    printed = call_text("summary", "--facts", FSDP, "--profile", "h100-sxm")
    assert printed.returncode == 0
    policy = tmp_path / "policy.yaml"
    policy.write_text(printed.stdout, encoding="utf-8")
    checked = call_text("check", FSDP, "--policy", policy, "--profile", "h100-sxm")
    assert checked.returncode == 0, checked.stdout
    assert f"{len(printed.stdout.splitlines()) - 1} checks" in checked.stdout


def test_values_are_those_of_the_text() -> None:
    lines = call_text("summary", "--facts", FSDP).stdout.splitlines()
    assert lines[0].startswith("checks:  # jit_step, ")
    # 3 layers: an all-gather forward and one recomputed, a reduce-scatter; one all-reduce of a gradient, one of the loss
    assert "  collectives.executed_count: 11" in lines
    # all-gathers and reduce-scatters send half of 256 B each time; all-reduce of 384 B in groups of 4: 576 B; of 4 B in 8: 7 B
    assert 1.69 * 1024 < 9 * 128 + 576 + 7 < 1.70 * 1024
    assert "  collectives.executed_wire_bytes: <= 1.70 KiB" in lines
    assert "  collectives.phase.recompute.executed_wire_bytes: <= 384 B" in lines  # three all-gathers of 128 B
    assert '  mesh.shape: "2x4"' in lines
    assert "  params.donated_bytes: 384" in lines  # f32[3,4,8]
    assert not any(line.startswith("  time.") for line in lines)


def test_unknown_facts_are_comments() -> None:
    lines = call_text("summary", "--facts", DATA / "handmade/cut_off.txt").stdout.splitlines()
    assert any(line.startswith("  # ") and ": unknown" in line for line in lines)
    assert all(line.startswith(("  ", "checks:")) for line in lines)


@pytest.mark.parametrize(
    ("value", "unit", "limit"),
    [
        (250.865e-6, "seconds", "250.9 µs"),
        (250.9e-6, "seconds", "250.9 µs"),
        (250.901e-6, "seconds", "251.0 µs"),
        (9.999999e-3, "seconds", "10.0 ms"),
        (1e-13, "seconds", "1e-13 s"),
        (2 << 20, "bytes", "2.00 MiB"),
        ((2 << 20) + 1, "bytes", "2.01 MiB"),
        (1023 << 20, "bytes", "1023 MiB"),
        (999, "bytes", "999 B"),
    ],
)
def test_limits_have_the_digits_of_a_page_and_hold(value: float, unit: Unit, limit: str) -> None:
    assert rounded_up(value, unit) == limit


@pytest.mark.parametrize("format_options", [("--format", "json"), ("--table", "buffers")])
def test_formats_of_tables_have_no_lines_of_a_policy(format_options: tuple[str, str]) -> None:
    refused = call_text("summary", "--facts", FSDP, *format_options)
    assert refused.returncode == 2
    assert "--facts prints lines of a policy" in refused.stderr


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        ("collectives.count: 5", "collectives.count", "== 5"),
        ("time.step_s: <= 2 ms", "time.step_s", "<= 2 ms"),
        ("collectives[axis=d0].runs: 9", "collectives[axis=d0].runs", "== 9"),
        ("collectives.axis.data:(1)2.executed_count: 1", "collectives.axis.data:(1)2.executed_count", "== 1"),
        ("collectives.count==5", "collectives.count", "== 5"),
    ],
)
def test_a_line_of_a_policy_is_an_assertion(text: str, fact: str, expected: str) -> None:
    assertion = parse_assertion(text)
    assert (assertion.fact.scalar, str(assertion.expression)) == (fact, expected)
