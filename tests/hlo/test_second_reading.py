"""A module that was read without its graph is read once more where phases need it: from a file, from text, from a stream."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.second_reading import SecondReading
from hlo_inspect.hlo.source import open_source
from hlo_inspect.hlo.wants import Wants

DATA = Path(__file__).parents[1] / "data"
STEP = (DATA / "phases" / "scan_hidden.txt").read_text(encoding="utf-8")
LOG = f"I0101 a log\n{(DATA / 'cpu' / 'collectives.after.txt').read_text(encoding='utf-8')}\nbetween\n\n{STEP}\n{STEP}"


def phases(source: str | Path | io.BytesIO) -> list[list[object]]:
    reports = hlo_inspect.inspect_all(source, "collectives")
    return [[row["phase"] for row in report.table("collectives").records()] for report in reports]


def test_a_stream_that_cannot_be_opened_again_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(LOG, encoding="utf-8")
    found = phases(path)
    assert [set(one) for one in found[1:]] == [{"forward", "recompute", "backward"}] * 2
    assert set(found[0]) == {"unknown"}
    assert phases(io.BytesIO(LOG.encode())) == found
    assert phases(LOG) == found


@pytest.mark.parametrize("reopens", [True, False])
def test_modules_of_the_second_reading_are_those_of_the_first(reopens: bool) -> None:
    source = open_source(LOG if reopens else io.BytesIO(LOG.encode()))
    again = SecondReading(source, Wants(), read_modules)
    seen = []
    for number, first in enumerate(read_modules(source, Wants()), 1):
        second = again.module(first, number) if number != 2 else None
        again.forget(first)
        seen.append((first, second))
    assert [second is not None for _, second in seen] == [True, False, True]
    for first, second in seen:
        if second is not None and second.entry is not None:
            assert (second.name, second.first_line, second.lines) == (first.name, first.first_line, first.lines)
            assert second.entry.rows
