"""Speed on real programs: the generated training step and the rows of the benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.figures import REAL
from benchmarks.real import (
    PARSE,
    PARSE_AND_COST,
    STAGES,
    Program,
    figures_of,
    geometric_mean,
    read_program,
    stage_seconds,
    summary_rows,
)
from benchmarks.run import xla_parser
from benchmarks.training_step import BACKWARD_COLLECTIVES, FORWARD_COLLECTIVES, training_step
from hlo_inspect import inspect

LAYERS = 15


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steps") / "step.txt"
    path.write_text(training_step(LAYERS))
    return path


def test_xla_reads_the_generated_step(step: Path) -> None:
    parse = xla_parser()
    assert parse is not None
    parse(step.read_text())


def test_phases_of_the_generated_step_are_those_that_it_was_written_in(step: Path) -> None:
    facts = inspect(str(step), ("collectives", "optimizer")).facts
    phases = {
        name.split(".")[-2]: facts[name] for name in facts if name.startswith("collectives.phase.") and name.endswith(".count")
    }
    assert {name: count for name, count in phases.items() if count} == {
        "forward": FORWARD_COLLECTIVES * LAYERS,
        "loss": 1,
        "backward": BACKWARD_COLLECTIVES * LAYERS - 1,
    }
    assert (facts["optimizer.name"], facts["optimizer.update_count"]) == ("adam", LAYERS)


def test_the_generated_step_has_a_collective_for_each_2_kb_and_no_metadata(step: Path) -> None:
    text = step.read_text()
    assert "metadata" not in text
    assert "fusion(" not in text
    assert len(text) < 2000 * LAYERS * (FORWARD_COLLECTIVES + BACKWARD_COLLECTIVES)
    assert read_program(step)[2:] == (True, False)  # more than 40 collectives, not scheduled


def test_each_stage_is_measured(step: Path) -> None:
    assert list(stage_seconds(step, 1)) == ["reading", *STAGES]


def test_the_summary_has_the_mean_and_the_worst_program() -> None:
    first, second = (Program(name, Path(name), False, False) for name in ("a", "b"))
    seconds = {
        first: {PARSE: 1.0, PARSE_AND_COST: 2.0, "cost": 2.0},
        second: {PARSE: 1.0, PARSE_AND_COST: 1.0, "cost": 8.0},
    }
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert figures_of(seconds, min) == {REAL["cost"]: 1 / 8}
    assert list(summary_rows(seconds))[1] == ("cost", "0.25", "0.12", "0.35", "0.12", "0.55", "1")
