"""Constants that do not fit their shape."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_literals import LAYOUTS, NESTING, VALUES


@pytest.mark.parametrize("case", [*LAYOUTS, *NESTING, *VALUES], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
