"""Numbers of which only bounds may be known.

A known number is the int or float that it is. A `Figure` stands in its place if it is unknown: it has bounds, and the reason.
The functions of this module take both, and so do the operators of a figure: `sum` and `*` read as with numbers.

    runs = at_least(1, "the trip count of while.7 depends on a parameter")
    4 + 2 * runs                          # Figure(6, None, "the trip count of while.7 depends on a parameter")
    exact(4), exact(runs), least(runs)    # 4, None, 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Number = int | float

MAX_FIGURE = 10**30
"""Limit of sums and products. Otherwise the integers of a calculation could grow with the text."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An unknown number that is `least` or more, and `greatest` or less; None as `greatest` means no limit.

    A number without a lower limit has -inf as `least`. `reason` says why the number is unknown. Make one with `at_least`,
    `between` or `unknown`.
    """

    least: Number
    greatest: Number | None
    reason: str

    def __add__(self, other: Quantity) -> Quantity:
        return add(self, other)

    __radd__ = __add__

    def __mul__(self, other: Quantity) -> Quantity:
        return multiply(self, other)

    __rmul__ = __mul__

    def __sub__(self, other: Quantity) -> Quantity:
        return subtract(self, other)

    def __rsub__(self, other: Number) -> Quantity:
        return subtract(other, self)


Quantity = int | float | Figure
"""A number, or what is known of it."""


# -- make a figure -----------------------------------------------------------------------------------------------------------


def at_least(least: Number, reason: str) -> Figure:
    """Return the figure that is `least` or more."""
    return Figure(least, None, reason)


def unknown(reason: str) -> Figure:
    """Return the figure of which nothing is known but that it is not negative."""
    return Figure(0, None, reason)


def between(least: Number, greatest: Number | None, reason: str) -> Quantity:
    """Return the figure of these bounds: a number if they are equal."""
    return least if least == greatest else Figure(least, greatest, reason)


def or_unknown(number: Number | None, reason: str) -> Quantity:
    """Return the number, or an unknown figure if it is None."""
    return unknown(reason) if number is None else number


def known_part(number: Number, missing: str) -> Quantity:
    """Return the figure of which `number` is known; the number itself if nothing is `missing`, the reason for the rest."""
    return Figure(number, None, missing) if missing else number


# -- read a quantity ---------------------------------------------------------------------------------------------------------


def least(quantity: Quantity) -> Number:
    """Return the greatest known lower bound."""
    return quantity.least if isinstance(quantity, Figure) else quantity


def greatest(quantity: Quantity) -> Number | None:
    """Return the least known upper bound; None if there is no limit."""
    return quantity.greatest if isinstance(quantity, Figure) else quantity


def exact(quantity: Quantity) -> Number | None:
    """Return the number; None if it is unknown."""
    return None if isinstance(quantity, Figure) else quantity


def reason(quantity: Quantity) -> str:
    """Return why the number is unknown; empty if it is known."""
    return quantity.reason if isinstance(quantity, Figure) else ""


# -- compare -----------------------------------------------------------------------------------------------------------------


def decide(holds: Callable[[Number, Number], bool], quantity: Quantity, number: Number) -> bool | None:
    """Return True if an order such as `operator.le` holds for a quantity and a number; None if its bounds leave it open.

    It holds for all numbers between the bounds if it holds for both.
    """
    limit = greatest(quantity)
    answers = {holds(least(quantity), number), holds(math.inf if limit is None else limit, number)}
    return answers.pop() if len(answers) == 1 else None


def may_equal(quantity: Quantity, number: Number) -> bool:
    """Return True if the number is within the bounds of the quantity."""
    limit = greatest(quantity)
    return least(quantity) <= number and (limit is None or number <= limit)


# -- compute -----------------------------------------------------------------------------------------------------------------


def add(a: Quantity, b: Quantity) -> Quantity:
    """Return the sum."""
    amount = least(a) + least(b)
    if amount <= MAX_FIGURE and not isinstance(a, Figure) and not isinstance(b, Figure):  # as most
        return amount
    return _limited(amount, _sum_of_limits(greatest(a), greatest(b)), reason(a) or reason(b))


def subtract(a: Quantity, b: Quantity) -> Quantity:
    """Return the difference. It has no lower limit if `b` has no limit."""
    lowest = greatest(b)
    low = -math.inf if lowest is None else least(a) - lowest
    highest = greatest(a)
    return _limited(low, None if highest is None else highest - least(b), reason(a) or reason(b))


def multiply(a: Quantity, b: Quantity) -> Quantity:
    """Return the product of two quantities of which none is negative. A factor of 0 makes it 0, whatever the other is."""
    amount = least(a) * least(b)
    if amount <= MAX_FIGURE and not isinstance(a, Figure) and not isinstance(b, Figure):  # as most
        return amount
    limits = greatest(a), greatest(b)
    if 0 in limits:
        return 0
    limit = None if limits[0] is None or limits[1] is None else limits[0] * limits[1]
    return _limited(amount, limit, reason(a) or reason(b))


def total(quantities: Iterable[Quantity]) -> Quantity:
    """Return the sum of all quantities, 0 if there is none."""
    amount: Quantity = 0
    for quantity in quantities:
        amount = add(amount, quantity)
    return amount


def maximum(quantities: Sequence[Quantity]) -> Quantity:
    """Return the largest of the quantities, 0 if there is none."""
    return between(max(map(least, quantities)), _highest(quantities), first_reason(quantities)) if quantities else 0


def minimum(quantities: Sequence[Quantity]) -> Quantity:
    """Return the smallest of the quantities, of which there is one."""
    limits = [limit for limit in map(greatest, quantities) if limit is not None]
    return between(min(map(least, quantities)), min(limits, default=None), first_reason(quantities))


def any_of(quantities: Sequence[Quantity], why: str) -> Quantity:
    """Return bounds that hold whichever of the quantities is the number; `why` is the reason if each of them is known."""
    return between(min(map(least, quantities)), _highest(quantities), first_reason(quantities) or why)


def _highest(quantities: Sequence[Quantity]) -> Number | None:
    """Return the largest limit; None if one has no limit."""
    limits = [limit for limit in map(greatest, quantities) if limit is not None]
    return max(limits) if len(limits) == len(quantities) else None


def first_reason(quantities: Iterable[Quantity]) -> str:
    """Return why the first unknown one of the quantities is unknown; empty if all are known."""
    return next(filter(None, map(reason, quantities)), "")


def _sum_of_limits(a: Number | None, b: Number | None) -> Number | None:
    return None if a is None or b is None else a + b


def _limited(low: Number, high: Number | None, why: str) -> Quantity:
    """Return the figure of these bounds, limited to `MAX_FIGURE`."""
    if low > MAX_FIGURE or (high or 0) > MAX_FIGURE:
        return Figure(min(low, MAX_FIGURE), None, why or "it exceeds 10^30")
    return between(low, high, why)
