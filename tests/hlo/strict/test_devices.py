"""Replica groups and shardings."""

from __future__ import annotations

import pytest

from tests.hlo.strict import cases
from tests.hlo.strict.cases_devices import FOUND_LATER, GROUPS, SHARDINGS


@pytest.mark.parametrize("case", [*FOUND_LATER, *GROUPS, *SHARDINGS], ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)
