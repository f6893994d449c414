"""What single opcodes ask for."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_operations import ASYNC, CONDITIONALS, OPCODES


@pytest.mark.parametrize("case", [*ASYNC, *CONDITIONALS, *OPCODES], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
