"""A module read without its graph is read again if phases need it: from a file, from text, from a stream."""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import hlo_inspect

DATA = Path(__file__).parents[2] / "data"
STEP = lzma.decompress((DATA / "phases" / "scan_hidden.txt.xz").read_bytes()).decode()
LOG = f"I0101 a log\n{(DATA / 'cpu' / 'collectives.after.txt').read_text(encoding='utf-8')}\nbetween\n\n{STEP}\n{STEP}"


def phases(source: str | Path | io.BytesIO) -> list[list[object]]:
    reports = hlo_inspect.inspect_all(source, "collectives")
    return [[row["phase"] for row in report.table("collectives").records()] for report in reports]


def test_a_stream_gives_the_same_phases_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(LOG, encoding="utf-8")
    phase_sets = phases(path)
    assert [set(names) for names in phase_sets[1:]] == [{"forward", "recompute", "backward"}] * 2
    assert set(phase_sets[0]) == {"unknown"}
    assert phases(io.BytesIO(LOG.encode())) == phase_sets
    assert phases(LOG) == phase_sets
