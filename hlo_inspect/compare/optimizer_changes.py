"""The optimizer's rule and constants, where they differ: weight by weight, equal ones together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from hlo_inspect.compare.changes import Aspect, ModuleChange
from hlo_inspect.compare.pairing import Record, RecordPairs, change_of, text

_NOT_COMPARED = frozenset({"weight", "path", "shape", "first_moment", "second_moment", "master_weight", "counter"})
_PLACES = frozenset({"bytes", "fusion", "computation", "line"})
_CLOSE = 1e-5
_MOST_NUMBERS = 1 << 6


def optimizer_changes(old: Sequence[Record], new: Sequence[Record], parameters: RecordPairs) -> Iterator[ModuleChange]:
    """What differs between the rows of two tables of weights; `parameters` says which are the same."""
    followers = {before["number"]: after["number"] for before, after in parameters.pairs}
    places = {one["weight"]: one for one in new}
    for before in old:
        after = places.pop(followers.get(before["weight"]), None)
        if after is None:
            yield change_of("optimizer", "gone", _name(before), before, None, kind=text(before["rule"]))
            continue
        aspects = tuple(_aspects(before, after))
        if aspects:
            yield change_of("optimizer", "changed", _name(after), before, after, kind="weight", aspects=aspects)
    for after in places.values():
        yield change_of("optimizer", "new", _name(after), None, after, kind=text(after["rule"]))


def _aspects(old: Record, new: Record) -> Iterator[Aspect]:
    for name in old:
        if name not in _NOT_COMPARED and name not in _PLACES and name in new and old[name] != new[name]:
            yield Aspect(name, text(old[name]), text(new[name]))


def _name(record: Record) -> str:
    return text(record["path"]) or f"weight {text(record['weight'])}"


def known_numbers(aspects: Iterable[Aspect]) -> list[tuple[float, float]]:
    """Hyper-parameters and trip counts before and after, where both are numbers, at most `_MOST_NUMBERS`."""
    found: dict[tuple[float, float], None] = {}
    for aspect in aspects:
        old, new = _number(aspect.was), _number(aspect.now)
        if old is not None and new is not None and len(found) < _MOST_NUMBERS:
            found[old, new] = None
    return list(found)


def explained(change: ModuleChange, known: Iterable[tuple[float, float]]) -> bool:
    """Whether a constant that changed is a number that is known to have changed: as it is, negated, or as 1 - it."""
    was, now = (_number(value) for value in (change.aspects[0].was, change.aspects[0].now))
    if was is None or now is None:
        return False
    for old, new in known:
        for first, second in ((old, new), (-old, -new), (1 - old, 1 - new), (old - 1, new - 1)):
            if math.isclose(was, first, rel_tol=_CLOSE) and math.isclose(now, second, rel_tol=_CLOSE):
                return True
    return False


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
