"""The rows of a table, made from what they are about when somebody asks for them.

A page shows the first rows of a table and the sums of some columns, and most tables of single instructions not at all. What
makes the values of a row may hold the module: a `Report` has made all rows of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex, overload

Getter = Callable[[Any], Any]


class RowsOnDemand(Sequence[tuple[Any, ...]]):
    """A row for each item. A column is a getter and what it takes its values from: the item, or a part of it, once where
    several items have the same object there. No value is made twice, but a slice makes its own.
    """

    def __init__(self, items: Sequence[Any], columns: Sequence[tuple[Getter, Getter | None]]) -> None:
        self._items = items
        self._getters = columns
        self._columns: dict[int, Sequence[Any]] = {}
        self._parts: dict[Getter, tuple[list[int], dict[int, Any]]] = {}
        self._made: tuple[tuple[Any, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: SupportsIndex) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> RowsOnDemand: ...
    def __getitem__(self, at: SupportsIndex | slice) -> tuple[Any, ...] | RowsOnDemand:
        return RowsOnDemand(self._items[at], self._getters) if isinstance(at, slice) else self.made()[at]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.made())

    def __eq__(self, other: object) -> bool:
        return self.made() == (other.made() if isinstance(other, RowsOnDemand) else other)

    def __hash__(self) -> int:
        return hash(self.made())

    def made(self) -> tuple[tuple[Any, ...], ...]:
        """All rows. They take the place of the columns that were made before."""
        if self._made is None:
            columns = [self.column(at) for at in range(len(self._getters))]  # a getter's `StopIteration` would end a `map`
            self._made = tuple(zip(*columns, strict=True)) if columns else ((),) * len(self)
            self._columns, self._parts = {}, {}
        return self._made

    def column(self, at: int) -> Sequence[Any]:
        """The values of one column in all rows."""
        if self._made is not None:
            return [row[at] for row in self._made]
        if at not in self._columns:
            self._columns[at] = self._values(*self._getters[at])
        return self._columns[at]

    def _values(self, get: Getter, part: Getter | None) -> list[Any]:
        if part is None:
            return [get(item) for item in self._items]
        if part not in self._parts:
            own = [part(item) for item in self._items]
            keys = list(map(id, own))
            self._parts[part] = keys, dict(zip(keys, own, strict=True))
        keys, distinct = self._parts[part]
        values = {key: get(one) for key, one in distinct.items()}
        return list(map(values.__getitem__, keys))


def column_of(rows: Sequence[tuple[Any, ...]], at: int) -> Sequence[Any]:
    """The values of one column in all rows; of rows on demand nothing else is made."""
    return rows.column(at) if isinstance(rows, RowsOnDemand) else [row[at] for row in rows]
