"""Fields of layouts."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_texts import LAYOUT_FIELDS


@pytest.mark.parametrize("case", LAYOUT_FIELDS, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
