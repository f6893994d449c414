"""What each opcode takes: operands and attributes."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_attributes import SIGNATURES


@pytest.mark.parametrize("case", SIGNATURES, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
