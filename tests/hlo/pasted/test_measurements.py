"""Numbers with a key in the text around modules: the table `log`."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.errors import InputError
from hlo_inspect.hlo.module import Measurement
from hlo_inspect.hlo.pasted.logs import Measurements

MODULE = "HloModule {}\n\nENTRY e {{\n  ROOT p = f32[4]{{0}} parameter(0)\n}}\n\n"


def measurements_in(text: str) -> list[tuple[str, float, str]]:
    measurements = Measurements()
    measurements.take(f"{text}\n", 1)
    return [(measurement.key, measurement.value, measurement.unit) for measurement in measurements.finish()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("idx: 72/81, cost : 222130339.84", [("idx", 72, "of 81"), ("cost", 222130339.84, "")]),
        ("Mean cost: 147.64 ms (std: 4.85 ms)", [("Mean cost", 147.64, "ms"), ("std", 4.85, "ms")]),
        ("Total size:  0.50 GB", [("Total size", 0.5, "GB")]),
        ("             parameter allocation:    6.00MiB", [("parameter allocation", 6.0, "MiB")]),
        ("step 10: loss=3.25, time=1.2s lr=1e-3", [("loss", 3.25, ""), ("time", 1.2, "s"), ("lr", 0.001, "")]),
        ("throughput: 1,024 tokens/s", [("throughput", 1024, "tokens/s")]),
        ("2024-06-10 12:00:01.1: I xla/foo.cc:12] total bytes: 123", [("total bytes", 123, "")]),
        ("delta: -3", [("delta", -3, "")]),
        ("12:00:01 and 3 of 4", []),
        ("jax:    0.4.30", []),
        ("see http://host:8080/x", []),
        ("listening: 127.0.0.1:80", []),
        ("x = 3", []),
        ("def f(a: 3):", []),
        ("y = jax.nn.softmax(x, axis=-1)", []),
        ('  File "a.py", line 75, in f', []),
        ("147.64 ms", []),
    ],
)
def test_only_numbers_with_a_key_are_measurements(text: str, expected: list[tuple[str, float, str]]) -> None:
    assert measurements_in(text) == expected


def test_a_list_takes_key_and_unit_of_the_next_line() -> None:
    text = "[1.5 2.5\n 3.5, 4]\nMean cost: 3.0 ms (std: 1.1 ms)"
    assert measurements_in(text)[:5] == [("Mean cost", value, "ms") for value in (1.5, 2.5, 3.5, 4.0, 3.0)]


@pytest.mark.parametrize(
    "text", ["[1 2]\n\nmean: 3", "[1 2]\nprose\nmean: 3", "[[1 2]\n [3 4]]\nmean: 3", "[1 2\n x]\nmean: 3"]
)
def test_other_lists_are_no_measurements(text: str) -> None:
    assert measurements_in(text) == [("mean", 3, "")]


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
    (series,) = first.table("log_series").records()
    assert [series[name] for name in ("key", "count", "median", "minimum", "maximum")] == ["cost", 2, 3, 2, 4]


def test_a_line_prefix_is_not_part_of_a_key() -> None:
    lines = f"{MODULE.format('a')}cost: 2 ms\n".splitlines()
    report = hlo_inspect.inspect("".join(f"[rank0]: {line}\n" for line in lines).encode(), "params")
    assert [(row["line"], row["key"]) for row in report.table("log").records()] == [(7, "cost")]


def test_quoted_lines_have_a_log_too() -> None:
    text = "before: 3 ms\n%n = f32[4]{0} negate(%p)\nafter: 4 ms\n"
    rows = hlo_inspect.inspect(text.encode(), "summary").table("log").records()
    assert [(row["key"], row["stands"]) for row in rows] == [("before", "before"), ("after", "behind")]


def test_the_error_for_a_log_without_a_module_counts_measurements() -> None:
    with pytest.raises(InputError, match=r"holds no HLO module: it is a log with 3 measurements: loss, time$"):
        hlo_inspect.inspect(b"loss: 3.5\nloss: 3.25\ntime: 12 ms\n")


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
