"""Workload files with random damage: a report in which what is unknown has a reason, or an error about the input."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import hlo_inspect
from hlo_inspect.inspection.other_inputs import rewritten_workload
from hlo_inspect.workloads.writer import WRITTEN

DATA = Path(__file__).parents[1] / "data/workloads"
PIECES = (
    b"\t",
    b" ",
    b"\n",
    b"1.5",
    b"-1",
    b"9" * 5000,
    b"NONE",
    b"BROADCAST",
    b"\xff",
    b":",
    b"pp: 0",
    b"checkpoints: 999999",
)


def damaged(text: bytes, random: Random) -> bytes:
    data = bytearray(text)
    for _ in range(random.randrange(1, 6)):
        position = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            data[position:position] = random.choice(PIECES)
        elif kind == 1:
            del data[position : position + random.randrange(1, 40)]
        elif kind == 2:
            data[position : position + random.randrange(1, 8)] = random.choice(PIECES)
        elif random.random() < 0.2:
            del data[position:]
    return bytes(data)


@pytest.mark.parametrize("name", ["simai.txt", "astra_sim.txt"])
def test_damage(name: str) -> None:
    random = Random(name)  # noqa: S311 - it damages texts
    text = (DATA / name).read_bytes()
    reports = 0
    for _ in range(150):
        data = damaged(text, random)
        with suppress(hlo_inspect.InputError):
            for command in ("workload", "collectives"):
                report = hlo_inspect.inspect(data, command)
                unknown = {fact for fact, value in report.facts.items() if value is None}
                assert {fact for fact in unknown if not any(note.startswith(f"{fact}:") for note in report.notes)} == set()
                assert all(finding.location is not None for finding in report.findings)
                reports += 1
        for dialect in WRITTEN:
            with suppress(hlo_inspect.HloInspectError):
                rewritten_workload(data, dialect)
    assert reports > 150
