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


class PairedPlaces(NamedTuple):
    """Places of what belongs together, and of what is left on each side."""

    pairs: list[tuple[int, int]]
    old: list[int]
    new: list[int]


def pair_names(old: Sequence[str], new: Sequence[str]) -> PairedPlaces:
    """The modules that are paired by their names."""
    if len(old) == 1 and len(new) == 1:
        return PairedPlaces([(0, 0)], [], [])
    once = {name for name, count in Counter(old).items() if count == 1} & {
        name for name, count in Counter(new).items() if count == 1
    }
    places = {name: at for at, name in enumerate(new)}
    pairs = [(at, places[name]) for at, name in enumerate(old) if name in once]
    return PairedPlaces(
        pairs,
        [at for at, name in enumerate(old) if name not in once],
        [at for at, name in enumerate(new) if name not in once],
    )


def pair_by(old: Sequence[Item], new: Sequence[Item], keys: Iterable[Callable[[Item], Hashable | None]]) -> PairedPlaces:
    """What agrees in the first key, then of the rest what agrees in the second, and so on, in the order of both sides. What has
    no key (`None`) agrees with nothing.
    """
    left, right = list(range(len(old))), list(range(len(new)))
    pairs: list[tuple[int, int]] = []
    for key in keys:
        waiting: dict[Hashable, list[int]] = {}
        for at in reversed(right):
            waiting.setdefault(key(new[at]), []).append(at)
        waiting.pop(None, None)
        rest: list[int] = []
        taken: set[int] = set()
        for at in left:
            mates = waiting.get(key(old[at]))
            if mates:
                pairs.append((at, mates.pop()))
                taken.add(pairs[-1][1])
            else:
                rest.append(at)
        left, right = rest, [at for at in right if at not in taken]
    return PairedPlaces(pairs, left, right)
