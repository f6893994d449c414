"""Clipping by norm and by value, in several spellings."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer.clipping import Clip
from tests.analysis.optimizer.reading import overview_of
from tests.analysis.optimizer.step import step_of

NORM = (
    "sq = multiply g g",
    "ss = f32[] reduce(%sq, %zero_s), dimensions={0,1}, to_apply=%add",
    "n_s = f32[] sqrt(%ss)",
    "n = f32[4,4]{1,0} broadcast(%n_s), dimensions={}",
)
STEP = ("u = multiply k rate", "new = add w u")
CHOICE = ("b_s = pred[] compare(%n_s, %two_s), direction=LT", "y = divide g n", "z = multiply y two")
BY_NORM = [
    (*CHOICE, "k = f32[4,4]{1,0} select(%b_s, %g, %z)"),
    (
        "f_s = f32[] divide(%two_s, %n_s)",
        "h_s = f32[] minimum(%one_s, %f_s)",
        "hh = f32[4,4]{1,0} broadcast(%h_s), dimensions={}",
        "k = multiply g hh",
    ),
    (
        "l_s = f32[] maximum(%n_s, %two_s)",
        "l = f32[4,4]{1,0} broadcast(%l_s), dimensions={}",
        "y = divide g l",
        "k = multiply y two",
    ),
    ("b_s = pred[] compare(%n_s, %two_s), direction=GT", *CHOICE[1:], "k = f32[4,4]{1,0} select(%b_s, %z, %g)"),
]
BY_VALUE = [
    ("lo = negate half", "k = f32[4,4]{1,0} clamp(%lo, %g, %half)"),
    ("lo = negate half", "a = maximum g lo", "k = minimum a half"),
]


def clip_of(*lines: str) -> tuple[str, Clip | None]:
    (row,) = overview_of(step_of(*NORM, *lines, *STEP)).rows
    return row.rule, row.clip


@pytest.mark.parametrize("lines", BY_NORM)
def test_by_norm(lines: tuple[str, ...]) -> None:
    assert clip_of(*lines) == ("sgd", Clip("norm", 2.0))


@pytest.mark.parametrize("lines", BY_VALUE)
def test_by_value(lines: tuple[str, ...]) -> None:
    assert clip_of(*lines) == ("sgd", Clip("value", 0.5))


def test_another_scale_behind_the_comparison_is_no_clipping() -> None:
    choice = (*CHOICE[:2], "z = multiply y half", "k = f32[4,4]{1,0} select(%b_s, %g, %z)")
    assert clip_of(*choice) == ("unknown", None)


def test_a_comparison_with_something_else_is_no_norm() -> None:
    sums = "b_s = pred[] compare(%ss, %two_s), direction=LT"
    assert clip_of(sums, *CHOICE[1:], "k = f32[4,4]{1,0} select(%b_s, %g, %z)") == ("unknown", None)


def test_no_clipping() -> None:
    assert clip_of("k = copy g") == ("sgd", None)
