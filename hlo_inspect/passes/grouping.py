"""Rows that are equal but for their name, joined for a page: `fusion.* × 24`."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from os.path import commonprefix
from typing import TypeVar

from hlo_inspect.lazy_pattern import lazy_pattern

Item = TypeVar("Item")

_NUMBERED = lazy_pattern(r"(?:\.(?:[0-9]+|clone|remat[0-9]*))++$", re.ASCII)
_SHORTEST_STEM = 3


def group_rows(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """The items by their key, each group in the place of its first item."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def joined_name(names: Sequence[str]) -> str:
    """One name for several instructions: what they have in common and how many they are, as `fusion.* × 24`."""
    if len(names) == 1:
        return names[0]
    stems = {_NUMBERED.sub("", name) for name in names}
    if len(stems) == 1:
        return f"{stems.pop()}.* × {len(names):,}"
    stem = commonprefix(list(stems))  # noqa: RUF071 - names are no paths, and share characters
    return f"{stem if len(stem) >= _SHORTEST_STEM else ''}* × {len(names):,}"
