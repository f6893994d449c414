from __future__ import annotations

import pytest

from hlo_inspect.passes.instruction_rows import group_rows, joined_name


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
