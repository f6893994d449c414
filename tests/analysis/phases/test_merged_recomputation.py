"""Phases of a step whose recomputation the compiler merged with the forward pass, and of its twin that computes again."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect

PLANTED = Path(__file__).parents[2] / "data" / "planted"
PRODUCT = 2 * 2048 * 1024 * 1024
"""FLOPs of one layer's product on one device."""


@pytest.mark.parametrize(
    ("name", "forward", "recompute", "backward"),
    [
        ("fault", 4, 0, 4 + 3),  # the input of the first layer needs no gradient
        ("mended", 4, 4, 4 + 4),  # a scan computes that one too
    ],
)
def test_nothing_is_computed_again_if_names_of_recomputation_are_on_the_forward_pass(
    name: str, forward: int, recompute: int, backward: int
) -> None:
    report = hlo_inspect.inspect(PLANTED / f"missing-recomputation.cpu.{name}.hlo.xz", "cost")
    by_phase = {row["phase"]: row["matmul_flops"] for row in report.table("cost_by_phase").records()}
    assert by_phase["forward"] == forward * PRODUCT
    assert by_phase.get("recompute", 0) == recompute * PRODUCT
    assert by_phase["backward"] == backward * PRODUCT
