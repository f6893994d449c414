"""The passes that a policy needs: those of its facts and tables, or all."""

from __future__ import annotations

from hlo_inspect.checks.policy import Policy, resolve
from hlo_inspect.passes import ALPA, MEASURED, MODULE_FACTS, OTHERS, PASSES, WORKLOAD, all_specs, pass_tables, workload_pass
from hlo_inspect.report.facts import find_spec

UNPARSED_LINES, EVERY_LINE = "module.unparsed_lines", "summary"
"""A fact that is known if every line is read, and the pass that reads every line."""


def passes_for(policy: Policy) -> list[str]:
    """Return the passes of a policy's facts and tables; all if findings count. Raise UsageError for an unknown fact."""
    facts = [resolve(assertion, all_specs()).name for assertion in policy.assertions if assertion.rows is None]
    named = {pass_tables()[assertion.rows.table].pass_name for assertion in policy.assertions if assertion.rows is not None}
    if policy.fail_on is not None or policy.ignores or not (facts or named):
        return all_passes()
    questions = (*PASSES, OTHERS.load(ALPA), OTHERS.load(MEASURED), workload_pass())
    named |= {question.name for question in questions if any(find_spec(fact, question.specs) for fact in facts)}
    if UNPARSED_LINES in facts:
        named.add(EVERY_LINE)
    return [name for name in (*all_passes(), MEASURED) if name in named] or [MODULE_FACTS]


def all_passes() -> list[str]:
    """Return the names of all passes that give facts."""
    return [*PASSES.names, ALPA, WORKLOAD]
