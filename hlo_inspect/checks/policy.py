"""Check policies: which facts have to meet what, and which findings fail.

    checks:
      collectives.all-to-all.count: 0
      optimizer.name: [adamw, lion]          # any of them
      params.aliased_bytes: ">= 180 MiB"     # YAML needs quotes around what begins with > or !
    fail-if:                                 # differences from the module of --baseline that fail
      - memory.peak_bytes > +5%
    fail-on: warning                         # findings of this severity or above fail too
    ignore:
      - rule: HI102                          # or its name: unused-parameter
        subject: "embed*"                    # optional: only findings about these
        reason: the embedding is kept for the decoder

Anything else in a policy is a `UsageError` with its place. `resolve` decides whether a fact exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar, cast

from hlo_inspect import configs
from hlo_inspect.checks.expressions import Expression, parse_expression, parse_value
from hlo_inspect.configs import ConfigFile, Node
from hlo_inspect.errors import UsageError
from hlo_inspect.findings import find_rule
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import SEVERITIES, Finding, Severity

T = TypeVar("T")

_ASSERTION = lazy_pattern(r"\s*([^\s=<>!]+)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact, by its name as written, and what is expected of it; `place` is where the expectation is written."""

    fact: Node
    expression: Expression
    place: Node


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings of the code `rule`, about a subject that fits the glob where there is one, do not fail, for a `reason`."""

    rule: str
    reason: str
    subject: str | None
    place: Node

    def __str__(self) -> str:
        return self.rule if self.subject is None else f"{self.rule} ({self.subject})"

    def covers(self, finding: Finding) -> bool:
        """Whether it is about this finding."""
        return finding.rule == self.rule and (self.subject is None or fnmatchcase(finding.subject or "", self.subject))


@dataclass(frozen=True, slots=True)
class Policy:
    """What `check` checks: assertions in their order, the least severity that fails, what is ignored, and as they are
    written which differences from a baseline fail.
    """

    assertions: tuple[Assertion, ...] = ()
    fail_on: Severity | None = None
    ignores: tuple[Ignore, ...] = ()
    fail_if: tuple[Node, ...] = ()


def read_policy(path: str | Path) -> Policy:
    """The policy of a YAML file."""
    return policy_of(configs.read(path))


def given(option: str, text: str) -> Node:
    """The text of an option of the command line, which its errors name."""
    return Node(ConfigFile(option, (text,), is_private=False), 1, 1, "text", text)


def parse_assertion(text: str) -> Assertion:
    """An assertion as `--assert` takes it: the fact, then the expression."""
    return assertion_in(given("--assert", text))


def assertion_in(written: Node) -> Assertion:
    """The assertion in a text; that of an option has places in it."""
    match = _ASSERTION.fullmatch(written.scalar)
    if match is None:
        raise written.error("an assertion is a fact and an expression: `collectives.count == 0`")
    is_option = not written.file.is_private
    fact, place = (
        replace(written, column=written.column + (match.start(group) if is_option else 0), scalar=match[group])
        for group in (1, 2)
    )
    return Assertion(fact, _expression(place), place)


def policy_of(root: Node) -> Policy:
    """The policy of a YAML document."""
    fields = root.fields(allowed=("checks", "fail-if", "fail-on", "ignore"))
    checks = fields["checks"].entries() if "checks" in fields else ()
    ignores = fields["ignore"].items() if "ignore" in fields else ()
    conditions = fields["fail-if"].items() if "fail-if" in fields else ()
    return Policy(
        assertions=tuple(Assertion(fact, _expression(value), value) for fact, value in checks),
        fail_on=cast("Severity", fields["fail-on"].choice(SEVERITIES)) if "fail-on" in fields else None,
        ignores=tuple(_ignore(entry) for entry in ignores),
        fail_if=tuple(map(_text, conditions)),
    )


def _text(node: Node) -> Node:
    """The node, which has to be text."""
    node.text()
    return node


def _expression(node: Node) -> Expression:
    """The expression of a value; a list means any of its values."""
    if node.kind == "list":
        values = node.items()
        if not values:
            raise node.error("the list of values is empty")
        return Expression("one of", tuple(_in_place(value, parse_value) for value in values))
    return _in_place(node, parse_expression)


def _in_place(node: Node, parse: Callable[[str], T]) -> T:
    """What `parse` makes of the text of a scalar; its errors get the place."""
    if node.kind in ("list", "mapping"):
        raise node.error(f"an expectation is a value, an expression or a list of values, not a {node.kind}")
    try:
        return parse(node.scalar)
    except ValueError as error:
        raise node.error(str(error)) from error


def _ignore(node: Node) -> Ignore:
    fields = node.fields(allowed=("rule", "reason", "subject"), required=("rule", "reason"))
    try:
        rule = find_rule(fields["rule"].text()).code
    except UsageError as error:
        raise fields["rule"].error(error.message) from error
    if not fields["reason"].text().strip():
        raise fields["reason"].error("the reason is empty")
    subject = fields["subject"].text() if "subject" in fields else None
    return Ignore(rule, fields["reason"].text(), subject, node)
