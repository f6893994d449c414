"""Conditions on the difference of two modules: their grammar, their units, and what an unknown value does."""

from __future__ import annotations

import pytest

from hlo_inspect.checks.differences import as_checks, conditions_table, examined, parse_difference
from hlo_inspect.checks.expectations import bind, parse_expression
from hlo_inspect.checks.policy import given
from hlo_inspect.errors import UsageError
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import FactSpec, Input, Report
from hlo_inspect.report.table import Value

SPECS = (
    FactSpec("memory.peak_bytes", "bytes", ""),
    FactSpec("collectives.count", "count", ""),
    FactSpec("optimizer.name", "text", ""),
)


def holds(text: str, old: Value, new: Value) -> bool | None:
    return parse_difference(given("--fail-if", text)).holds(old, new)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("memory.peak_bytes > +5%", 100, 105, False),
        ("memory.peak_bytes > +5%", 100, 106, True),
        ("memory.peak_bytes < -5%", 100, 94, True),
        ("memory.peak_bytes > 1 KiB", 0, 1025, True),
        ("memory.peak_bytes > 1 KiB", 0, 1024, False),
        ("memory.peak_bytes > 5%", 0, 1, True),
        ("memory.peak_bytes >= 5%", 0, 0, False),
        ("memory.peak_bytes in (-10, 2%]", 100, 102, True),
        ("memory.peak_bytes in (-10, 2%]", 100, 90, False),
        ("collectives.count != 0", 4, 4, False),
        ("collectives.count != 0", 4, 3, True),
        ("collectives.count == -1", 4, 3, True),
        ("collectives.count different", 4, 3, True),
        ("optimizer.name different", "adam", "adam", False),
        ("optimizer.name different", "adam", "lion", True),
        ("optimizer.name different", None, None, False),
        ("optimizer.name different", None, "lion", None),
        ("collectives.count > 0", None, 3, None),
    ],
)
def test_conditions(text: str, old: Value, new: Value, expected: bool | None) -> None:
    assert holds(text, old, new) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("collectives.cuont > 0", "there is no fact 'collectives.cuont'; did you mean 'collectives.count'"),
        ("optimizer.name != adam", "no numeric difference: write `different`"),
        ("collectives.count known", "`known` is not a comparison of a difference"),
        ("collectives.count > 3 GiB", "GiB is a unit of bytes"),
        ("memory.peak_bytes in [5%, 1%]", "is empty"),
        ("memory.peak_bytes > '5'", "is text; a difference is a number"),
    ],
)
def test_malformed_differences_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_difference(given("--fail-if", text))
    assert message in str(caught.value)


def test_assertions_about_one_module_take_no_difference() -> None:
    with pytest.raises(ValueError, match="`different` compares two modules"):
        bind(parse_expression("different"), "text")


def report(facts: dict[str, Value], specs: tuple[FactSpec, ...] = SPECS) -> Report:
    return Report("summary", Input("a.txt", 1, 1, 1), Facts(facts, specs), specs=specs)


def test_an_unknown_difference_meets_a_condition_except_where_nothing_differs() -> None:
    condition = parse_difference(given("--fail-if", "memory.peak_bytes > 0"))
    old, new = report({"memory.peak_bytes": None}), report({"memory.peak_bytes": 5})
    (result,) = examined([condition], old, new, is_different=True)
    assert (result.is_met, result.reason) == (True, "unknown in OLD")
    (result,) = examined([condition], old, new, is_different=True, sides=("the baseline", "the module"))
    assert result.reason == "unknown in the baseline"
    (result,) = examined([condition], old, old, is_different=False)
    assert not result.is_met
    (result,) = examined([parse_difference(given("--fail-if", "different"))], old, new, is_different=True)
    assert result.is_met


def test_a_check_against_a_baseline_gives_both_values_in_the_units_of_pages() -> None:
    texts = ("memory.peak_bytes > 0", "collectives.count > 0")
    conditions = [parse_difference(given("--fail-if", text)) for text in texts]
    old, new = (report({"memory.peak_bytes": size, "collectives.count": 4}) for size in (3 * 2**20, 2**20))
    memory, same = as_checks(examined(conditions, old, new, is_different=True))
    assert (memory.actual, memory.reason) == (-(2**21), "from 3.00 MiB to 1.00 MiB")
    assert (same.actual, same.reason) == (0, "")


def test_a_report_that_lacks_the_fact_is_named() -> None:
    with pytest.raises(UsageError, match=r"'summary' does not have the fact 'memory\.peak_bytes'"):
        examined(
            [parse_difference(given("--fail-if", "memory.peak_bytes > 0"))],
            report({}, SPECS[1:]),
            report({}),
            is_different=True,
        )


@pytest.mark.parametrize(
    ("text", "old", "new", "is_met"),
    [
        ("memory.peak_bytes > +60%", 100, 150, False),
        ("memory.peak_bytes > +40%", 100, 150, True),
        ("memory.peak_bytes < -30%", 150, 100, True),
        ("memory.peak_bytes < -40%", 150, 100, False),
        ("memory.peak_bytes > 0", 150, 100, False),
    ],
)
def test_differences_are_those_from_old_to_new(text: str, old: int, new: int, is_met: bool) -> None:
    """From 100 to 150 is +50 %, and back -33 %: a part of OLD, with the sign of NEW - OLD."""
    reports = report({"memory.peak_bytes": old}), report({"memory.peak_bytes": new})
    (result,) = examined([parse_difference(given("--fail-if", text))], *reports, is_different=True)
    assert (result.is_met, result.old, result.new, result.difference) == (is_met, old, new, new - old)


def test_the_table_of_conditions_has_old_before_new() -> None:
    """From 100 to 150: 50 more, half of OLD."""
    reports = report({"memory.peak_bytes": 100}), report({"memory.peak_bytes": 150})
    conditions = [parse_difference(given("--fail-if", "memory.peak_bytes > 0"))]
    (row,) = conditions_table(examined(conditions, *reports, is_different=True)).records()
    assert (row["status"], row["old"], row["new"], row["difference"], row["percent"]) == ("met", 100, 150, 50, 0.5)
