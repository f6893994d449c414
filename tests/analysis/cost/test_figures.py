"""Sums of figures by label, with gaps and bounds, and as XLA rounds them."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import (
    FIGURES,
    MAX_COUNT,
    MAX_XLA_SUM,
    TOO_LARGE,
    WORK,
    CostFigure,
    CostGap,
    Tally,
    TallyKey,
    UnknownCostError,
    Work,
    XlaSum,
)
from hlo_inspect.figure import Number, exact, reason
from tests.analysis.cost.small import by_label

HERE, THERE = CostGap(3, "no shape"), CostGap(9, "no window")


def tally(**rows: tuple[int, ...]) -> Tally:
    sums = Tally()
    for label, amounts in rows.items():
        sums.add(TallyKey(label.replace("_", "-")), amounts)
    return sums


def get(sums: Tally, label: str, figure: CostFigure) -> Number | None:
    return exact(dict(sums.by_label()).get(label, Tally()).bounds(figure))


def labels(sums: Tally) -> set[str]:
    return {label for label, _ in sums.by_label()}


def test_work() -> None:
    assert Work(2, 3, 4).times(5) == Work(10, 15, 20)
    assert Work(2, 3, 4).plus(Work(1, 1, 1)) == Work(3, 4, 5)


def test_sums_by_label_and_over_all() -> None:
    sums = tally(add=(4, 0, 0, 32), dot=(16, 0, 16))
    sums.add_one(TallyKey("add"), FIGURES.index("flops"), 6)
    assert by_label(sums) == {"add": (10, 0, 0, 32), "dot": (16, 0, 16, 0)}
    assert sums.known == (26, 0, 16, 32)
    assert [exact(sums.bounds(figure)) for figure in FIGURES] == [26, 0, 16, 32]
    assert sums.work == Work(26, 0, 16)


def test_nothing_is_0() -> None:
    assert Tally().known == (0, 0, 0, 0)
    assert exact(Tally().bounds("flops")) == 0
    assert get(Tally(), "add", "flops") == 0
    assert labels(Tally()) == set()


def test_a_gap_hides_a_label_and_the_total_of_its_figure() -> None:
    sums = tally(add=(4, 0, 0, 32), dot=(16, 0, 16, 8))
    sums.miss(TallyKey("dot"), WORK, THERE)
    sums.miss(TallyKey("pad"), ("flops",), HERE)
    sums.miss(TallyKey("dot"), ("flops",), HERE)  # the first reason stays
    assert get(sums, "dot", "flops") is None
    assert get(sums, "dot", "bytes") == 8
    assert get(sums, "add", "flops") == 4
    assert (exact(sums.bounds("flops")), exact(sums.bounds("bytes"))) == (None, 40)
    assert reason(sums.bounds("flops")) == "line 3: no shape"
    assert reason(sums.bounds("transcendentals")) == "line 9: no window"
    assert reason(sums.bounds("bytes")) == ""
    assert labels(sums) == {"add", "dot", "pad"}
    with pytest.raises(UnknownCostError) as raised:
        _ = sums.work
    assert raised.value.gap == HERE


def test_a_label_of_zeros_is_left_out() -> None:
    assert labels(tally(copy=(0, 0, 0, 0), add=(0, 0, 0, 1))) == {"add"}


def test_sums_and_gaps_are_added() -> None:
    more = tally(add=(4, 1, 0, 32))
    more.miss(TallyKey("dot"), ("flops",), HERE)
    sums = tally(add=(1, 0, 0, 1))
    sums.add_all(more)
    assert sums.rows[TallyKey("add")] == [5, 1, 0, 33]
    assert reason(sums.bounds("flops")) == "line 3: no shape"


def test_run_unknown_times() -> None:
    """A figure of 0 stays 0, however often it runs; the others have a lower bound."""
    sums = Tally()
    sums.add_runs(TallyKey("add"), (4, 0, 0, 32), (2, 2, 2, 1), CostGap(7, "a loop"))
    sums.add(TallyKey("copy"), (0, 0, 0, 8), 3)
    assert [exact(sums.bounds(figure)) for figure in FIGURES] == [None, 0, 0, None]
    assert sums.known == (8, 0, 0, 32 + 24)
    assert (get(sums, "copy", "flops"), get(sums, "copy", "bytes")) == (0, 24)
    assert reason(sums.bounds("bytes")) == "line 7: a loop"


def test_the_largest_of_each_figure() -> None:
    sums = tally(add=(1, 0, 0, 0))
    few, many = tally(dot=(5, 0, 5, 100)), tally(tanh=(0, 9, 0, 10), add=(7, 0, 0, 20))
    few.miss(TallyKey("pad"), ("bytes",), HERE)
    sums.add_largest([few, many])
    assert by_label(sums) == {"add": (8, 0, 0, 0), "tanh": (0, 9, 0, 0), "dot": (0, 0, 5, 100), "pad": (0, 0, 0, 0)}
    assert exact(sums.bounds("bytes")) is None
    sums.add_largest([])
    assert get(sums, "add", "flops") == 8


def test_more_than_can_be_counted() -> None:
    sums = tally(dot=(MAX_COUNT + 1,))
    assert (exact(sums.bounds("flops")), get(sums, "dot", "flops")) == (None, None)
    assert reason(sums.bounds("flops")) == TOO_LARGE


def test_parts_of_a_label_add_up() -> None:
    """Work on other units has its own row, under one label."""
    sums = Tally()
    sums.add(TallyKey("add", "vector.f32"), (4,), 2)
    sums.add(TallyKey("add", "vector.s32"), (1,))
    assert sums.rows == {TallyKey("add", "vector.f32"): [8, 0, 0, 0], TallyKey("add", "vector.s32"): [1, 0, 0, 0]}
    assert by_label(sums) == {"add": (9, 0, 0, 0)}


# -- as XLA adds them up -------------------------------------------------------------------------------------------------------


EXACT = 2**24  # from here on a float32 holds every second integer only


def summed(*rows: tuple[int, ...]) -> XlaSum:
    total = XlaSum()
    for row in rows:
        total.add(row)
    return total


def totals(total: XlaSum) -> list[Number | None]:
    return [exact(total.bounds(figure)) for figure in FIGURES]


def test_rows_that_are_added_at_once_are_rounded_one_after_the_other() -> None:
    """Two ones are lost beside 2^24, and 2^24 + 3 lies between two float32."""
    total = XlaSum()
    total.add((EXACT, EXACT, EXACT, 1), (1, 1, 1, 2), (1, 1, 1, 3), (3, 2, 3, 4))
    assert totals(total) == [EXACT + 4, EXACT + 2, EXACT + 5, 10]


def test_gaps_go_with_the_sums() -> None:
    branch = summed((5, 0, 0, 9))
    branch.miss(("flops",), CostGap(9, "later"))
    branch.miss(("flops",), CostGap(4, "earlier"))
    called, chosen = XlaSum(), XlaSum()
    called.add_sum(branch)
    chosen.add_largest([branch, summed((6,))])
    for total in (branch, called, chosen):
        assert exact(total.bounds("flops")) is None
        assert reason(total.bounds("flops")) == "line 4: earlier"
        assert (exact(total.bounds("bytes")), reason(total.bounds("bytes"))) == (9, "")


def test_more_than_a_float32_holds() -> None:
    total = summed((10**5000, 10**40, MAX_XLA_SUM + 1, MAX_XLA_SUM), (1, 0, 0, 1))
    assert totals(total) == [None, None, None, MAX_XLA_SUM]
    assert reason(total.bounds("flops")) == TOO_LARGE
