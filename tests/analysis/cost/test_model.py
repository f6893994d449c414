from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.model import (
    FIGURES,
    MAX_COUNT,
    TOO_LARGE,
    WORK,
    Figure,
    Gap,
    Part,
    Tally,
    UnknownCostError,
    Work,
)
from tests.analysis.cost.small import by_label

HERE, THERE = Gap(3, "no shape"), Gap(9, "no window")


def tally(**rows: tuple[int, ...]) -> Tally:
    found = Tally()
    for label, amounts in rows.items():
        found.add(Part(label), amounts)
    return found


def get(found: Tally, label: str, figure: Figure) -> int | None:
    return dict(found.by_label()).get(label, Tally()).total(figure)


def labels(found: Tally) -> set[str]:
    return {label for label, _ in found.by_label()}


def test_work() -> None:
    assert Work(2, 3, 4).times(5) == Work(10, 15, 20)
    assert Work(2, 3, 4).plus(Work(1, 1, 1)) == Work(3, 4, 5)


def test_sums_by_label_and_over_all() -> None:
    found = tally(add=(4, 0, 0, 32), dot=(16, 0, 16))
    found.add_one(Part("add"), FIGURES.index("flops"), 6)
    assert by_label(found) == {"add": (10, 0, 0, 32), "dot": (16, 0, 16, 0)}
    assert found.known == (26, 0, 16, 32)
    assert [found.total(figure) for figure in FIGURES] == [26, 0, 16, 32]
    assert found.work == Work(26, 0, 16)


def test_nothing_is_0() -> None:
    assert Tally().known == (0, 0, 0, 0)
    assert Tally().total("flops") == 0
    assert get(Tally(), "add", "flops") == 0
    assert labels(Tally()) == set()


def test_a_gap_hides_a_label_and_the_total_of_its_figure() -> None:
    found = tally(add=(4, 0, 0, 32), dot=(16, 0, 16, 8))
    found.miss(Part("dot"), WORK, THERE)
    found.miss(Part("pad"), ("flops",), HERE)
    found.miss(Part("dot"), ("flops",), HERE)  # the first reason stays
    assert get(found, "dot", "flops") is None
    assert get(found, "dot", "bytes") == 8
    assert get(found, "add", "flops") == 4
    assert (found.total("flops"), found.total("bytes")) == (None, 40)
    assert found.why_unknown("flops") == "line 3: no shape"
    assert found.why_unknown("transcendentals") == "line 9: no window"
    assert found.why_unknown("bytes") == ""
    assert labels(found) == {"add", "dot", "pad"}
    with pytest.raises(UnknownCostError) as raised:
        _ = found.work
    assert raised.value.gap == HERE


def test_a_label_of_zeros_is_none() -> None:
    assert labels(tally(copy=(0, 0, 0, 0), add=(0, 0, 0, 1))) == {"add"}


def test_added_several_times() -> None:
    once = tally(add=(4, 1, 0, 32))
    once.miss(Part("dot"), ("flops",), HERE)
    found = tally(add=(1, 0, 0, 1))
    found.add_all(once, 3)
    assert found.rows[Part("add")] == [13, 3, 0, 97]
    assert found.why_unknown("flops") == "line 3: no shape"


def test_not_run_at_all() -> None:
    once = tally(add=(4, 1, 0, 32))
    once.miss(Part("dot"), ("flops",), HERE)
    found = Tally()
    found.add_all(once, 0)
    assert (found.total("flops"), found.total("bytes")) == (0, 0)


def test_run_unknown_times() -> None:
    """What is 0 stays 0, however often it runs."""
    found = Tally()
    found.add_all(tally(add=(4, 0, 0, 32), copy=(0, 0, 0, 8)), Gap(7, "a loop"))
    assert [found.total(figure) for figure in FIGURES] == [None, 0, 0, None]
    assert (get(found, "copy", "flops"), get(found, "copy", "bytes")) == (0, None)
    assert found.why_unknown("bytes") == "line 7: a loop"


def test_the_largest_of_each_figure() -> None:
    found = tally(add=(1, 0, 0, 0))
    few, many = tally(dot=(5, 0, 5, 100)), tally(tanh=(0, 9, 0, 10), add=(7, 0, 0, 20))
    few.miss(Part("pad"), ("bytes",), HERE)
    found.add_largest([few, many])
    assert by_label(found) == {"add": (8, 0, 0, 0), "tanh": (0, 9, 0, 0), "dot": (0, 0, 5, 100), "pad": (0, 0, 0, 0)}
    assert found.total("bytes") is None
    found.add_largest([])
    assert get(found, "add", "flops") == 8


def test_more_than_can_be_counted() -> None:
    found = tally(dot=(MAX_COUNT + 1,))
    assert (found.total("flops"), get(found, "dot", "flops")) == (None, None)
    assert found.why_unknown("flops") == TOO_LARGE


def test_parts_of_a_label_add_up() -> None:
    """What runs on other units is told apart, and goes under one label."""
    found = Tally()
    found.add(Part("add", "vector.f32"), (4,), 2)
    found.add(Part("add", "vector.s32"), (1,))
    assert found.rows == {Part("add", "vector.f32"): [8, 0, 0, 0], Part("add", "vector.s32"): [1, 0, 0, 0]}
    assert by_label(found) == {"add": (9, 0, 0, 0)}


def test_another_label_keeps_the_units_apart() -> None:
    once = Tally()
    once.add(Part("add", "vector.f32"), (4,))
    once.add(Part("dot", "matmul.bf16"), (16, 0, 16))
    once.miss(Part("pad"), ("bytes",), HERE)
    found = Tally()
    found.add_all(once, 2, "here")
    assert found.rows == {Part("here", "vector.f32"): [8, 0, 0, 0], Part("here", "matmul.bf16"): [32, 0, 32, 0]}
    assert found.gaps == {(Part("here"), "bytes"): HERE}
