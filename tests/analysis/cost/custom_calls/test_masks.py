"""Pairs of queries and keys that a mask of attention lets through, counted one by one."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.custom_calls.attention import CAUSAL, Mask


def pairs_one_by_one(mask: Mask, queries: int, keys: int) -> int:
    shift = keys - queries if mask.is_bottom_right else 0
    return sum(
        (mask.right is None or key <= query + shift + mask.right) and (mask.left is None or key >= query + shift - mask.left)
        for query in range(queries)
        for key in range(keys)
    )


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize("right", [None, 0, 2, 9])
@pytest.mark.parametrize("left", [None, 0, 1, 9])
def test_pairs_of_a_mask(left: int | None, right: int | None, bottom_right: bool) -> None:
    mask = Mask(left, right, bottom_right)
    for queries in range(9):
        for keys in range(9):
            assert mask.pairs(queries, keys) == pairs_one_by_one(mask, queries, keys), (queries, keys)


def test_pairs_of_long_sequences() -> None:
    """n·(n + 1)/2, and of a window of W keys W·(W + 1)/2 + (n - W)·W."""
    assert CAUSAL.pairs(8192, 8192) == 33_558_528
    assert CAUSAL._replace(left=255).pairs(1024, 1024) == 256 * 257 // 2 + 768 * 256
