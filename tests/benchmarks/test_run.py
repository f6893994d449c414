"""Measurements, their history and their picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.figures import COLLECTIVES, FIGURES, GRAPH_BYTES, READINGS, START, graph_bytes
from benchmarks.history import Run, append, read_history
from benchmarks.planted import changed_text
from benchmarks.run import rows_of
from benchmarks.trend import picture

DUMP = Path(__file__).parents[1] / "data/cpu/scan_fsdp.after.txt"


def test_planted_changes_are_as_many_as_asked_for() -> None:
    text = DUMP.read_text()
    lines = text.split("\n")
    assert sum(" add(" in line or " multiply(" in line for line in lines) > 10
    for asked in (1, 5, 10):
        changed = changed_text(text, asked).split("\n")
        assert sum(old != new for old, new in zip(lines, changed, strict=True)) == asked


@pytest.mark.parametrize("figure", READINGS, ids=lambda figure: figure.name)
def test_each_reading_reads(figure: object) -> None:
    assert READINGS[figure](DUMP).facts  # type: ignore[index]


def test_the_graph_takes_some_bytes() -> None:
    assert 0 < graph_bytes(DUMP)[GRAPH_BYTES] < 10_000


def test_rows_say_whether_they_hold() -> None:
    rows = {row[0]: row for row in rows_of({COLLECTIVES: 7.5, START: 1.7})}
    assert rows["collectives"] == ("collectives", "7.50", "7", "15", "x XLA", "holds")
    assert rows["start of collectives"][-1] == "missed"
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


def test_runs_of_one_commit_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    append({"a": {COLLECTIVES: 5.0}}, path)
    append({"a": {COLLECTIVES: 6.0}, "b": {START: 1.25}}, path)
    (run,) = read_history(path)
    assert run.figures == {"a": {"collectives": 6.0}, "b": {"start of collectives": 1.25}}


def test_the_picture_has_a_point_for_each_measurement() -> None:
    runs = [
        Run("aaa", "", {"<dump>": {"collectives": 5.0}}),
        Run("bbb", "", {"<dump>": {"collectives": 7.0, "memory of the graph": 150.0}}),
    ]
    root = ET.fromstring(picture(runs))  # noqa: S314 - what was just drawn
    circles = [node for node in root.iter() if node.tag.endswith("circle")]
    assert len(circles) == 3
    first, second, _ = (float(node.get("cy", "0")) for node in circles)
    assert second < first  # larger values are drawn higher
    assert any(node.text == "<dump>" for node in root.iter())
