"""Events of a step as a table; the trace that is written of them has its tests beside the format."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data"


def test_events_have_streams_and_times() -> None:
    """A gather goes on while the second of two arrays is transposed, and is waited for."""
    report = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", ("time-events",), profile="h100-sxm")
    rows = report.table("time_events").records()
    assert [(row["stream"], row["event"], row["name"]) for row in rows[:4]] == [
        ("compute", "kernel", "wrapped_transpose"),
        ("collectives", "issued", "all-gather-start"),
        ("compute", "kernel", "wrapped_transpose.1"),
        ("compute", "wait", "all-gather-start"),
    ]
    first, gather, second, wait = rows[:4]
    assert first["end_s"] == gather["begin_s"] == second["begin_s"] == pytest.approx(1e-6 + 2 * 2**23 / 3352e9)
    assert wait["begin_s"] == second["end_s"]
    assert wait["end_s"] == gather["end_s"]
    assert gather["bytes"] == 3 * 2**23
