from __future__ import annotations

import pytest

from hlo_inspect.figure import at_least, between
from hlo_inspect.passes.base import FactSheet
from hlo_inspect.passes.instruction_rows import group_rows, joined_name
from hlo_inspect.report.facts import Facts


def test_equal_items_are_together_in_the_place_of_the_first() -> None:
    assert group_rows(["b1", "a1", "b2", "c1", "a2"], key=lambda name: name[0]) == [["b1", "b2"], ["a1", "a2"], ["c1"]]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["fusion.3"], "fusion.3"),
        (["fusion.3", "fusion.17"], "fusion.* × 2"),
        (["fusion", "fusion.1", "fusion.2.remat"], "fusion.* × 3"),
        (["all-gather.1.remat2.clone", "all-gather.7"], "all-gather.* × 2"),
        (["loop_add_fusion.1", "loop_multiply_fusion"], "loop_* × 2"),
        (["add.1", "multiply.2"], "* × 2"),
        (["copy.1"] * 1200, "copy.* × 1,200"),
    ],
)
def test_names_join_at_what_they_share(names: list[str], expected: str) -> None:
    assert joined_name(names) == expected


def test_a_sheet_has_a_note_for_each_unknown_fact() -> None:
    facts = FactSheet()
    facts.put("a", 7)
    facts.put("b", at_least(4, "a loop"))
    facts.put("c", between(1, 3, "a branch"))
    facts.put("d", between(1, 3, "a branch"), "another reason")
    facts.put("e", None, "no schedule")
    facts.put("absent", None)
    facts.put("f", at_least(0, "a call"), with_bound=True)
    facts.put("g", between(0, 7.5e-5, "a window"), unit="seconds")
    notes = ["b: a loop", "c: a branch: 1 to 3", "d: another reason", "e: no schedule", "f: a call", "g: a window: <= 75.0 µs"]
    assert facts.notes == notes
    assert Facts(facts.values, ()) == {
        "a": 7,
        "b": None,
        "b.lower_bound": 4,
        "c": None,
        "c.lower_bound": 1,
        "c.upper_bound": 3,
        "d": None,
        "d.lower_bound": 1,
        "d.upper_bound": 3,
        "e": None,
        "absent": None,
        "f": None,
        "f.lower_bound": 0,
        "g": None,
        "g.upper_bound": 7.5e-5,
    }
