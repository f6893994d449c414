"""The list of facts that checks can name."""

from __future__ import annotations

from hlo_inspect.checks.policy import facts_of, facts_report
from tests.checks.sample import FACTS, SPECS, sample_report


def test_list_facts_has_every_fact() -> None:
    table = facts_report(SPECS).table("facts")
    assert [row[0] for row in table.rows] == [spec.name for spec in SPECS]
    assert table.rows[2] == ("collectives.operand_bytes", "bytes", "their operands")


def test_the_facts_of_a_module_with_their_values() -> None:
    report = sample_report(facts=FACTS | {"collectives.executed_count.lower_bound": 7})
    rows = {row[0]: row[1:] for row in facts_of(report).table("facts").rows}
    assert rows.keys() >= report.facts.keys()
    assert rows["params.aliased_bytes"] == (188_743_680, "bytes", "aliased with an output")
    assert rows["collectives.all-reduce.count"] == (2, "count", "collectives of a kind")
    assert rows["collectives.executed_count"][0] is None
    assert rows["collectives.executed_count.lower_bound"] == (7, "count", "a lower bound of collectives.executed_count")
    families_without_members = {name: rows[name][0] for name in rows.keys() - report.facts.keys()}
    assert families_without_members == {"collectives.<kind>.operand_bytes": 0, "collectives.phase.<phase>.count": 0}
