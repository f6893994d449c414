"""Lines of XLA's log beside a whole module are no module of their own. What they warn of is in tests/cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run

MODULE = """HloModule jit_step, is_scheduled=true, num_partitions=8

ENTRY main {
  x = f32[256,1024]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[256,1024]{1,0} tanh(x), metadata={op_name="jit(step)/tanh"}
  moved = f32[1024,256]{0,1} transpose(y), dimensions={1,0}
  ROOT all-gather.1 = f32[1024,2048]{0,1} all-gather(moved), channel_id=1, replica_groups=[1,8]<=[8], dimensions={1}, use_global_device_ids=true, metadata={op_name="jit(step)/sin"}
}
"""  # noqa: E501 - an instruction is one line


def warned(operation: str) -> str:
    return (
        "W0101 00:00:00.0 1 spmd_partitioner.cc:656] [SPMD] Involuntary full rematerialization. The compiler cannot go from "
        f"sharding {{devices=[8,1]<=[8]}} to {{devices=[1,8]<=[8]}} efficiently for HLO operation {operation}. As the last "
        "resort, SPMD will replicate the tensor.\n"
    )


COPY = '%copy.7 = f32[256,1024]{1,0} copy(%tanh.3), metadata={op_name="jit(step)/sharding_constraint"}'
OUT_OF_MEMORY = """RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm.
  1. Size: 20.00G
     Shape: f32[65536,81920]{1,0:T(8,128)}
     XLA label: %fusion.1 = f32[65536,81920]{1,0:T(8,128)} fusion(%copy-done.1), kind=kOutput, calls=%fused_computation
"""


@pytest.mark.parametrize("text", [warned(COPY) + MODULE, MODULE + warned(COPY), OUT_OF_MEMORY + MODULE, MODULE + OUT_OF_MEMORY])
def test_a_log_line_beside_a_module_is_no_module(text: str) -> None:
    alone = hlo_inspect.inspect(MODULE, "collectives")
    (report,) = hlo_inspect.inspect_all(text, "collectives")
    assert report.facts == alone.facts
    assert report.findings == alone.findings


def test_check_reads_a_module_under_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is that of the module, and JSON has one report."""
    path = tmp_path / "log.txt"
    path.write_text(warned(COPY) + MODULE, encoding="utf-8")
    assert run(["check", str(path), "--assert", "collectives.count == 1"]) == 0
    capsys.readouterr()
    assert run(["summary", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["module.name"] == "jit_step"
