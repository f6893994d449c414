"""HI302: XLA's files about memory beside a text win over what is worked out, and a difference is a finding."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

DUMP = Path(__file__).parents[1] / "data/xla_dump_to"
NAME = "module_0000.jit_step.cpu_after_optimizations"
ASSIGNMENT = f"{NAME}-buffer-assignment.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a dump directory with one optimized module and XLA's files about its memory."""
    for path in DUMP.glob(f"{NAME}*.txt"):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def memory(folder: Path) -> Report:
    return hlo_inspect.inspect(folder / f"{NAME}.txt", "memory")


def differing(report: Report) -> list[str]:
    return [finding.message for finding in report.findings if finding.rule == "HI302"]


def test_files_that_agree_are_used_in_silence(folder: Path) -> None:
    """`BufferAssignment` of the file: 576 bytes of parameters, 344 live out, 320 both, 896 of temporaries."""
    report = memory(folder)
    facts = [report.facts[f"memory.{name}_bytes"] for name in ("argument", "output", "alias", "temp")]
    assert facts == [576, 344, 320, 896]
    assert differing(report) == []
    assert any(row.label == "stated" for row in report.headline)


def test_a_figure_stated_in_a_file_wins(folder: Path) -> None:
    path = folder / ASSIGNMENT
    text = path.read_text(encoding="utf-8")
    assert text.count("size 896, preallocated-temp") == 1
    path.write_text(text.replace("size 896, preallocated-temp", "size 8960, preallocated-temp"), encoding="utf-8")
    report = memory(folder)
    assert report.facts["memory.temp_bytes"] == 8960
    assert report.facts["memory.needed_bytes"] == 576 + 344 - 320 + 8960
    assert differing(report) == [f"{ASSIGNMENT} states 8,960 bytes of temp; computed from the text: 896 (difference 7.88 KiB)"]


def test_files_of_another_module_are_not_used(folder: Path) -> None:
    lines = ["BufferAssignment:", "allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:"]
    lines += [" value: <1 other.1 @0> (size=64,offset=0): f32[16]{0}", ""]
    (folder / ASSIGNMENT).write_text("\n".join(lines), encoding="utf-8")
    (folder / f"{NAME}-live-range.txt").unlink()
    report = memory(folder)
    assert report.facts["memory.argument_bytes"] == 576
    (message,) = differing(report)
    assert "not used, since 1 of the 1 instructions that they name are not in the module" in message


def test_without_files_all_figures_are_computed(folder: Path) -> None:
    for path in folder.glob(f"{NAME}-*.txt"):
        path.unlink()
    report = memory(folder)
    assert (report.facts["memory.temp_bytes"], differing(report)) == (896, [])
