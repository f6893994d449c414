"""Averages of gradients and of their squares, and roots below a step."""

from __future__ import annotations

import pytest

from hlo_inspect.optimizer.algebra.norms import Clip
from hlo_inspect.optimizer.rules.adafactor import decay_without_rate
from tests.optimizer.programs import ADAM, STAGES, Facts, changed, facts_of, overview_of, rules_of, step_of, text_of

POWER = "p_s = f32[] power(%nine_s, %tf)"
CORRECTED = (
    "tf = f32[] convert(%t)",
    POWER,
    "c_s = f32[] subtract(%one_s, %p_s)",
    "cc = f32[4,4]{1,0} broadcast(%c_s), dimensions={}",
)


def adam(**lines: str) -> str:
    """Adam's lines with others in place of those of the same name."""
    return step_of(*(lines.pop(line.split()[0], line) for line in ADAM), outputs="new m v", states=2)


def test_the_constants() -> None:
    expected = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.5, "epsilon": 1e-8}
    assert facts_of(adam()) == {"name": "adam", "update_count": 1, "decayed_count": 0, **expected}


@pytest.mark.parametrize(
    "line",
    [
        {"d": "d = abs g"},
        {"d": "d = multiply g m1"},
        {"s": "s = tanh v"},
        {"q": "q = multiply m k"},
        {"c": "c = multiply m1 half"},
        {"e": "e = negate d"},
        {"k": "k = add s g"},
    ],
)
def test_another_moment_or_root_is_unknown(line: dict[str, str]) -> None:
    assert rules_of(adam(**line)) == ["unknown"]


def test_a_bias_correction_is_explained_and_gives_the_decay() -> None:
    lines = [*CORRECTED, *ADAM[:9], "mm = divide m cc", "q = divide mm k", *ADAM[10:]]
    assert facts_of(step_of(*lines, outputs="new m v", states=2))["beta1"] == 0.9


def test_a_factor_of_the_gradient_s_norm_is_not() -> None:
    norm = "n_s = f32[] reduce(%g, %zero_s), dimensions={0,1}, to_apply=%add"
    lines = [
        norm,
        "n = f32[4,4]{1,0} broadcast(%n_s), dimensions={}",
        *ADAM[:9],
        "mm = divide m n",
        "q = divide mm k",
        *ADAM[10:],
    ]
    assert rules_of(step_of(*lines, outputs="new m v", states=2)) == ["unknown"]


# -- The step over the root of a second moment, in the spellings that compilers and authors give it ---------------------


HEAD, TAIL = ADAM[:7], ADAM[10:]
READ: Facts = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.5, "epsilon": 1e-8}
SPELLINGS = [
    ("s = sqrt v", "k = add s tiny", "q = divide m k"),
    ("o = add v tiny", "s = rsqrt o", "q = multiply m s"),
    ("o = add v tiny", "s = sqrt o", "q = divide m s"),
    ("s = sqrt v", "k = add s tiny", "i = divide one k", "q = multiply i m"),
    ("s = sqrt v", "k = add tiny s", "kk = multiply k two", "p = multiply m two", "q = divide p kk"),
]


@pytest.mark.parametrize("lines", SPELLINGS)
def test_spellings(lines: tuple[str, ...]) -> None:
    facts = facts_of(step_of(*HEAD, *lines, *TAIL, outputs="new m v", states=2))
    assert facts == {"name": "adam", "update_count": 1, "decayed_count": 0, **READ}


def test_a_step_that_is_scaled_twice_has_one_rate() -> None:
    lines = (*HEAD, *SPELLINGS[0], "r = multiply q two", "u = multiply r rate", "new = add w u")
    assert facts_of(step_of(*lines, outputs="new m v", states=2))["learning_rate"] == 0.02


# -- The gradient over the root of a second moment, alone or added up in a momentum -------------------------------------


SECOND = ("c = multiply m1 nine", "d = multiply g g", "e = multiply d tenth", "v = add c e")
SCALED = ("o = add v tiny", "s = rsqrt o", "q = multiply g s")
READ_SCALED_GRADIENT = {"learning_rate": 0.01, "beta2": 0.9, "epsilon": 1e-8}


def test_rmsprop_without_momentum_reads_its_scaled_gradient() -> None:
    text = step_of(*SECOND, *SCALED, "u = multiply q rate", "new = add w u", outputs="new v", states=1)
    assert facts_of(text) == {"name": "rmsprop", "update_count": 1, "decayed_count": 0, **READ_SCALED_GRADIENT}


def test_the_rate_inside_or_outside_the_momentum() -> None:
    inside = ("r = multiply q rate", "k = multiply m2 half", "m = add k r", "new = add w m")
    outside = ("k = multiply m2 half", "m = add k q", "u = multiply m rate", "new = add w u")
    for lines in (inside, outside):
        facts = facts_of(step_of(*SECOND, *SCALED, *lines, outputs="new v m", states=2))
        assert facts == {
            "name": "rmsprop",
            "update_count": 1,
            "decayed_count": 0,
            "momentum": 0.5,
            "nesterov": False,
            **READ_SCALED_GRADIENT,
        }


def test_the_square_of_something_else_is_unknown() -> None:
    lines = (*SECOND[:1], "d = multiply g m1", *SECOND[2:], *SCALED, "u = multiply q rate", "new = add w u")
    assert rules_of(step_of(*lines, outputs="new v", states=1)) == ["unknown"]


# -- Trust ratios: the norms of the weight and of the step, not of anything else ----------------------------------------


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", ["lamb", "lars"])
def test_safe_norms_are_seen_through(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}"))["name"] == case


@pytest.mark.parametrize("case", ["lamb", "lars"])
def test_the_norm_of_something_else_is_unknown(case: str) -> None:
    """Fourth powers in place of squares, wherever something is multiplied by itself and added up."""
    text = changed(text_of(f"{case}.before"), r"reduce\((\S+), (\S+)\), dimensions=\{0,1\}", r"reduce(\1, \2), dimensions={0}")
    text = changed(text, r" sqrt\(", " log(")
    assert set(rules_of(text)) <= {"unknown"}


# -- Clipping by norm and by value, in several spellings ----------------------------------------------------------------


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
def test_clipping_by_norm_is_read(lines: tuple[str, ...]) -> None:
    assert clip_of(*lines) == ("sgd", Clip("norm", 2.0))


@pytest.mark.parametrize("lines", BY_VALUE)
def test_clipping_by_value_is_read(lines: tuple[str, ...]) -> None:
    assert clip_of(*lines) == ("sgd", Clip("value", 0.5))


@pytest.mark.parametrize(
    "lines",
    [
        ("lo = negate half", "k = f32[4,4]{1,0} clamp(%lo, %g, %tenth)"),
        ("lo = negate tenth", "k = f32[4,4]{1,0} clamp(%lo, %g, %half)"),
        ("lo = negate half", "a = maximum g lo", "k = minimum a tenth"),
        ("k = f32[4,4]{1,0} clamp(%half, %g, %half)",),
    ],
)
def test_limits_of_two_sizes_are_no_clipping_by_value(lines: tuple[str, ...]) -> None:
    assert clip_of(*lines)[1] is None


def test_another_scale_behind_the_comparison_is_no_clipping() -> None:
    choice = (*CHOICE[:2], "z = multiply y half", "k = f32[4,4]{1,0} select(%b_s, %g, %z)")
    assert clip_of(*choice) == ("unknown", None)


def test_a_comparison_with_something_else_is_no_norm() -> None:
    sums = "b_s = pred[] compare(%ss, %two_s), direction=LT"
    assert clip_of(sums, *CHOICE[1:], "k = f32[4,4]{1,0} select(%b_s, %g, %z)") == ("unknown", None)


def test_no_clipping() -> None:
    assert clip_of("k = copy g") == ("sgd", None)


# -- Decay that no rate scales ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "decay"),
    [
        (("d = multiply w tenth", "s = add u d", "new = subtract w s"), 0.1),
        (("d = multiply w tenth", "s = add u d", "n = negate s", "new = add w n"), 0.1),
        (("d = multiply w tenth", "s = add g d", "r = multiply s half", "new = subtract w r"), None),  # scaled
        (("d = multiply w tenth", "k = subtract w d", "new = subtract k u"), None),  # before the step
        (("new = subtract w u",), None),
    ],
)
def test_a_decay_beside_the_rate(lines: tuple[str, ...], decay: float | None) -> None:
    (weight,) = overview_of(step_of("u = multiply g half", *lines)).updates.weights
    stated = decay_without_rate(weight.update)
    assert (stated.value if stated is not None else None) == decay
