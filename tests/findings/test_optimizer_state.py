"""The optimizer's state of a compiled program: the cost of its copies."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_program_of_two_times_four_devices(stage: str) -> None:
    """The batch is divided in two, the moments in four.

    With matrices of 2048 x 8192 there are four moments of 16 MiB on each device, half of which the other one has too. Before
    partitioning the text says 64 MiB.
    """
    text = (DATA / f"cpu/adamw_step.{stage}.txt").read_text(encoding="utf-8")
    sizes = {"[8,8]": "[2048,2048]"} if stage == "after" else {"[8,32]": "[2048,8192]", "[32,8]": "[8192,2048]"}
    for old, new in sizes.items():
        text = text.replace(old, new)
    (finding,) = (finding for finding in hlo_inspect.inspect(text, "optimizer").findings if finding.rule == "HI506")
    assert finding.stake == 4 * 8 << 20
    assert "(2 devices)" in finding.message
    assert "2 first moments and 2 second moments are replicated over mesh axis " in finding.message
