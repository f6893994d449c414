"""Damaged dumps, a dozen of each: nothing but the package's own errors, and every report is JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.mutate import GARBAGE, Mutator, read_all

DATA = Path(__file__).parent.parent / "data"
DUMPS = [
    "cpu/adamw_step.after.txt",
    "cpu/control_flow.before.txt",
    "gpu/collectives.generic_async.txt",
    "tpu/collectives.after.txt",
    "jax_0_5_0/collectives.after.txt",
    "jax_0_4_13/scan_forward.after.txt",
    "prints/operand_shapes.txt",
    "handmade/replica_groups.txt",
    "handmade/inline_bodies.txt",
    "handmade/origin_recovery.txt",
    "handmade/two_modules.txt",
    "handmade/strings.txt",
]
SEEDS = 12


def holds_computation(text: bytes) -> bool:
    return any(report.facts["module.computations"] and report.facts["module.instructions"] for report in read_all(text))


@pytest.mark.parametrize("name", DUMPS)
def test_damaged_dumps(name: str) -> None:
    """At least half of them still hold something that can be read."""
    text = (DATA / name).read_bytes()
    readable = sum(holds_computation(Mutator(seed)(text)) for seed in range(SEEDS))
    assert readable >= SEEDS // 2


@pytest.mark.parametrize("snippet", GARBAGE, ids=range(len(GARBAGE)))
def test_a_snippet_at_every_kind_of_place(snippet: bytes) -> None:
    text = (DATA / "handmade/async_generic.txt").read_bytes()
    for mark in [b"HloModule", b"{(", b"(x:", b"parameter", b"ENTRY", b"{{0,"]:
        at = text.index(mark) + len(mark) // 2
        read_all(text[:at] + snippet + text[at:])
    read_all(snippet)


@pytest.mark.parametrize("damage", [damage.__name__ for damage in Mutator(0)._damages()])
def test_each_damage_bears_any_text(damage: str) -> None:
    for seed, text in enumerate([b"", b"a", b"\n", b"\r\n\r\n", b"HloModule m\n", b"12", b"a\nb 3\n"] * 5):
        assert isinstance(getattr(Mutator(seed), damage)(text), bytes)


def test_a_seed_gives_one_text() -> None:
    text = (DATA / "handmade/strings.txt").read_bytes()
    assert [Mutator(seed)(text) for seed in range(40)] == [Mutator(seed)(text) for seed in range(40)]
    assert len({Mutator(seed)(text) for seed in range(40)}) > 35
