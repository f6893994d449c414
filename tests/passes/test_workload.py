"""Workload files as reports: reasons, and the ways in which they are read like modules."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data/workloads"
SIMAI, ASTRA_SIM = DATA / "simai.txt", DATA / "astra_sim.txt"
HLO = "HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"


@pytest.mark.parametrize("path", [SIMAI, ASTRA_SIM])
@pytest.mark.parametrize("command", ["workload", "summary", "collectives"])
def test_what_is_unknown_has_a_reason(path: Path, command: str) -> None:
    report = hlo_inspect.inspect(path, command)
    unknown = {name for name, value in report.facts.items() if value is None}
    assert {name for name in unknown if not any(note.startswith(f"{name}:") for note in report.notes)} == set()
    assert any("sizes as" in note for note in report.notes)
    assert command == "workload" or report.facts["collectives.collective-permute.count"] == 0


def test_a_workload_file_is_read_like_a_module(tmp_path: Path) -> None:
    """Compressed, as bytes, from an open file, and from a directory beside a module."""
    data = SIMAI.read_bytes()
    expected = hlo_inspect.inspect(SIMAI, "summary").facts
    for source in (data, io.BytesIO(gzip.compress(data)), data.decode()):
        assert hlo_inspect.inspect(source, "summary").facts == expected
    (tmp_path / "w.txt.xz").write_bytes(lzma.compress(data))
    (tmp_path / "x.txt").write_text(HLO)
    first, second = hlo_inspect.inspect_all(tmp_path, "summary")
    assert first.facts == expected
    assert second.facts["module.name"] == "m"


def test_a_workload_command_runs_beside_commands_about_modules() -> None:
    """`check` may ask all passes."""
    assert "module.name" in hlo_inspect.inspect(HLO, ("fusions", "workload")).facts
    assert "workload.rows" in hlo_inspect.inspect(SIMAI, ("fusions", "workload")).facts
