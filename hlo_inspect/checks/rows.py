"""The rows of a fact: which rows of which table a failed check is about.

One line of `_ROWS_OF_FACTS` says so for each group of facts; a fact that no line covers is about all rows of the table that is
named like its first segment, where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hlo_inspect.report.model import Report, Row, Table, Value

MAX_ROWS = 10

Wanted = Callable[[Value, str], bool]  # (value in the column, what the group of the pattern matched) -> is the row meant


def _is_member(value: Value, member: str) -> bool:
    return str(value) == member


def _is_set(value: Value, _: str) -> bool:
    return bool(value)


def _is_known(value: Value, _: str) -> bool:
    return value is not None


def _is_unknown(value: Value, _: str) -> bool:
    return value is None


def _is_several(value: Value, _: str) -> bool:
    return isinstance(value, int) and value > 1


def _is_collective(value: Value, _: str) -> bool:
    return value not in ("send", "recv")  # they are rows of the table and not in its totals


@dataclass(frozen=True, slots=True)
class RowsOfFact:
    """Facts that fit `fact` are about the rows of `table` where every named column is as wanted."""

    fact: str
    table: str
    wanted: tuple[tuple[str, Wanted], ...] = ()


_ROWS_OF_FACTS = (
    RowsOfFact(r"collectives\.async_count", "collectives", (("is_async", _is_set),)),
    RowsOfFact(r"collectives\.\w+", "collectives", (("kind", _is_collective),)),
    RowsOfFact(r"collectives\.group_size\.(.+)\.\w+", "collectives", (("group_size", _is_member),)),
    RowsOfFact(r"collectives\.phase\.(.+)\.\w+", "collectives", (("phase", _is_member),)),
    RowsOfFact(r"collectives\.(.+)\.\w+", "collectives", (("kind", _is_member),)),
    RowsOfFact(r"params\.aliased_\w+", "params", (("aliased_output", _is_known),)),
    RowsOfFact(r"params\.donor_\w+", "params", (("donated", _is_set), ("aliased_output", _is_unknown))),
    RowsOfFact(r"params\.donated_\w+", "params", (("donated", _is_set),)),
    RowsOfFact(r"params\.unused_\w+", "params", (("unused", _is_set),)),
    RowsOfFact(r"outputs\.aliased_\w+", "outputs", (("aliased_parameter", _is_known),)),
    RowsOfFact(r"fusions\.kind\.(.+)", "fusions", (("kind", _is_member),)),
    RowsOfFact(r"fusions\.multi_output_count", "fusions", (("outputs", _is_several),)),
    RowsOfFact(r"custom_calls\.target\.(.+)", "custom_calls", (("target", _is_member),)),
    RowsOfFact(r"optimizer\.decayed_count", "optimizer", (("weight_decay", _is_set),)),
)


def rows_behind(fact: str, report: Report, name: str) -> Table | None:
    """A table called `name` of at most `MAX_ROWS` rows that `fact` is about, the last one summing what is cut; `None` when the
    report has no such rows.
    """
    rule, member = _rule_of(fact)
    table = next((table for table in report.tables if table.name == rule.table), None)
    if table is None:
        return None
    rows = _select(table, rule, member)
    if not rows:
        return None
    behind = Table(name, f"{table.title}: rows behind {fact}", table.columns, rows)
    return behind if len(rows) <= MAX_ROWS else behind.top(MAX_ROWS - 1)


def _rule_of(fact: str) -> tuple[RowsOfFact, str]:
    for rule in _ROWS_OF_FACTS:
        if match := re.fullmatch(rule.fact, fact):
            return rule, match[1] if match.re.groups else ""
    return RowsOfFact(fact, fact.partition(".")[0]), ""


def _select(table: Table, rule: RowsOfFact, member: str) -> tuple[Row, ...]:
    """The rows that the rule wants; none where the table lacks one of its columns."""
    names = [column.name for column in table.columns]
    if any(column not in names for column, _ in rule.wanted):
        return ()
    tests = [(names.index(column), wanted) for column, wanted in rule.wanted]
    return tuple(row for row in table.rows if all(wanted(row[at], member) for at, wanted in tests))
