"""Windows, paddings, slices, the labels of a convolution's dimensions."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_attributes import DIMENSIONS


@pytest.mark.parametrize("case", DIMENSIONS, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
