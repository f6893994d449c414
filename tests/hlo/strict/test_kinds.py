"""Values of attributes, by their kind."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_attributes import KINDS


@pytest.mark.parametrize("case", KINDS, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
