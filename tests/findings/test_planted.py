"""Planted faults of `../shared/dumps/planted`: a fault fires its rule with the stated stake, its twin is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.findings import RULE_TABLE

PLANTED = Path(__file__).parents[3] / "shared" / "dumps" / "planted"


def pairs() -> list[dict[str, Any]]:
    if not PLANTED.is_dir():
        return []
    stated: list[dict[str, Any]] = json.loads((PLANTED / "expect.json").read_text(encoding="utf-8"))["pairs"]
    return [pair for pair in stated if pair["rule"] in RULE_TABLE]


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair["rule"])
def test_a_planted_fault_fires_its_rule_and_its_twin_is_silent(pair: dict[str, Any]) -> None:
    fault, mended = (
        [finding for finding in hlo_inspect.inspect(PLANTED / pair[which], "findings").findings if finding.name == pair["rule"]]
        for which in ("fault", "mended")
    )
    assert sum(finding.stake or 0 for finding in fault) == pytest.approx(pair["stake"], rel=0.01)
    assert {finding.stake_unit for finding in fault} == {pair["unit"]}
    assert pair["source"] in {finding.source for finding in fault}
    assert mended == []
