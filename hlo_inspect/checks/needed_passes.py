"""The passes that a policy needs: those of its facts and tables, or all."""

from __future__ import annotations

from hlo_inspect.checks.policy import Policy, resolve
from hlo_inspect.passes import ALPA, ASSERTABLE_TABLES, MEASURED, MODULE_FACTS, PASSES, WORKLOAD, questions_about, specs_about
from hlo_inspect.report.facts import find_spec

UNPARSED_LINES, EVERY_LINE = "module.unparsed_lines", "summary"
"""A fact that is known if every line is read, and the pass that reads every line."""


def passes_for(policy: Policy) -> list[str]:
    """Return the passes whose facts and tables the policy names; all if it counts or ignores findings.

    Raise UsageError for an unknown fact, before an input is read.
    """
    named: set[str] = set()
    for assertion in policy.assertions:
        if assertion.rows is not None:
            named.add(ASSERTABLE_TABLES[assertion.rows.table])
            continue
        fact = resolve(assertion, specs_about(assertion.fact.scalar)).name
        named |= {question.name for question in questions_about(fact) if find_spec(fact, question.specs)}
        if fact == UNPARSED_LINES:
            named.add(EVERY_LINE)
    if policy.fail_on is not None or policy.ignores or not named:
        return all_passes()
    return [name for name in (*all_passes(), MEASURED) if name in named] or [MODULE_FACTS]


def all_passes() -> list[str]:
    """Return the names of all passes that give facts."""
    return [*PASSES.names, ALPA, WORKLOAD]
