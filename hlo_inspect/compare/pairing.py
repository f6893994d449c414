"""Pair the modules of two inputs, and the rows of their tables.

Modules are paired by name, then by content. A single module on each side is a pair whatever its name. Of several, a name that
occurs once on both sides makes a pair. The others are paired by content: the same program, then the same parameters and
results, within one name first. Of several candidates the first in order is taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hlo_inspect.compare.changes import Area, ModuleChange
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

Item = TypeVar("Item")


class PairedPlaces(NamedTuple):
    """Pairs of positions, and the unmatched positions of each side."""

    pairs: list[tuple[int, int]]
    old: list[int]
    new: list[int]


def pair_names(old: Sequence[str], new: Sequence[str]) -> PairedPlaces:
    """Pair modules by their names."""
    if len(old) == 1 and len(new) == 1:
        return PairedPlaces([(0, 0)], [], [])
    once = {name for name, count in Counter(old).items() if count == 1} & {
        name for name, count in Counter(new).items() if count == 1
    }
    return pair_by(old, new, [lambda name: name if name in once else None])


def pair_by(old: Sequence[Item], new: Sequence[Item], keys: Iterable[Callable[[Item], Hashable | None]]) -> PairedPlaces:
    """Pair items that agree in the first key, the rest by the second, and so on, in order. A key of None pairs nothing."""
    left, right = list(range(len(old))), list(range(len(new)))
    pairs: list[tuple[int, int]] = []
    for key in keys:
        waiting: dict[Hashable, list[int]] = {}
        for position in reversed(right):
            waiting.setdefault(key(new[position]), []).append(position)
        waiting.pop(None, None)
        rest: list[int] = []
        taken: set[int] = set()
        for position in left:
            mates = waiting.get(key(old[position]))
            if mates:
                pairs.append((position, mates.pop()))
                taken.add(pairs[-1][1])
            else:
                rest.append(position)
        left, right = rest, [position for position in right if position not in taken]
    return PairedPlaces(pairs, left, right)


def surplus(items: Iterable[Item], others: Iterable[Hashable], key: Callable[[Item], Hashable]) -> Iterator[Item]:
    """Yield the items whose keys the other side lacks. Each of its keys, `others`, matches one item."""
    unmatched = Counter(others)
    for item in items:
        value = key(item)
        if unmatched[value]:
            unmatched[value] -= 1
        else:
            yield item


# -- rows of tables, as dicts by the names of their columns ------------------------------------------------------------

Record = Mapping[str, Value]

_DIGITS = lazy_pattern(r"\d++", re.ASCII)


class RecordPairs(NamedTuple):
    """Pairs of rows, and the unmatched rows of each side."""

    pairs: list[tuple[Record, Record]]
    old: list[Record]
    new: list[Record]


def records_of(report: Report, table: str) -> list[Record] | None:
    """Return the rows of a table; None if the report has no such table."""
    match = next((candidate for candidate in report.tables if candidate.name == table), None)
    return None if match is None else list(match.records())


def pair_records(
    old: Sequence[Record], new: Sequence[Record], keys: Sequence[Callable[[Record], Hashable | None]]
) -> RecordPairs:
    """Pair rows that agree in a key; earlier keys are more specific."""
    paired = pair_by(old, new, keys)
    pairs = [(old[row], new[mate]) for row, mate in paired.pairs]
    return RecordPairs(pairs, [old[row] for row in paired.old], [new[row] for row in paired.new])


def pair_lines(old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int]) -> RecordPairs:
    """Pair rows of matched instructions; `lines` maps the line of each in OLD to that in NEW."""
    places = {record.get("line"): record for record in new}
    pairs, left = [], []
    taken: set[int] = set()
    for record in old:
        line = record.get("line")
        mate = places.get(lines.get(line)) if isinstance(line, int) and line in lines else None
        if mate is None or id(mate) in taken:
            left.append(record)
        else:
            taken.add(id(mate))
            pairs.append((record, mate))
    return RecordPairs(pairs, left, [record for record in new if id(record) not in taken])


def change_of(
    area: Area,
    what: str,
    name: str,
    old: Record | None,
    new: Record | None,
    **more: Any,  # noqa: ANN401 - the other fields of a change
) -> ModuleChange:
    """Return the change of a row, with the lines of the rows of both sides."""
    old_line, new_line = (None if side is None else number(side.get("line")) for side in (old, new))
    return ModuleChange(area, what, (name,), old_line=old_line, new_line=new_line, **more)


def folded(value: Value) -> str:
    """Return a text with `*` for numbers."""
    return _DIGITS.sub("*", str(value or ""))


def text(value: Value) -> str:
    """Format a value for a change."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def more(old: Value, new: Value) -> int | None:
    """Return NEW - OLD of whole numbers; None if one is unknown."""
    before, after = number(old), number(new)
    return None if before is None or after is None else after - before
