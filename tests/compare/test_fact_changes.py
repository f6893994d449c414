"""Facts that differ: their differences and their order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from hlo_inspect.compare.fact_changes import differ, difference, fact_changes, share, value_in
from hlo_inspect.passes import all_specs
from hlo_inspect.report import facts
from hlo_inspect.report.facts import Facts, SpecIndex, find_spec
from hlo_inspect.report.model import FactSpec, Input, Report
from hlo_inspect.report.table import Value

SPECS = (
    FactSpec("memory.peak_bytes", "bytes", ""),
    FactSpec("opcode.<opcode>", "count", ""),
    FactSpec("optimizer.name", "text", ""),
    FactSpec("time.step_s", "seconds", ""),
)


def report(facts: dict[str, Value], specs: tuple[FactSpec, ...] = SPECS) -> Report:
    return Report("summary", Input("a.txt", 1, 1, 1), Facts(facts, specs), specs=specs)


def test_memory_and_optimizer_come_before_opcodes() -> None:
    old = report({"opcode.add": 1, "opcode.dot": 100, "optimizer.name": "adam", "memory.peak_bytes": 200, "time.step_s": None})
    new = report({"opcode.add": 3, "opcode.copy": 2, "optimizer.name": "lion", "memory.peak_bytes": 150, "time.step_s": None})
    differing = fact_changes(old, new)
    assert [(change.name, change.old, change.new, change.difference, change.share) for change in differing] == [
        ("memory.peak_bytes", 200, 150, -50, -0.25),
        ("optimizer.name", "adam", "lion", None, None),
        ("opcode.copy", 0, 2, 2, None),
        ("opcode.add", 1, 3, 2, 2.0),
        ("opcode.dot", 100, 0, -100, -1.0),
    ]


def test_there_and_back_are_mirror_images() -> None:
    old, new = report({"opcode.add": 1, "memory.peak_bytes": 7}), report({"opcode.dot": 4, "memory.peak_bytes": 9})
    forward = {change.name: (change.old, change.new) for change in fact_changes(old, new)}
    back = {change.name: (change.new, change.old) for change in fact_changes(new, old)}
    assert forward == back == {"memory.peak_bytes": (7, 9), "opcode.add": (1, 0), "opcode.dot": (0, 4)}


def test_facts_of_one_report_alone_are_left_out() -> None:
    old = report({"opcode.add": 1}, SPECS[1:2])
    assert [change.name for change in fact_changes(old, report({"memory.peak_bytes": 9, "opcode.add": 2}))] == ["opcode.add"]


def test_an_unknown_value_differs_from_a_known_one_and_has_its_lower_bound() -> None:
    old = report({"memory.peak_bytes": None, "memory.peak_bytes.lower_bound": 5})
    new = report({"memory.peak_bytes": 8})
    values = {change.name: (change.old, change.new, change.difference) for change in fact_changes(old, new)}
    assert values == {"memory.peak_bytes": (None, 8, None), "memory.peak_bytes.lower_bound": (5, 8, 3)}
    assert value_in(new, "opcode.dot") == 0
    assert value_in(report({}), "optimizer.name") is None


def test_only_finite_numbers_have_a_difference() -> None:
    assert difference("a", "b") is None
    assert difference(True, False) is None
    assert difference(math.inf, 1.0) is None
    assert share(0, 5) is None
    assert share(-4, -2) == 0.5
    assert not differ(math.nan, math.nan)
    assert differ(None, 0)


def test_each_fact_is_held_against_the_families_that_begin_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are hundreds of specifications, and a saved report may have tens of thousands of facts."""
    tried: Counter[str] = Counter()

    members_of = facts.members_of

    def counted(name: str, spec: FactSpec) -> Iterator[str | None]:
        tried[name] += 1
        return members_of(name, spec)

    specs = all_specs()
    old = report({f"custom_calls.target.{number}": 1 for number in range(300)}, specs)
    new = report({f"custom_calls.target.{number}": 2 for number in range(200, 500)}, specs)
    monkeypatch.setattr(facts, "members_of", counted)
    assert len(fact_changes(old, new)) == 500
    assert max(tried.values()) <= 4


def test_an_index_answers_like_a_search() -> None:
    specs = all_specs()
    index = SpecIndex(specs)
    names = [spec.name for spec in specs]
    names += [re.sub("<.*?>", member, name) for name in names for member in ("data", "all-reduce", "8", "dot", "")]
    names += [name + ".lower_bound" for name in names] + ["", "collectives", "nothing.of.this"]
    assert [index.find(name) for name in names] == [find_spec(name, specs) for name in names]
