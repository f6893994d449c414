"""Which of many allocations are taken at which times."""

from __future__ import annotations


class Occupancy:
    """Allocations by number, and the spans of time in which each is taken: a tree over the times whose nodes hold sets of
    allocations as bits of an integer. Taking a span and asking for one are of logarithmic time.
    """

    def __init__(self, times: int) -> None:
        self._leaves = 1 << max(1, times - 1).bit_length()
        self._covering = [0] * (2 * self._leaves)
        self._within = [0] * (2 * self._leaves)

    def take(self, start: int, end: int, allocation: int) -> None:
        """Takes an allocation from `start` to before `end`."""
        bit = 1 << allocation
        low, high = start + self._leaves, end + self._leaves
        covering, within = self._covering, self._within
        while low < high:
            if low & 1:
                covering[low] |= bit
                within[low] |= bit
                low += 1
            if high & 1:
                high -= 1
                covering[high] |= bit
                within[high] |= bit
            low >>= 1
            high >>= 1
        for leaf in (start + self._leaves, end - 1 + self._leaves):
            node = leaf
            while node:
                within[node] |= bit
                node >>= 1

    def free(self, wanted: int, start: int, end: int) -> int:
        """Which of the `wanted` allocations are free at all times from `start` to before `end`; all are bits."""
        covering, within = self._covering, self._within
        for leaf in (start + self._leaves, end - 1 + self._leaves):
            node = leaf
            while node and wanted:
                wanted &= ~covering[node]
                node >>= 1
        low, high = start + self._leaves, end + self._leaves
        while low < high and wanted:
            if low & 1:
                wanted &= ~within[low]
                low += 1
            if high & 1:
                high -= 1
                wanted &= ~within[high]
            low >>= 1
            high >>= 1
        return wanted
