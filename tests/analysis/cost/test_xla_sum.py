from __future__ import annotations

from hlo_inspect.analysis.cost.model import FIGURES, MAX_COUNT, TOO_LARGE, Gap
from hlo_inspect.analysis.cost.xla_sum import XlaSum

EXACT = 2**24  # from here on a float32 holds every second integer only


def summed(*rows: tuple[int, ...]) -> XlaSum:
    found = XlaSum()
    for row in rows:
        found.add(row)
    return found


def totals(found: XlaSum) -> list[int | None]:
    return [found.total(figure) for figure in FIGURES]


def test_small_sums_are_exact() -> None:
    assert totals(summed((1, 2, 3, 4), (10, 20, 30, 40))) == [11, 22, 33, 44]


def test_each_step_is_rounded_to_a_float32() -> None:
    """A one is lost beside 2^24, once and again; two are not."""
    assert totals(summed((EXACT, EXACT, EXACT, EXACT), (1, 2, 1, 1), (1, 0, 1, 1))) == [EXACT, EXACT + 2, EXACT + 2, EXACT]
    assert totals(summed((1, 0, 0, 1), (1, 0, 0, 1), (EXACT, 0, 0, EXACT))) == [EXACT + 2, 0, 0, EXACT + 2]


def test_an_amount_is_rounded_before_it_is_added() -> None:
    """2^24 + 1 lies between two float32: the even one is taken."""
    assert totals(summed((EXACT + 1, EXACT + 3, EXACT + 1, 0))) == [EXACT, EXACT + 4, EXACT + 1, 0]


def test_another_sum_is_added_as_a_whole() -> None:
    other = summed((1,), (1,))
    found = summed((EXACT,))
    found.add_sum(other)
    assert found.total("flops") == EXACT + 2


def test_the_largest_of_each_figure() -> None:
    found = summed((1, 1, 1, 1))
    found.add_largest([summed((5, 0, 0, 9)), summed((3, 4, 0, 10))])
    assert totals(found) == [6, 5, 1, 11]


def test_gaps_go_with_the_sums() -> None:
    branch = summed((5, 0, 0, 9))
    branch.miss(("flops",), Gap(9, "later"))
    branch.miss(("flops",), Gap(4, "earlier"))
    called, chosen = XlaSum(), XlaSum()
    called.add_sum(branch)
    chosen.add_largest([branch, summed((6,))])
    for found in (branch, called, chosen):
        assert found.total("flops") is None
        assert found.why_unknown("flops") == "line 4: earlier"
        assert (found.total("bytes"), found.why_unknown("bytes")) == (9, "")


def test_more_than_a_float32_holds() -> None:
    found = summed((10**5000, 10**40, MAX_COUNT + 1, MAX_COUNT), (1, 0, 0, 1))
    assert totals(found) == [None, None, None, MAX_COUNT]
    assert found.why_unknown("flops") == TOO_LARGE
