"""The bytes that order findings of one severity, worked out by hand for the examples of the rules."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.findings import RULE_TABLE, RULES


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("HI103", 32),  # the result f32[8] that the alias gives to no parameter
        ("HI503", 768),  # two operands and a result of f32[8,8]
        ("HI504", 32),  # the result f32[8] that was not followed
    ],
)
def test_stake_of_examples(code: str, size: int) -> None:
    rule = next(candidate for candidate in RULES if candidate.code == code)
    report = hlo_inspect.inspect(rule.page().example, RULE_TABLE[rule.name].passes)
    assert [finding.stake for finding in report.findings if finding.rule == code] == [size]
