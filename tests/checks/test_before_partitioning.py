"""Checks of collectives on the program before partitioning: they fail with the reason, whatever they expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
BEFORE = DATA / "cpu/adamw_step.before.txt"

ONE_DEVICE = """HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY main {
  x = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(x)
}
"""


@pytest.mark.parametrize(
    "assertion",
    [
        "collectives.all-gather.count == 0",
        "collectives.count null",
        "collectives.executed_count known",
        "collectives.phase.backward.count >= 0",
        "collectives[kind=all-gather].count == 0",
        "opcode.all-reduce == 0",
        "opcode.all-gather-start == 0",
    ],
)
def test_a_check_of_collectives_fails_and_says_how_to_get_the_compiled_text(assertion: str) -> None:
    done = call_text("check", BEFORE, "--assert", assertion)
    assert done.returncode == 1
    assert ".compile()" in done.stdout


def test_other_checks_are_answered() -> None:
    done = call_text("check", BEFORE, "--assert", "params.count == 9", "--assert", "opcode.dot > 0")
    assert done.returncode == 0


def test_a_program_of_one_device_has_nothing_to_partition(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text(ONE_DEVICE, encoding="utf-8")
    done = call_text("check", tmp_path / "f.txt", "--assert", "collectives.count == 0", "--assert", "opcode.all-reduce == 0")
    assert done.returncode == 0
    assert (
        call_text("check", DATA / "cpu/adamw_step.after.txt", "--assert", "collectives.all-gather.count == 0").returncode == 0
    )
