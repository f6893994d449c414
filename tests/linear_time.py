"""Assertion that work grows in proportion to its size."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

MOST_GROWTH = 8.0  # linear work takes 4 times as long, quadratic work 16 times
ROUNDS = 3  # measurements of work that seems to grow too fast; other programs slow some of them down


def assert_linear(work: Callable[[int], None], count: int) -> None:
    """Assert that four times the count takes about four times as long. The garbage collector is off meanwhile."""
    gc.disable()
    try:
        grown = [(_seconds(work, count), _seconds(work, 4 * count))]
        while grown[-1][1] >= MOST_GROWTH * grown[-1][0] + 0.1 and len(grown) < ROUNDS:
            grown.append((_seconds(work, count), _seconds(work, 4 * count)))
    finally:
        gc.enable()
    assert grown[-1][1] < MOST_GROWTH * grown[-1][0] + 0.1, grown


def _seconds(work: Callable[[int], None], count: int) -> float:
    start = process_time()
    work(count)
    return process_time() - start
