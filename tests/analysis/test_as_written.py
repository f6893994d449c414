"""Reduce-scatters that XLA makes of sliced all-reduces: predictions against what its compiler for TPU made of nine programs.

`tests/data/make_as_written.py` compiles them. The optimized texts have the reduce-scatters below, a fusion of TPU for each.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings import RULES
from hlo_inspect.report.model import Report

DATA = Path(__file__).parents[1] / "data"
MIB = 1 << 20
LAYER = 1024 * 4096 * 4
"""Bytes of a weight in f32; a program has eight of them."""


@pytest.mark.parametrize(
    ("name", "count", "operands", "devices"),
    [
        ("fsdp", 8, 8 * LAYER, 8),
        ("fsdp_bf16", 8, 4 * LAYER, 8),
        ("zero", 8, 8 * LAYER, 8),
        ("fsdp_scan", 8, 8 * LAYER, 8),  # two, in four iterations
        ("sequence", 4, 4 * 4 * MIB, 4),  # bf16[4,512,1024] of four layers
        ("fsdp_tensor", 8, 8 * LAYER // 4, 2),  # weights are divided by the other axis too
        ("data", 0, 0, 8),  # gradients of replicated weights are read whole
        ("manual", 0, 0, 8),  # the start of the slice is chosen by a select
        ("odd", 0, 0, 8),  # 1,004 rows are padded before the slice
    ],
)
def test_predictions_are_what_xla_makes(name: str, count: int, operands: int, devices: int) -> None:
    """An all-reduce sends 2(n-1)/n of its operand, the reduce-scatter half of that."""
    facts = hlo_inspect.inspect(DATA / "as_written" / f"{name}.hlo.xz", "collectives").facts
    assert facts["collectives.expected_reduce_scatter_count"] == count
    saved = operands * (devices - 1) // devices
    assert facts["collectives.expected_wire_bytes"] == int(str(facts["collectives.executed_wire_bytes"])) - saved


@pytest.mark.parametrize(
    ("name", "scattered", "whole"),
    [
        ("fsdp", 117_440_512, 176_848_896),
        ("fsdp_bf16", 58_720_256, 118_128_640),
        ("zero", 117_440_512, 234_881_024),
        ("fsdp_scan", 117_440_512, 206_209_024),
        ("sequence", 12_582_912, 25_165_824),
        ("fsdp_tensor", 16_777_216, 26_542_080),
        ("data", 0, 234_881_024),
        ("manual", 0, 58_720_256),
        ("odd", 0, 5_404_672),
    ],
)
def test_the_optimized_text_sends_as_much_or_less(name: str, scattered: int, whole: int) -> None:
    """Bytes that the optimized texts send, by reduce-scatters and by all collectives.

    Reduce-scatters are equal to the byte. If the partitioner gathers weights itself, later passes merge equal gathers and
    send bf16 in the place of f32, which is not predicted.
    """
    facts = hlo_inspect.inspect(DATA / "as_written" / f"{name}.hlo.xz", "collectives").facts
    assert int(str(facts["collectives.executed_wire_bytes"])) - int(str(facts["collectives.expected_wire_bytes"])) == scattered
    if name.startswith("fsdp"):
        assert int(str(facts["collectives.expected_wire_bytes"])) > whole
    else:
        assert facts["collectives.expected_wire_bytes"] == whole


def text_of(name: str) -> str:
    return lzma.decompress((DATA / "as_written" / f"{name}.hlo.xz").read_bytes()).decode()


def sent(report: Report, which: str = "expected") -> object:
    return report.facts[f"collectives.{which}_wire_bytes"]


def test_an_optimized_text_is_never_as_written() -> None:
    for dump in ("cpu/scan_fsdp.after.txt", "gpu/bf16_master.after.txt"):
        report = hlo_inspect.inspect(DATA / dump, "collectives")
        assert sent(report) == sent(report, "executed")
    scheduled = text_of("fsdp").replace("HloModule jit_step", "HloModule jit_step, is_scheduled=true", 1)
    report = hlo_inspect.inspect(scheduled, "collectives")
    assert sent(report) == sent(report, "executed")
    assert sent(hlo_inspect.inspect(text_of("fsdp"), "summary", quick=True)) is None


def test_a_cpu_keeps_its_all_reduces(tmp_path: Path) -> None:
    """Its compiler runs no ReduceScatterCreator: the user names it, or the optimized text beside the file does."""
    fact = "collectives.expected_reduce_scatter_count"
    assert hlo_inspect.inspect(text_of("fsdp"), "collectives", platform="cpu").facts[fact] == 0
    dump = tmp_path / "module_0003.jit_step.0022.spmd-cleanup.txt"
    dump.write_text(text_of("fsdp"), encoding="utf-8")
    assert hlo_inspect.inspect(dump, "collectives").facts[fact] == 8
    (tmp_path / "module_0003.jit_step.cpu_after_optimizations.txt").write_text("", encoding="utf-8")
    assert hlo_inspect.inspect(dump, "collectives").facts[fact] == 0


def test_the_first_screen_and_the_time_say_it() -> None:
    """128 MiB of gradients: 224 MiB sent as written, and 112 by reduce-scatters, beside 112 MiB of gathers."""
    text = text_of("zero")
    rows = {row.label: row for row in hlo_inspect.inspect(text, "summary").headline}
    words = "".join(str(part if isinstance(part, str) else part.value) for part in rows["collectives"].parts)
    assert f"{336 * MIB} sent as written along d0; XLA makes 8 reduce-scatters: {224 * MIB}" in words
    facts = hlo_inspect.inspect(text, "time", profile="tpu-v5e").facts
    assert facts["time.expected_collective_s"] == pytest.approx(float(str(facts["time.collective_s"])) * 224 / 336, rel=0.01)


def test_small_all_reduces_as_written_are_joined_by_xla() -> None:
    """HI213 reports them in the text that runs; before XLA's passes its combiner still joins them."""
    example = RULES.load("small-collectives").page().example
    assert "HI213" in {finding.rule for finding in hlo_inspect.inspect(example, "findings").findings}
    before = example.replace(", is_scheduled=true", "")
    assert "HI213" not in {finding.rule for finding in hlo_inspect.inspect(before, "findings").findings}
