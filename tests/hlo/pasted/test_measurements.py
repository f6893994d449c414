"""Numbers with a key around several modules, in pieces and in a real log. Cases are in tests/cases/hlo/pasted/log.hlo."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.hlo.module import Measurement
from hlo_inspect.hlo.pasted.logs import Measurements

MODULE = "HloModule {}\n\nENTRY e {{\n  ROOT p = f32[4]{{0}} parameter(0)\n}}\n\n"


def test_measurements_are_read_across_pieces() -> None:
    measurements = Measurements()
    for line, text in enumerate(["a: 1\n", "[1\n", " 2]\n", "b: 3 s\n"], 5):
        measurements.take(text, line)
    expected = [
        Measurement(5, "a", 1),
        Measurement(6, "b", 1.0, "s", 0),
        Measurement(7, "b", 2.0, "s", 1),
        Measurement(8, "b", 3, "s"),
    ]
    assert measurements.finish() == expected


def test_each_module_has_the_measurements_around_it() -> None:
    text = f"setup: 1 s\n{MODULE.format('a')}cost: 2\ncost: 4\n{MODULE.format('b')}cost: 6\n"
    first, second = hlo_inspect.inspect_all(text.encode(), "collectives")
    assert [(row["value"], row["stands"]) for row in first.table("log").records()] == [
        (1, "before"),
        (2, "behind"),
        (4, "behind"),
    ]
    assert [(row["value"], row["stands"]) for row in second.table("log").records()] == [
        (2, "before"),
        (4, "before"),
        (6, "behind"),
    ]
    assert [row["line"] for row in second.table("log").records()] == [8, 9, 16]


def test_measurements_of_a_real_log() -> None:
    """The log calls the median of its eight timings their mean."""
    dumps = list((Path(__file__).parents[4] / "shared/dumps/seeds").glob("004_*.txt"))
    if not dumps:
        pytest.skip("the sample is not here")
    report = hlo_inspect.inspect(dumps[0], "collectives")
    rows = report.table("log").records()
    assert ("cost", 222130339.84) in [(row["key"], row["value"]) for row in rows]
    timings = [162.32657433, 147.33552933, 148.02742004, 148.39696884, 147.48859406, 147.78494835, 147.47190475, 147.4609375]
    assert [row["value"] for row in rows if row["element"] is not None] == timings
    (series,) = report.table("log_series").records()
    assert (series["key"], series["unit"], series["count"]) == ("Mean cost", "ms", 8)
    assert round(float(series["median"] or 0), 3) == 147.637
