"""The rows of a table, made when somebody asks for them: a page leaves out most tables of single instructions."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import Any, SupportsIndex, overload


class RowsOnDemand(Sequence[tuple[Any, ...]]):
    """A row for each item, with the value of each getter.

    The items may hold the module, so a `Report` makes the rows of all of its tables. A function that returns the items is
    called on first use.
    """

    def __init__(self, items: Sequence[Any] | Callable[[], Sequence[Any]], getters: Sequence[Callable[[Any], Any]]) -> None:
        self._find_items = items
        self._getters = getters
        self._made: tuple[tuple[Any, ...], ...] | None = None

    @cached_property
    def _items(self) -> Sequence[Any]:
        return self._find_items() if callable(self._find_items) else self._find_items

    def made(self) -> tuple[tuple[Any, ...], ...]:
        """Make all rows, once."""
        if self._made is None:
            self._made = tuple([tuple([get(item) for get in self._getters]) for item in self._items])
        return self._made

    def after(self, limit: int, columns: Container[int]) -> Sequence[tuple[Any, ...]]:
        """Return the rows after the first `limit`, with the values of these columns; other values are None."""
        if self._made is not None:
            return self._made[limit:]
        getters = [get if index in columns else _no_value for index, get in enumerate(self._getters)]
        return [tuple([get(item) for get in getters]) for item in self._items[limit:]]

    def first(self, limit: int) -> Sequence[tuple[Any, ...]]:
        """Return the first `limit` rows."""
        return self._made[:limit] if self._made is not None else RowsOnDemand(self._items[:limit], self._getters).made()

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: SupportsIndex) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Any, ...]]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self.made()[index]

    def __eq__(self, other: object) -> bool:
        return self.made() == (other.made() if isinstance(other, RowsOnDemand) else other)

    def __hash__(self) -> int:
        return hash(self.made())


def _no_value(_: object) -> None:
    return None
