"""What of an update is explained, and what is read of it."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer.update import Update, split
from tests.analysis.optimizer.reading import facts_of, overview_of, rules_of
from tests.analysis.optimizer.step import DESCENT, step_of


def update_of(*lines: str) -> Update:
    (row,) = overview_of(step_of(*lines)).rows
    return row.matched.update


def test_the_weight_the_gradient_and_what_is_added() -> None:
    update = update_of(*DESCENT)
    assert update.is_plain()
    assert update.is_step()
    assert update.is_gradient(update.rest)
    assert not update.are_scalar(update.rest)
    assert split(update.form, update.weight) == (update.kept, update.rest)


@pytest.mark.parametrize(
    ("lines", "decay"),
    [
        (("d = multiply w tenth", "s = add g d", "u = multiply s rate", "new = add w u"), 0.1),
        (("d = multiply w zero", "s = add g d", "u = multiply s rate", "new = add w u"), 0.0),
    ],
)
def test_decay_beside_the_step(lines: tuple[str, ...], decay: float) -> None:
    assert facts_of(step_of(*lines))["weight_decay"] == decay


def test_a_gradient_from_elsewhere_is_none() -> None:
    """Without the weight in it, what is added can be anything."""
    other = "o = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    assert rules_of(step_of(other, "u = multiply o rate", "new = add w u")) == []


def test_a_step_upwards_is_none() -> None:
    assert rules_of(step_of("u = multiply g tenth", "new = add w u")) == []


def test_a_gate_is_no_decay() -> None:
    lines = ("k = logistic g", "i = subtract one k", "a = multiply w i", "b = multiply g k", "new = add a b")
    assert rules_of(step_of(*lines)) == []
