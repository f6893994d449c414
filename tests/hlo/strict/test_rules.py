"""What single opcodes ask for."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_operations import ASYNC, CONDITIONALS, OPCODES
from tests.hlo.strict.cases_texts import MADE_SHAPES


@pytest.mark.parametrize("case", [*MADE_SHAPES, *ASYNC, *CONDITIONALS, *OPCODES], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
