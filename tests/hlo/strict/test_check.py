"""Computations: their names, parameters and results."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_modules import COMPUTATIONS


@pytest.mark.parametrize("case", COMPUTATIONS, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
