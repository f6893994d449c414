"""Custom calls of programs with known work, in dumps beside the checkout.

pytest collects nothing here if the folder is missing. Its README describes the figures; `null` is unknown here, never 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect

FOLDER = Path(__file__).parents[2] / "shared/dumps/custom_calls"

__test__ = FOLDER.is_dir()

EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expect.json").read_text(encoding="utf-8")) if __test__ else {}

FACTS = {
    "flops": "custom_calls.flops",
    "least_flops": "custom_calls.least_flops",
    "matmul_flops": "custom_calls.matmul_flops",
    "transcendentals": "custom_calls.transcendentals",
    "bytes_accessed": "custom_calls.bytes",
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_figures_of_custom_calls_are_the_expected_ones(name: str) -> None:
    figures, report = EXPECTED[name], hlo_inspect.inspect(FOLDER / name, "cost")
    if figures["derivable"] == "none":
        assert report.facts["cost.executed_matmul_flops"] == figures["matmul_flops"]
        figures = figures | {"matmul_flops": 0}
    wanted: dict[str, Any] = {fact: figures[field] for field, fact in FACTS.items() if field in figures}
    if figures.get("approximate"):
        wanted = {fact: pytest.approx(value, rel=0.01) for fact, value in wanted.items()}
    assert {fact: report.facts[fact] for fact in wanted} == wanted
    assert (report.facts["custom_calls.unknown_count"] == 0) == (figures["flops"] is not None)


def test_attention_flops_of_a_real_step() -> None:
    """Llama 3.1 405B has 126 layers. Each runs forward twice, because of recomputation, and backward once."""
    facts = hlo_inspect.inspect(FOLDER.parent / "real/hlo_llama31_405b_bf16_64x8.hlo.txt.xz", "cost").facts
    assert facts["cost.attention_flops"] == 126 * (2 * 4_398_046_511_104 + 10_995_116_277_760)
    assert facts["custom_calls.least_flops"] == 126 * (2 * 2_199_291_691_008 + 5_498_229_227_520)
    assert facts["custom_calls.unknown_count"] == 0
