"""Work that grows faster than its text is found, and what grew so does no longer."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

from benchmarks.shapes import momenta_in_a_chain
from hlo_inspect.hlo.pasted import mending
from hlo_inspect.hlo.pasted.mended_text import JoinedLine, Line
from tests.fuzz import growth
from tests.fuzz.commands import ARGUMENTS, Files
from tests.fuzz.growth import GrowingText, growing

DUMP = (Path(__file__).parent.parent / "data/cpu/scan_fsdp.after.txt").read_bytes()


def calls(command: str, text: bytes) -> int:
    """Count the function calls of a command over a text."""
    profile = cProfile.Profile()
    with Files(b"", text) as files:
        files.run(command)  # imports
        profile.enable()
        files.run(command)
        profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_a_seed_gives_one_text_that_grows() -> None:
    for seed in range(60):
        once, again = growing(DUMP, seed), growing(DUMP, seed)
        assert once.make(3) == again.make(3)
        assert len(once.make(64)) >= len(once.make(8))


@pytest.mark.parametrize("command", ARGUMENTS)
def test_every_command_bears_a_text_that_is_cut_off(command: str) -> None:
    with Files(DUMP, DUMP[: len(DUMP) * 2 // 3]) as files:
        files.run(command)


@pytest.mark.parametrize(("power", "share", "is_found"), [(1, 1.0, False), (1.2, 1.0, False), (2, 1.0, True), (2, 0.7, True)])
def test_superlinear_growth_is_detected(monkeypatch: pytest.MonkeyPatch, power: float, share: float, is_found: bool) -> None:
    """It is found even if it is only a `share` of the time of the largest text."""

    def seconds_for(_command: str, _old: bytes, new: bytes) -> float:
        size: float = len(new) / growth.FIRST_BYTES
        return float(0.3 * (share * size**power + (1 - share) * size))

    monkeypatch.setattr(growth, "seconds_for", seconds_for)
    fault = growth.excess("cost", b"", GrowingText("x", lambda count: b"x" * count))
    assert (fault is not None) == is_found


def test_gradients_that_depend_on_all_weights_take_their_share_of_calls() -> None:
    small, large = (calls("optimizer", momenta_in_a_chain(n).encode()) for n in (60, 240))
    assert large < 4.5 * small


def test_many_entries_take_their_share_of_calls() -> None:
    part = "ENTRY e{0} {{\n  p{0} = f32[4] parameter(0)\n  ROOT r{0} = f32[4] negate(p{0})\n}}\n\n"
    small, large = (calls("cost", ("HloModule m\n\n" + "".join(map(part.format, range(n)))).encode()) for n in (200, 800))
    assert large < 4.5 * small


def test_one_long_line_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of many steps of the search for damaged text."""
    looked_at: list[int] = []

    class Counting:
        def match(self, _piece: str, start: int) -> bool:
            looked_at.append(start)
            return True

    monkeypatch.setattr(mending, "FRESH", Counting())
    assert mending._looks_plain("HloModule m\n" + "a" * 20 * mending.PLAIN_STEP + "\n" + "b" * 20 + "\n")
    assert looked_at == [0, 12, 13 + 20 * mending.PLAIN_STEP]


def test_a_line_that_others_continue_is_put_together_once() -> None:
    joined = JoinedLine(Line.from_input("f (p: f32[8], ", 1))
    for number in range(3):
        assert joined.is_continued_by("q = r")
        joined.add(Line.from_input(f"p{number}: f32[8], ", number + 2))
    joined.add(Line.from_input(") -> f32[8] {", 5))
    joined.add(Line.from_input("  ", 6))
    assert not joined.is_continued_by("p = f32[8] parameter(0)")
    whole = Line.joined(joined.lines)
    assert whole.text == "f (p: f32[8], p0: f32[8], p1: f32[8], p2: f32[8], ) -> f32[8] {  "
    assert [whole.text[index] for index, _, _ in whole.origins] == ["f", *"ppp", ")", " "]
    assert [(number, column) for _, number, column in whole.origins] == [(number, 1) for number in range(1, 7)]
