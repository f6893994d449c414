"""Shapes and layouts."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.strict.shapes import take_shape
from hlo_inspect.hlo.strict.tokens import RefusedError, Tokens
from tests.hlo.strict import cases
from tests.hlo.strict.cases_operations import SHAPES


@pytest.mark.parametrize("case", SHAPES, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)


@pytest.mark.parametrize("field", ["T(8,128)", "L(1)", "SC(0:1)", "D(D)", ""])
def test_long_white_space_in_a_layout_is_passed_over_once(field: str) -> None:
    """Fields that may all be missing, with white space between them: tried in every way this would not end."""
    text = f"f32[2]{{0:{' ' * 20_000}{field}{' ' * 20_000}!}} x"
    with pytest.raises(RefusedError):
        take_shape(Tokens(text, 0, len(text)))
