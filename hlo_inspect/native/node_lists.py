"""Lists of nodes as two arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import overload


class NodeLists(Sequence[Sequence[int]]):
    """The lists from each of `ends` to before the next, the first from 0."""

    __slots__ = ("ends", "nodes")

    def __init__(self, ends: array[int], nodes: array[int]) -> None:
        self.ends = ends
        self.nodes = nodes

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> NodeLists:
        """Return lists as arrays; the same object if they are."""
        if isinstance(lists, NodeLists):
            return lists
        return cls(array("i", accumulate(map(len, lists))), array("i", chain.from_iterable(lists)))

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, index: int | slice) -> Sequence[int] | Sequence[Sequence[int]]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self.nodes[self.ends[index - 1] if index else 0 : self.ends[index]]

    def __iter__(self) -> Iterator[Sequence[int]]:
        nodes = self.nodes
        return (nodes[start:end] for start, end in pairwise(chain((0,), self.ends)))
