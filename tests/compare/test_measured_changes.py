"""Comparisons of recorded profiles: measured times by matched instructions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.profiler.spaces import Event, metadata_plane, plane, space

TEXT = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY main {
  p = f32[8]{0} parameter(0)
  NEGATE = f32[8]{0} negate(p)
  SINE = f32[8]{0} sine(NEGATE)
  EXTRA
  ROOT TANH = f32[8]{0} tanh(LAST)
}
"""
OLD_NAMES = {"NEGATE": "fusion.1", "SINE": "fusion.2", "TANH": "fusion.3", "EXTRA": "", "LAST": "fusion.2"}
NEW_NAMES = {
    "NEGATE": "fusion.3",
    "SINE": "fusion.1",
    "TANH": "fusion.7",
    "EXTRA": "fusion.2 = f32[8]{0} exponential(fusion.1)",
    "LAST": "fusion.2",
}


def profile(path: Path, names: Mapping[str, str], nanoseconds: Mapping[str, int]) -> Path:
    """Write a profile of two runs of the module, whose instructions have these names."""
    text = TEXT
    for name, replacement in names.items():
        text = text.replace(name, replacement)
    events: list[Event] = []
    for number in range(2):
        start = 2000 + 10_000 * number
        for name, duration in nanoseconds.items():
            stats: dict[str, int | str] = {"hlo_op": name, "program_id": 3, "run_id": number, "device_ordinal": 0}
            events.append((name, start, duration, stats))
            start += duration
    path.write_bytes(space(metadata_plane({"jit_step(3)": text}), plane("/host:CPU", {"a": events})))
    return path


def compared(old: Path, new: Path) -> Report:
    (comparison,) = Comparisons(Request()).compare(ComparedInput(str(old)), ComparedInput(str(new)))
    return comparison.report


@pytest.fixture
def profiles(tmp_path: Path) -> tuple[Path, Path]:
    """Return two profiles. In the second all names differ, the sine is four times slower, and there is an exponential."""
    old = profile(tmp_path / "old.xplane.pb", OLD_NAMES, {"fusion.1": 300, "fusion.2": 100, "fusion.3": 50})
    times = {"fusion.3": 310, "fusion.1": 400, "fusion.2": 20, "fusion.7": 45}
    return old, profile(tmp_path / "new.xplane.pb", NEW_NAMES, times)


def test_self_times_are_compared_by_matched_instructions_the_largest_change_first(profiles: tuple[Path, Path]) -> None:
    report = compared(*profiles)
    table = report.table("measured_changes")
    rows = [tuple(row.values()) for row in table.records()]
    assert [row[:2] for row in rows] == [
        ("fusion.2", "fusion.1"),
        (None, "fusion.2"),
        ("fusion.1", "fusion.3"),
        ("fusion.3", "fusion.7"),
    ]
    changes = [row["change_s"] for row in table.records()]
    assert changes == [pytest.approx(seconds) for seconds in (300e-9, 20e-9, 10e-9, -5e-9)]
    assert [row["old_self_s"] for row in table.records()][1] is None
    difference = report.facts["measured.kernels_s"]
    assert difference == pytest.approx(775e-9)
    assert sum(float(str(change)) for change in changes) == pytest.approx(775e-9 - 450e-9)
    (line,) = [row for row in report.headline if row.label == "measured"]
    text = "".join(part if isinstance(part, str) else f"{part.value:.3g}" for part in line.parts)
    assert text.startswith("step 4.5e-07 → 7.75e-07 (+0.722); self times: fusion.2 → fusion.1 1e-07 → 4e-07 (+3)")


def test_conditions_take_measured_facts(profiles: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = map(str, profiles)
    assert run(["diff", old, new, "--fail-if", "measured.step_s > +50%"]) == 1
    assert run(["diff", new, old, "--fail-if", "measured.step_s > +50%"]) == 0
    assert run(["diff", old, old, "--fail-if", "measured.step_s > 0", "--fail-if", "different"]) == 0
    capsys.readouterr()


def test_a_profile_and_a_dump_are_compared_without_times(profiles: tuple[Path, Path], tmp_path: Path) -> None:
    dump = tmp_path / "dump.hlo"
    text = TEXT
    for name, replacement in OLD_NAMES.items():
        text = text.replace(name, replacement)
    dump.write_text(text, encoding="utf-8")
    report = compared(profiles[0], dump)
    assert "measured_changes" not in [table.name for table in report.tables]
    assert report.facts["diff.same_program"] is True
