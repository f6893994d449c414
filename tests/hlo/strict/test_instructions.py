"""Names and operands of instructions."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_operations import ELEMENTS, NAMES, OPERANDS


@pytest.mark.parametrize("case", [*ELEMENTS, *NAMES, *OPERANDS], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
