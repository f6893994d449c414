"""The work of custom calls: formulas of users, the template for them, and attention. Other calls are in tests/cases."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.cases.case import FOLDER, cases_of

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "configs/custom_calls/example.yaml"

KERNELS = next(cases_of(FOLDER / "passes/custom_calls/kernels.hlo")).text


def inspect(text: str | Path, rules: Path | None = None) -> Report:
    return hlo_inspect.inspect(text, "custom-calls", custom_calls=str(rules) if rules is not None else None)


def test_the_rules_of_the_example() -> None:
    """4 · 32 FLOPs and 32 / 8 reciprocal roots; 2 · 4 · 8 · 2."""
    report = inspect(KERNELS, EXAMPLE)
    facts = report.facts
    assert facts["custom_calls.flops.lower_bound"] == 128 + 128
    assert facts["custom_calls.matmul_flops.lower_bound"] == 128
    assert facts["custom_calls.transcendentals.lower_bound"] == 4
    assert facts["custom_calls.unknown_count"] == 1
    assert [row[1] for row in report.table("unknown_custom_calls").rows] == ["other"]


def test_the_printed_template_is_a_readable_file(tmp_path: Path) -> None:
    """With the formulas that stand there nothing is unknown."""
    (passage,) = inspect(KERNELS).passages
    (tmp_path / "mine.yaml").write_text(passage.text, encoding="utf-8")
    facts = inspect(KERNELS, tmp_path / "mine.yaml").facts
    assert (facts["custom_calls.unknown_count"], facts["custom_calls.flops"]) == (0, 0)
    assert inspect(DATA / "handmade/custom_calls.txt").passages == ()


def test_transfers_to_the_host_have_a_line_of_their_own() -> None:
    report = inspect(DATA / "handmade/custom_calls.txt")
    assert report.table("host_transfers").records() == [
        {"target": "MoveToHost", "count": 1, "runs": 1, "runs_lower_bound": 1, "bytes": 131_072, "bytes_lower_bound": 131_072}
    ]


@pytest.mark.parametrize(
    ("formula", "message", "column"),
    [
        ("2 * speed", "unknown name 'speed'", 20),
        ("1 / 0", "divides by zero", 16),
        ("2 *", "expected a number, found the end", 19),
        ("(1 + 2", "expected ')', found the end", 22),
        ("2 $ 3", "'$ 3' is no part of a formula", 18),
        ("1 2", "'2' does not fit here", 18),
        ("1 + " * 2500 + "1", "at most 1,000 characters, this one 10,001", 16),
        ("(" * 60 + "1" + ")" * 60, "deeper than 50", 67),
    ],
)
def test_a_formula_that_cannot_be_read(tmp_path: Path, formula: str, message: str, column: int) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text(f'custom_calls:\n  - target: "k*"\n    flops:     {formula}\n', encoding="utf-8")
    with pytest.raises(hlo_inspect.UsageError, match=r".") as caught:
        inspect(KERNELS, rules)
    location = caught.value.location
    assert message in caught.value.message
    assert location is not None
    assert (location.path, location.line, location.column) == (str(rules), 3, column)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("flops: 1", "missing key: target"),
        ("target: k", "no formula"),
        ("{target: k, flop: 1}", "did you mean 'flops'"),
        ("{target: k, flops: [1]}", "expected a formula"),
    ],
)
def test_an_entry_that_cannot_be_read(tmp_path: Path, entry: str, message: str) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text(f"custom_calls:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(hlo_inspect.UsageError, match=r"mine\.yaml:2") as caught:
        inspect(KERNELS, rules)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("operands[7].elements", "operand 7 is missing"),
        ("operands[0].dims[9]", "dimension 9"),
        ("results[3].bytes", "it has no results[3]"),
        ("config.speed", "no speed"),
        ("1 / (config.grid - 4)", "divides by zero"),
        ("0 - result.elements", "makes no sense"),
    ],
)
def test_a_formula_that_a_call_does_not_fit(tmp_path: Path, formula: str, fault: str) -> None:
    """The work of that call is unknown, and a finding says why."""
    rules = tmp_path / "mine.yaml"
    rules.write_text(f'custom_calls:\n  - target: "__gpu$*"\n    kernel: other\n    flops: {formula}\n', encoding="utf-8")
    report = inspect(KERNELS, rules)
    assert report.facts["custom_calls.unknown_count"] == 3
    (finding,) = [candidate for candidate in report.findings if candidate.rule == "HI503"]
    assert fault in finding.message
    assert f"{rules}:2" in finding.message


ATTENTION = DATA / "handmade/attention_in_a_loop.txt"


def test_a_bound_uses_the_pairs_that_the_mask_lets_through() -> None:
    """126 times 2,199,291,691,008 FLOPs at 989.4 TFLOP/s, and one addition and comparison a layer."""
    facts = hlo_inspect.inspect(ATTENTION, "cost", profile="h100-sxm").facts
    assert facts["time.compute_s"] == pytest.approx(126 * 2_199_291_691_008 / 989.4e12, rel=1e-3)
    assert facts["cost.executed_matmul_flops"] == 126 * 4_398_046_511_104


def test_the_first_lines_say_what_is_attention() -> None:
    (compute,) = [row for row in hlo_inspect.inspect(ATTENTION, "summary").headline if row.label == "compute"]
    amounts = [part.value for part in compute.parts if not isinstance(part, str)]
    assert amounts[:3] == [126 * 4_398_046_511_104] * 2 + [126 * (4_398_046_511_104 - 2_199_291_691_008)]
    assert " of it attention" in compute.parts


def test_the_printed_template_is_yaml_for_any_target() -> None:
    """XLA prints a target's text with escapes; a damaged dump may hold the bytes themselves."""
    text = 'HloModule m\n\nENTRY e {\n  ROOT a = f32[] custom-call(), custom_call_target="t\x10 \\"x"\n}\n'
    report = hlo_inspect.inspect(text, "custom-calls")
    assert "\x10" not in repr(report)
    (passage,) = report.passages
    assert yaml.safe_load(passage.text)["custom_calls"][0]["target"] == 't\x10 "x'
