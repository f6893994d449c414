"""Which modules of two inputs belong together: by name, then by content.

One module on each side is a pair whatever its name. Of several, a name that occurs once on both sides makes a pair; the others
are paired by content: the same program, then the same parameters and results, within one name first. Of equal ones the order
decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


class ModulePairs(NamedTuple):
    """Positions of modules that belong together, and of those that are left on each side."""

    pairs: list[tuple[int, int]]
    old: list[int]
    new: list[int]


def pair_names(old: Sequence[str], new: Sequence[str]) -> ModulePairs:
    """The modules whose names tell their mates."""
    if len(old) == 1 and len(new) == 1:
        return ModulePairs([(0, 0)], [], [])
    once = {name for name, count in Counter(old).items() if count == 1} & {
        name for name, count in Counter(new).items() if count == 1
    }
    places = {name: at for at, name in enumerate(new)}
    pairs = [(at, places[name]) for at, name in enumerate(old) if name in once]
    return ModulePairs(
        pairs,
        [at for at, name in enumerate(old) if name not in once],
        [at for at, name in enumerate(new) if name not in once],
    )


def pair_content(
    old: Sequence[Item], new: Sequence[Item], contents: Iterable[Callable[[Item], Hashable | None]]
) -> ModulePairs:
    """Those that agree in one of the contents, of which the earlier ones say more; `None` agrees with nothing."""
    left, right = list(range(len(old))), list(range(len(new)))
    pairs = []
    for content in contents:
        waiting: dict[Hashable, list[int]] = {}
        for at in reversed(right):
            key = content(new[at])
            if key is not None:
                waiting.setdefault(key, []).append(at)
        for at in left:
            mates = waiting.get(content(old[at]))
            if mates:
                pairs.append((at, mates.pop()))
        left = [at for at in left if at not in {one for one, _ in pairs}]
        right = [at for at in right if at not in {other for _, other in pairs}]
    return ModulePairs(sorted(pairs), left, right)
