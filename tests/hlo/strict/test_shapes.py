"""Shapes and layouts."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_operations import SHAPES


@pytest.mark.parametrize("case", SHAPES, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
