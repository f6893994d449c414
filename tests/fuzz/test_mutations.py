"""Damaged dumps, a few of each: nothing but the package's own errors, and every report is JSON. Long runs: `tests.fuzz`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.shapes import SHAPES, TextShape
from hlo_inspect.report.model import Report
from tests.fuzz.mutate import GARBAGE, PASS_NAMES, Mutator, read, read_all, read_directory, render_all

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
SEEDS, EACH_ALONE = 4, 1
MARKS = [b"HloModule", b"{(", b"(x:", b"parameter", b"ENTRY", b"{{0,"]


def holds_computation(reports: Sequence[Report]) -> bool:
    return any(report.facts["module.computations"] and report.facts["module.instructions"] for report in reports)


@pytest.mark.parametrize("name", DUMPS)
def test_damaged_dumps(name: str) -> None:
    """At least half of them still hold something that can be read."""
    text = (DATA / name).read_bytes()
    damaged = [Mutator(seed)(text) for seed in range(SEEDS)]
    readable = sum(holds_computation(read_all(mutant)) for mutant in damaged[EACH_ALONE:])
    readable += sum(holds_computation(read_all(mutant, PASS_NAMES)) for mutant in damaged[:EACH_ALONE])
    assert readable >= SEEDS // 2


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_a_snippet_alone_and_in_a_module(number: int) -> None:
    """Six snippets in a row are at all six kinds of place."""
    text, snippet = (DATA / "handmade/async_generic.txt").read_bytes(), GARBAGE[number]
    mark = MARKS[number % len(MARKS)]
    place = text.index(mark) + len(mark) // 2
    read_all(text[:place] + snippet + text[place:])
    read_all(snippet, PASS_NAMES)


@pytest.mark.parametrize("damage", [damage.__name__ for damage in Mutator(0)._damages()])
def test_each_damage_bears_any_text(damage: str) -> None:
    for seed, text in enumerate([b"", b"a", b"\n", b"\r\n\r\n", b"HloModule m\n", b"12", b"a\nb 3\n"] * 5):
        assert isinstance(getattr(Mutator(seed), damage)(text), bytes)


def test_a_seed_gives_one_text() -> None:
    text = (DATA / "handmade/strings.txt").read_bytes()
    assert [Mutator(seed)(text) for seed in range(40)] == [Mutator(seed)(text) for seed in range(40)]
    assert len({Mutator(seed)(text) for seed in range(40)}) > 35


def test_damaged_modules_together_and_directories() -> None:
    """The short form of the long run: `python -m tests.fuzz` has many more, and takes their time and memory."""
    texts = [(DATA / name).read_bytes() for name in DUMPS]
    for seed in range(6):
        mutator = Mutator(seed)
        first, second = mutator(texts[seed % len(texts)]), mutator(texts[(seed + 5) % len(texts)])
        render_all(read(first + second, PASS_NAMES))
        read_directory([first, second], texts[0])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_borne(shape: TextShape) -> None:
    """Each small, as it is and cut off; `benchmarks.scaling` measures them large."""
    text = shape.make(7).encode()
    render_all(read(text, PASS_NAMES))
    for part in (shape.make(1).encode(), text[: len(text) * 2 // 3]):
        read(part, PASS_NAMES)
