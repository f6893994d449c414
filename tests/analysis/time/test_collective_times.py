"""The all-reduces of a real training step, worked out by hand. tests/cases/analysis/time has those of small programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from tests.tables import columns

GPT = Path(__file__).parents[4] / "shared/dumps/seeds/001_f260b7b1b8c886c1.txt"


@pytest.mark.skipif(not GPT.is_file(), reason="the dump is not there")
def test_the_all_reduces_of_a_real_training_step() -> None:
    """2 nodes of 8 A100. Axis of 8: 40 all-reduces over NVLink, 2·7/8 of 318,799,872 bytes at 300 GB/s.

    Axis of 2, which crosses nodes: 3 all-reduces of 45,399,040, 106,496 and 4 bytes. They send 2·1/2 of that at the 25 GB/s of
    a device's own adapter.
    """
    report = hlo_inspect.inspect(GPT, ("time", "collectives"), profile="a100-sxm-80gb")
    rows: list[tuple[Any, ...]] = columns(report.table("collectives"), "axis", "level", "operand_bytes", "bound_s")
    assert {(axis, level) for axis, level, *_ in rows} == {("d0", "network"), ("d1", "nvlink")}
    assert sorted(size for axis, _, size, _ in rows if axis == "d0") == [4, 106_496, 45_399_040]
    assert sorted(size for axis, _, size, _ in rows if axis == "d1") == [8192, 16384, *[8_388_608] * 37, 8_396_800]
    busy = {axis: sum(seconds for other, _, _, seconds in rows if other == axis) for axis in ("d0", "d1")}
    assert busy == pytest.approx({"d0": 45_505_540 / 25e9, "d1": 318_799_872 * 1.75 / 300e9})
    assert report.facts["time.collective_s"] == pytest.approx(45_505_540 / 25e9 + 318_799_872 * 1.75 / 300e9)
    resources = {row["resource"]: row["busy_s"] for row in report.table("resources").records()}
    assert resources["nvlink"] == pytest.approx(1.8596659e-3, rel=1e-7)
    assert resources["network"] == pytest.approx(1.8202216e-3, rel=1e-7)
    assert hlo_inspect.inspect(GPT, "cost").facts["cost.executed_matmul_flops"] == 631_360_192_512
