"""Offloads to the host that XLA ignored: a text before optimization asks for them, and the text after it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

BEFORE = """HloModule step

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  %h = bf16[8,1024]{1,0} custom-call(%x), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT %d = bf16[8,1024]{1,0} custom-call(%h), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="device"}
}
"""  # noqa: E501 - as XLA prints them
AFTER = """HloModule step, is_scheduled=true

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  ROOT %c = bf16[8,1024]{1,0} copy(%x)
}
"""
HONORED = """HloModule step, is_scheduled=true

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  %h = bf16[8,1024]{1,0:S(5)} copy(%x)
  ROOT %c = bf16[8,1024]{1,0} copy(%h)
}
"""


def ignored(report: Report) -> list[str]:
    return [note for note in report.notes if "host memory" in note]


@pytest.mark.parametrize("platform", ["", "cpu_", "sm_9.0_gpu_", "cl_1014260217."])
def test_a_note_names_an_offload_that_xla_ignored(tmp_path: Path, platform: str) -> None:
    """The build of TPU's compiler stands before both stages, the platform before the second one only."""
    build = platform if platform.endswith(".") else ""
    (tmp_path / f"module_0003.step.{build}before_optimizations.txt").write_text(BEFORE, encoding="utf-8")
    (tmp_path / f"module_0003.step.{platform}after_optimizations.txt").write_text(AFTER, encoding="utf-8")
    (note,) = ignored(hlo_inspect.inspect(tmp_path, "memory"))
    assert note.startswith(
        f"module_0003.step.{build}before_optimizations.txt asks for host memory in 1 custom call (first: line 5)"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, HONORED),
        (BEFORE.replace("pinned_host", "device"), AFTER),
        (BEFORE.replace("HloModule step", "HloModule other"), AFTER),
        ("no module", AFTER),
        (None, AFTER),
    ],
    ids=["honored", "not asked for", "another module", "unreadable", "no text before"],
)
def test_nothing_is_said_otherwise(tmp_path: Path, before: str | None, after: str) -> None:
    if before is not None:
        (tmp_path / "module_0003.step.before_optimizations.txt").write_text(before, encoding="utf-8")
    path = tmp_path / "module_0003.step.after_optimizations.txt"
    path.write_text(after, encoding="utf-8")
    assert ignored(hlo_inspect.inspect(path, "memory")) == []


def test_the_stake_of_a_missing_offload_is_what_the_optimized_text_does_not_move(tmp_path: Path) -> None:
    """HI311: the requests are for two arrays of 16 KiB, and the program moves none or one of them."""
    placement = next(line for line in BEFORE.splitlines() if "pinned_host" in line).partition("custom-call(%x), ")[2]
    second = f"%second = bf16[8,1024]{{1,0}} custom-call(%h), {placement}\n  ROOT %d"
    (tmp_path / "module_0003.step.before_optimizations.txt").write_text(BEFORE.replace("ROOT %d", second), encoding="utf-8")
    path = tmp_path / "module_0003.step.after_optimizations.txt"
    for after, stake in ((AFTER, 2 * 16384), (HONORED, 16384)):
        path.write_text(after, encoding="utf-8")
        findings = hlo_inspect.inspect(path, "findings", thresholds=["missing-offload=1"]).findings
        assert [finding.stake for finding in findings if finding.name == "missing-offload"] == [stake]
