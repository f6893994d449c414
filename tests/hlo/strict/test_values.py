"""Words, numbers, strings, names and indices as values of attributes."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_attributes import VALUES
from tests.hlo.strict.cases_texts import STRINGS


@pytest.mark.parametrize("case", [*VALUES, *STRINGS], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
