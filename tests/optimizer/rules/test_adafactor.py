"""Decay beside the rate of Adafactor: no rate scales it."""

from __future__ import annotations

import pytest

from hlo_inspect.optimizer.rules.adafactor import decay_without_rate
from tests.optimizer.programs import overview_of, step_of


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
