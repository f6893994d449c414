"""The HloModule line and the tables behind it."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_modules import HEADERS, STACK_FRAMES
from tests.hlo.strict.cases_texts import QUOTED


@pytest.mark.parametrize("case", [*HEADERS, *STACK_FRAMES, *QUOTED], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
