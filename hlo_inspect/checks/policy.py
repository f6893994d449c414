"""Check policies: conditions on facts, and findings that fail.

For example:

    checks:
      collectives.all-to-all.count: 0
      optimizer.name: [adamw, lion]          # any of them
      params.aliased_bytes: ">= 180 MiB"     # YAML needs quotes around what begins with > or !
      collectives[kind=all-gather, axis=model].runs: 0     # rows of a table, see `row_assertions.py`
    fail-if:                                 # differences from the module of --baseline that fail
      - memory.peak_bytes > +5%
    fail-on: warning                         # findings of this severity or above fail too
    ignore:
      - rule: HI102                          # or its name: unused-parameter
        subject: "embed*"                    # optional: only findings about these; so are op_name and source
        reason: the embedding is kept for the decoder

Anything else in a policy is a `UsageError` with its place. So is an unknown fact: a misspelt check must not pass in silence. A
family without listed members takes any (the target of a custom call); `<n>` takes a whole number from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TypeVar, cast

from hlo_inspect import configs
from hlo_inspect.checks.expectations import Condition, Expression, bind, parse_expression, parse_value
from hlo_inspect.checks.ignores import GLOBS, Ignore, parse_ignore
from hlo_inspect.checks.row_assertions import RowFigure, parse_row_figure
from hlo_inspect.configs import ConfigFile, Node
from hlo_inspect.errors import did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.facts import SpecIndex, exact_name, fact_names, find_spec, is_family, members_of
from hlo_inspect.report.model import PART_NOTE, SEVERITIES, FactSpec, Input, Report, Severity
from hlo_inspect.report.table import LOWER_BOUND, Column, Row, Unit, Value, figure_of
from hlo_inspect.report.table_spec import TableSpec

T = TypeVar("T")

_NAME = r"(?:[^\s=<>!:]|:(?!\s))"
_ROWS = r"""\w+\[(?:"[^"]*"|'[^']*'|[^\]"'])*+\]""" + f"{_NAME}*"
_ASSERTION = lazy_pattern(rf"\s*({_ROWS}|{_NAME}+):?\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact as written, or the figure of `rows` in its place, and the expectation of it, whose node is `place`."""

    fact: Node
    expression: Expression
    place: Node
    rows: RowFigure | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Content of a check. `fail_on` is the least severity that fails, `fail_if` are conditions on differences, as written."""

    assertions: tuple[Assertion, ...] = ()
    fail_on: Severity | None = None
    ignores: tuple[Ignore, ...] = ()
    fail_if: tuple[Node, ...] = ()


def read_policy(path: str | Path) -> Policy:
    """Read the policy of a YAML file."""
    return policy_of(configs.read(path))


def given(option: str, text: str) -> Node:
    """Make a node of the text of a command-line option, which its errors name."""
    return Node(ConfigFile(option, (text,), is_private=False), 1, 1, "text", text)


def parse_assertion(text: str) -> Assertion:
    """Parse an assertion of `--assert`: the fact, then the expression."""
    return assertion_in(given("--assert", text))


def assertion_in(written: Node) -> Assertion:
    """Parse the assertion in a node; places are positions in its text. A line of a policy, `fact: value`, is one too."""
    match = _ASSERTION.fullmatch(written.scalar)
    if match is None:
        raise written.error("an assertion is a fact and an expression: `collectives.count == 0`")
    is_option = not written.file.is_private
    fact, place = (
        written._replace(column=written.column + (match.start(group) if is_option else 0), scalar=match[group])
        for group in (1, 2)
    )
    return _assertion(fact, place)


def _assertion(fact: Node, place: Node) -> Assertion:
    return Assertion(fact, _expression(place), place, parse_row_figure(fact))


def policy_of(root: Node) -> Policy:
    """Make the policy of a YAML document."""
    fields = root.fields(allowed=("checks", "fail-if", "fail-on", "ignore"))
    checks = fields["checks"].entries() if "checks" in fields else ()
    ignores = fields["ignore"].items() if "ignore" in fields else ()
    conditions = fields["fail-if"].items() if "fail-if" in fields else ()
    return Policy(
        assertions=tuple(_assertion(fact, value) for fact, value in checks),
        fail_on=cast("Severity", fields["fail-on"].choice(SEVERITIES)) if "fail-on" in fields else None,
        ignores=tuple(parse_ignore(entry, GLOBS) for entry in ignores),
        fail_if=tuple(map(_text, conditions)),
    )


def _text(node: Node) -> Node:
    """Return the node; raise UsageError if it is no text."""
    node.text()
    return node


def _expression(node: Node) -> Expression:
    """Parse the expression of a value; a list means any of its values."""
    if node.kind == "list":
        values = node.items()
        if not values:
            raise node.error("the list of values is empty")
        return Expression("one of", tuple(_parse_scalar(value, parse_value) for value in values))
    return _parse_scalar(node, parse_expression)


def _parse_scalar(node: Node, parse: Callable[[str], T]) -> T:
    """Parse the text of a scalar; add its place to errors."""
    if node.kind in ("list", "mapping"):
        raise node.error(f"an expectation is a value, an expression or a list of values, not a {node.kind}")
    with node.located():
        return parse(node.scalar)


_LIKE_A_NAME = 0.4  # least similarity of a suggested name: names of facts are long and share much


@dataclass(frozen=True, slots=True)
class Check:
    """Assertion about an existing fact; `member` replaces the angle brackets of a family."""

    name: str
    spec: FactSpec
    member: str | None
    condition: Condition
    assertion: Assertion


def resolve(assertion: Assertion, specs: Sequence[FactSpec]) -> Check:
    """Return the check of an assertion. Raise UsageError if its fact is unknown or does not fit the expression."""
    name = assertion.fact.scalar
    spec, member = find_fact(assertion, specs)
    if member is None and spec.members is not None:
        _require_known_values(assertion, spec, spec.members)
    return Check(name, spec, member, bind_at(assertion, spec.unit), assertion)


def bind_at(assertion: Assertion, unit: Unit) -> Condition:
    """Read the expectation in the unit of its fact or figure. Raise UsageError at its place if that makes no sense."""
    try:
        return bind(assertion.expression, unit)
    except ValueError as error:
        raise assertion.place.error(f"{assertion.fact.scalar}: {error}") from error


def find_fact(assertion: Assertion, specs: Sequence[FactSpec]) -> tuple[FactSpec, str | None]:
    """Return the specification of a fact, with the member of a family. Raise UsageError with the closest names."""
    name = assertion.fact.scalar
    match = find_spec(name, specs)
    if match is None:
        raise assertion.fact.error(f"there is no fact {name!r}{did_you_mean(name, fact_names(specs), cutoff=_LIKE_A_NAME)}")
    return match


def _require_known_values(assertion: Assertion, spec: FactSpec, allowed: frozenset[str]) -> None:
    """Raise UsageError for a value outside the closed list of values of a text fact."""
    names = sorted(allowed)
    for value in assertion.expression.values:
        if value.text not in allowed:
            hint = did_you_mean(value.text, names) or f"; it is one of {', '.join(names)}"
            raise assertion.place.error(f"{spec.name} is never {value.text!r}{hint}")


def value_of(check: Check, report: Report) -> Value:
    """Return the value of the fact: 0 for a member of a family that does not occur. A known fact is its own lower bound."""
    name = _present(check.name, report)
    if name in report.facts:
        return figure_of(report.facts, name)
    if check.member is None:
        raise check.assertion.fact.error(f"the fact {check.name!r} is not computed by this command")
    return 0


def _present(name: str, report: Report) -> str:
    """Return the name, or that of the fact itself if the report has no lower bound of it."""
    return name if name in report.facts else exact_name(name)


def remark(check: Check, report: Report) -> str:
    """Return why the value is unknown, or that only a similar member of an open family occurs; else nothing."""
    name = _present(check.name, report)
    if name in report.facts:
        return _unknown_reason(name, check.spec, report) if report.facts[name] is None else ""
    if check.spec.members is not None or check.member is None:
        return ""
    occurring = [member for name in report.facts for member in members_of(name, check.spec) if member]
    hint = did_you_mean(check.member, occurring)
    return f"{check.member} does not occur{hint}" if hint else ""


def _unknown_reason(name: str, spec: FactSpec, report: Report) -> str:
    mention = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    reasons = [note.removeprefix(f"{name}: ") for note in report.notes if mention.search(note)]
    reasons = reasons or [note for note in report.notes if note.startswith(PART_NOTE)]
    reasons = reasons or [spec.absent or "the report does not say why"]
    if name + LOWER_BOUND in report.facts:
        reasons.append(f"its lower bound is {name}{LOWER_BOUND}")
    return "; ".join(reasons)


# -- the facts that checks can name ------------------------------------------------------------------------------------

COMMAND = "check"
_BOUND_WORDS = {"lower_bound": "a lower bound of", "upper_bound": "an upper bound of"}
_NAMES = TableSpec("facts", "Facts", page_rows=0).with_columns(
    Column("fact", width=40, get=attrgetter("name")),
    Column("unit", detail=4),
    Column("meaning", width=60),
)
_VALUES = TableSpec("facts", "Facts", page_rows=0).with_columns(
    Column("fact", get=itemgetter(0)),
    Column("value", unit_of="unit", get=itemgetter(1)),
    Column("unit", detail=9, get=itemgetter(2)),
    Column("meaning", detail=1, get=itemgetter(3)),
)
TABLES = (_NAMES, _VALUES)


def facts_report(specs: Iterable[FactSpec]) -> Report:
    """Return the report of all facts; a family has its name with the angle brackets."""
    source = Input("hlo_inspect/passes", first_line=1, lines=0, bytes=0)
    return Report(COMMAND, source, facts={}, tables=(_NAMES.of(specs),))


def facts_of(report: Report) -> Report:
    """Return each fact of a report with meaning and value; of a family, the members that occur (all others are 0)."""
    tables = (_VALUES.of(_rows(report)),)
    return Report(COMMAND, report.input, report.facts, tables, notes=report.notes, profile=report.profile, specs=report.specs)


def _rows(report: Report) -> Iterable[Row]:
    members: dict[str, list[Row]] = {}
    specs = SpecIndex(report.specs)
    for name, value in report.facts.items():
        match = specs.find(name)
        if match is not None:
            spec, _ = match
            meaning = (
                spec.meaning if exact_name(name) == name else f"{_BOUND_WORDS[name.rpartition('.')[2]]} {exact_name(name)}"
            )
            members.setdefault(spec.name, []).append((name, value, spec.unit, meaning))
    for spec in report.specs:
        rows = members.get(spec.name, [])
        if is_family(spec) and not rows:
            yield (spec.name, 0, spec.unit, spec.meaning)
        yield from rows
