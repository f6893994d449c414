"""Lines of XLA's log beside a whole module: they are warnings of that module, and no module of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.report.page import headline_text
from tests.tables import columns

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
SINE = '%copy.8 = f32[256,1024]{1,0} copy(%other), metadata={op_name="jit(step)/sin"}'
ELSEWHERE = '%copy.9 = f32[77,1024]{1,0} copy(%exp), metadata={op_name="jit(step)/exp"}'
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


@pytest.mark.parametrize(
    ("operation", "became"),
    [(COPY, "all-gather.1"), (SINE, "all-gather.1"), (ELSEWHERE, "not found"), ("%cut = f32[2", None)],
    ids=["shape and operand", "op_name", "neither", "truncated"],
)
@pytest.mark.parametrize("command", ["summary", "collectives"])
def test_a_warning_names_the_collectives_that_the_instruction_became(command: str, operation: str, became: str | None) -> None:
    """The gather reads an array of the printed shape, made under the operand's op_name, through a transpose."""
    report = hlo_inspect.inspect(warned(operation) * 2 + MODULE, command)
    assert columns(report.table("compiler_warnings"), "count", "from_sharding", "to_sharding", "became") == [
        (2, "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}", became)
    ]


def test_the_first_page_says_what_xla_warned_of() -> None:
    report = hlo_inspect.inspect(warned(COPY) + warned(ELSEWHERE) + MODULE, "summary")
    said = next(headline_text(row) for row in report.headline if row.label == "XLA log").replace("\u00a0", " ")
    assert said == "2 involuntary full rematerializations: copy.7 (now all-gather.1), copy.9 (not found in the module)"


def test_a_log_without_a_module_is_a_partial_module_with_its_warnings() -> None:
    (report,) = hlo_inspect.inspect_all(warned(COPY), "summary")
    assert report.module_name == "quoted_lines"
    assert columns(report.table("compiler_warnings"), "warning", "instruction") == [
        ("involuntary full rematerialization", "copy.7")
    ]


def test_check_reads_a_module_under_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is that of the module, and JSON has one report."""
    path = tmp_path / "log.txt"
    path.write_text(warned(COPY) + MODULE, encoding="utf-8")
    assert run(["check", str(path), "--assert", "collectives.count == 1"]) == 0
    capsys.readouterr()
    assert run(["summary", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["module.name"] == "jit_step"
