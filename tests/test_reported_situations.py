"""Situations of public reports that are more than a text: checks, texts within texts, a published step. Others are cases."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

import hlo_inspect
from tests.calling import call_text
from tests.cases.case import cases_of

SHARED = Path(__file__).parents[2] / "shared" / "dumps" / "newest"
WINDOW = next(cases_of(Path(__file__).parent / "cases/passes/time/window_of_unknown_length.hlo")).text


@pytest.mark.parametrize(("limit", "status"), [("80 us", 0), ("70 us", 1)])
def test_a_check_of_a_window_says_its_bounds_in_their_unit(limit: str, status: int) -> None:
    assertion = f"time.estimate_exposed_collective_s <= {limit}"
    done = call_text("check", "-", "--profile", "h100-sxm", "--assert", assertion, given=WINDOW)
    assert done.returncode == status
    assert "<= 75.0 µs" in done.stdout
    assert "e-05" not in done.stdout


@pytest.mark.skipif(not SHARED.is_dir(), reason="without the folder of shared dumps")
def test_a_published_step() -> None:
    """20 B parameters on 256 v5e: 13.6 s were published."""
    report = hlo_inspect.inspect(SHARED / "v5e_16b.txt.xz", "time")
    assert report.profile == "tpu-v5e"
    estimate = report.facts["time.estimate_step_s"]
    estimate = report.facts["time.estimate_step_s.lower_bound"] if estimate is None else estimate
    assert estimate == pytest.approx(13.6, rel=0.05)
    names = {row["part"] for row in report.table("step").records()}
    assert "longer kernels or exposed work" not in names  # which is a rest of rounding there


GATHER = (
    "HloModule jit_fit, is_scheduled=true, num_partitions=2",
    "",
    "ENTRY %main (x: f32[8,16]) -> f32[16,16] {",
    '  %x = f32[8,16]{1,0} parameter(0), metadata={op_name="x"}',
    "  ROOT %g = f32[16,16]{1,0} all-gather(%x), replica_groups={{0,1}}, dimensions={0}, channel_id=1, "
    "use_global_device_ids=true",
    "}",
)
PYTHON_STRINGS = "".join(['_HLO = "\\n".join([\n', *(f"    {line!r},\n" for line in GATHER), "])\n"])
OUTPUT = {"name": "stdout", "output_type": "stream", "text": [f"{line}\n" for line in GATHER]}
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "execution_count": 3, "outputs": [OUTPUT], "source": ["print(x)"]}]})


@pytest.mark.parametrize("text", [PYTHON_STRINGS, NOTEBOOK], ids=["strings", "notebook"])
def test_lists_of_strings_are_read(text: str) -> None:
    """They hold an all-gather of 8 x 16 f32 over two devices."""
    facts = hlo_inspect.inspect(BytesIO(text.encode()), ("summary",)).facts
    assert (facts["collectives.all-gather.count"], facts["collectives.wire_bytes"], facts["module.devices"]) == (1, 512, 2)
    assert call_text("check", "-", "--assert", "collectives.all-gather.count == 0", given=text).returncode == 1
