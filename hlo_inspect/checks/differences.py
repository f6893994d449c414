"""Conditions on the difference of two modules, OLD and NEW: `diff --fail-if` and `check --baseline`.

The grammar is that of `expressions.py`; a value that ends in % is a part of OLD. If the fact is unknown in one of the modules,
the condition counts as met and gives the reason.

Examples:
    different                           the programs, or what is known of them, differ
    flags                               flags or options of the compiles differ
    optimizer.name different            this fact has another value
    collectives.count != 0              NEW - OLD, in the unit of the fact
    memory.peak_bytes > +5%             the same as a part of OLD
    memory.peak_bytes in [-1 MiB, 2%]   a range
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from hlo_inspect.checks.expectations import COMPARE, Expression, Form, WrittenValue, compare, is_empty, is_within
from hlo_inspect.checks.policy import Assertion, assertion_in, find_fact
from hlo_inspect.checks.runner import CheckResult
from hlo_inspect.compare.fact_changes import differ, difference, share, value_in
from hlo_inspect.configs import Node
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.figure import Quantity, between, greatest, least, reason
from hlo_inspect.passes import specs_about
from hlo_inspect.report.facts import find_spec
from hlo_inspect.report.model import Report, Verdict
from hlo_inspect.report.table import Column, Table, Unit, Value, plain
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.report.units import format_like, parse_quantity

DIFFERENT, FLAGS = "different", "flags"
"""Conditions on no fact: any difference of the programs; any of flags and options."""

_UNORDERED = "text and bools have no numeric difference: write `different`"


@dataclass(frozen=True, slots=True)
class Bound:
    """Number that a difference is compared with; if `is_share`, a part of OLD."""

    number: int | float
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class DifferenceCondition:
    """Condition on the difference of a fact. Without `assertion` it is `DIFFERENT` or `FLAGS`."""

    text: str
    assertion: Assertion | None = None
    form: Form = "different"
    bounds: tuple[Bound, ...] = ()
    brackets: str = "[]"

    def holds(self, old: Value, new: Value) -> bool | None:
        """Return True if the condition is met, None if the difference is unknown."""
        if self.form == "different" and (old is None) == (new is None):
            return differ(old, new)
        change = difference(old, new)
        if change is None:
            return None
        parts = [_as_part(change, old) if bound.is_share else change for bound in self.bounds]
        amounts = [part for part in parts if part is not None]
        if len(amounts) < len(parts):
            return None
        if self.form == "in":
            return is_within(amounts[0], self.bounds[0].number, amounts[1], self.bounds[1].number, self.brackets)
        return compare(self.form, amounts[0], self.bounds[0].number)


def _as_part(change: Quantity, old: Value) -> Quantity | None:
    """Return the change as a part of OLD: infinity if OLD is 0, None if OLD is unknown."""
    if not change:
        return 0
    if isinstance(old, int | float) and old:
        return between(least(change) / abs(old), (limit := greatest(change)) and limit / abs(old), reason(change))
    return math.copysign(math.inf, change) if isinstance(change, int | float) and old == 0 else None


def parse_difference(written: Node) -> DifferenceCondition:
    """Parse a condition of `--fail-if` or a policy. Raise UsageError if its fact is unknown or does not fit the expression."""
    text = written.scalar.strip()
    if text in (DIFFERENT, FLAGS):
        return DifferenceCondition(text)
    assertion = assertion_in(written)
    spec, _ = find_fact(assertion, specs_about(assertion.fact.scalar))
    try:
        form, bounds = _bind(assertion.expression, spec.unit)
    except ValueError as error:
        raise assertion.place.error(f"{spec.name}: {error}") from error
    return DifferenceCondition(text, assertion, form, bounds, assertion.expression.brackets)


def _bind(expression: Expression, unit: Unit) -> tuple[Form, tuple[Bound, ...]]:
    """Return form and bounds in the unit of the fact. Raise ValueError if they make no sense for a difference."""
    if expression.form == "different":
        return expression.form, ()
    if unit in ("text", "bool"):
        raise ValueError(_UNORDERED)
    if expression.form in ("known", "null", "one of"):
        raise ValueError(
            f"`{expression.form}` is not a comparison of a difference; there are {', '.join(COMPARE)}, in, different"
        )
    bounds = tuple(_bound(written, unit) for written in expression.values)
    if expression.form == "in":
        low, high = bounds
        if low.is_share == high.is_share and is_empty(low.number, high.number, expression.brackets):
            raise ValueError(f"the range `{expression}` is empty")
    return expression.form, bounds


def _bound(written: WrittenValue, unit: Unit) -> Bound:
    if written.quoted:
        raise ValueError(f"{written} is text; a difference is a number")
    if written.text.endswith("%"):
        return Bound(parse_quantity(written.text, "share"), is_share=True)
    return Bound(parse_quantity(written.text, unit))


@dataclass(frozen=True, slots=True)
class DifferenceResult:
    """Result of a condition for two modules."""

    condition: DifferenceCondition
    is_met: bool
    unit: Unit = "text"
    old: Value = None
    new: Value = None
    reason: str = ""

    @property
    def difference(self) -> Quantity | None:
        return difference(self.old, self.new)


def examined(
    conditions: Iterable[DifferenceCondition],
    old: Report,
    new: Report,
    *,
    is_different: bool,
    have_other_flags: bool | None = None,
    sides: tuple[str, str] = ("OLD", "NEW"),
) -> list[DifferenceResult]:
    """Evaluate each condition. Facts of modules that do not differ at all do not differ either, known or not.

    `have_other_flags` is None if flags or options are unknown.

    Raise UsageError for a fact that a report lacks, such as a saved one of another command. `sides` are the names of the two
    modules in reasons.
    """
    reason = "unknown: no files beside the modules state all flags and options" if have_other_flags is None else ""
    return [
        DifferenceResult(condition, have_other_flags is not False, reason=reason)
        if condition.text == FLAGS
        else _examined(condition, old, new, is_different, sides)
        for condition in conditions
    ]


def _examined(
    condition: DifferenceCondition, old: Report, new: Report, is_different: bool, sides: tuple[str, str]
) -> DifferenceResult:
    if condition.assertion is None:
        return DifferenceResult(condition, is_different)
    name = condition.assertion.fact.scalar
    unit: Unit = "text"
    for side in (old, new):
        match = find_spec(name, side.specs)
        if match is None:
            message = f"the report of {side.command!r} does not have the fact {name!r}"
            raise UsageError(message, Location(side.input.path))
        unit = match[0].unit  # that of NEW at last
    before, after = value_in(old, name), value_in(new, name)
    holds = condition.holds(before, after)
    unknown = " and ".join(side for side, value in zip(sides, (before, after), strict=True) if plain(value) is None)
    if holds is not None or not is_different:
        return DifferenceResult(condition, bool(holds), unit, before, after)
    return DifferenceResult(condition, True, unit, before, after, f"unknown in {unknown}" if unknown else "no number")


def _both_values(result: DifferenceResult) -> str:
    """Return old and new value of the fact as pages write them; empty if they are equal."""
    if not differ(result.old, result.new):
        return ""
    was, now = (format_like(value, result.unit, "") for value in (result.old, result.new))
    return f"from {was} to {now}"


def as_checks(results: Iterable[DifferenceResult]) -> list[CheckResult]:
    """Return the conditions as checks against a baseline: a condition that is met fails."""
    return [
        CheckResult(
            result.condition.text,
            result.difference,
            result.unit if result.difference is not None else "text",
            "not met in comparison with the baseline",
            passed=not result.is_met,
            reason=result.reason or _both_values(result),
            is_unknown=result.is_met and plain(result.difference) is None,
        )
        for result in results
    ]


def no_mate() -> CheckResult:
    """Return the failed check of a module that the baseline lacks."""
    return CheckResult(
        "baseline", None, "text", "a module to compare with", passed=False, reason="there is none", is_unknown=True
    )


CONDITION = Column("condition", width=36, meaning="condition of `--fail-if`", get=attrgetter("condition.text"))
STATUS = Column("status", meaning="met or not met", get=lambda result: "met" if result.is_met else "not met")
REASON = Column("reason", detail=2, meaning="reason of an unknown value")
"""Columns that tables of conditions share."""

CONDITIONS = TableSpec("conditions", "Conditions", page_rows=0).with_columns(
    CONDITION,
    STATUS,
    Column("old", unit_of="unit", optional=True),
    Column("new", unit_of="unit", optional=True),
    Column("difference", unit_of="unit", optional=True, signed=True),
    Column("percent", "share", optional=True, signed=True, get=lambda result: share(result.old, result.new)),
    Column("unit", detail=9),
    REASON,
)


def conditions_verdict(met: int, count: int) -> Verdict:
    """Return the verdict on conditions of `--fail-if`, of which `met` are met."""
    return Verdict(f"{'FAILED' if met else 'PASSED'} {met:,} of {count:,} conditions met", passed=not met)


def conditions_table(results: Iterable[DifferenceResult]) -> Table:
    """Return the table of the conditions, those that are met first."""
    return CONDITIONS.of(sorted(results, key=lambda result: not result.is_met))
