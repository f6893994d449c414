"""Memory of a TPU is unknown if the text has no layouts."""

from __future__ import annotations

import re
from pathlib import Path

import hlo_inspect

ELSEWHERE = {"memory.xla_temp_bytes", "memory.capacity_bytes", "memory.left_bytes"}
"""Facts of a file of XLA beside the text, and of a machine."""


def test_memory_of_tpu_is_unknown_without_layouts() -> None:
    """Tiles and memory spaces stand in layouts; the text still has the marks of a TPU."""
    text = (Path(__file__).parents[2] / "data" / "tpu" / "sgd_unused.after.txt").read_text(encoding="utf-8")
    report = hlo_inspect.inspect(re.sub(r"(?<=\])\{[0-9,]*(?::[^}]*)?\}", "", text), ("memory",))
    assert report.facts["module.is_scheduled"] is True
    figures = {name: value for name, value in report.facts.items() if name.startswith("memory.")}
    assert figures["memory.space.0.peak_bytes"] is None and set(figures.values()) == {None}
    computed = figures.keys() - ELSEWHERE
    assert {f"{name}: the text has no layouts" for name in computed} <= {note.partition(";")[0] for note in report.notes}
