"""Which modules of two inputs, and which rows of their tables, belong together.

Modules are paired by name, then by content. One module on each side is a pair whatever its name. Of several, a name that occurs
once on both sides makes a pair; the others are paired by content: the same program, then the same parameters and results,
within one name first. Of equal ones the order decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hlo_inspect.compare.changes import Area, ModuleChange
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report, Value

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


# -- rows of tables, as dicts by the names of their columns ------------------------------------------------------------

Record = Mapping[str, Value]

_DIGITS = lazy_pattern(r"\d++", re.ASCII)


class RecordPairs(NamedTuple):
    """Rows that belong together, and those of each side that are left."""

    pairs: list[tuple[Record, Record]]
    old: list[Record]
    new: list[Record]


def records_of(report: Report, table: str) -> list[Record] | None:
    """The rows of a table; `None` where the report has no such table."""
    found = next((one for one in report.tables if one.name == table), None)
    return None if found is None else list(found.records())


def pair_records(
    old: Sequence[Record], new: Sequence[Record], keys: Sequence[Callable[[Record], Hashable | None]]
) -> RecordPairs:
    """Rows that agree in a key; earlier keys are more specific."""
    found = pair_by(old, new, keys)
    pairs = [(old[at], new[mate]) for at, mate in found.pairs]
    return RecordPairs(pairs, [old[at] for at in found.old], [new[at] for at in found.new])


def pair_lines(old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int]) -> RecordPairs:
    """Rows of instructions that are the same one; `lines` has the line in NEW of each one of OLD that is there."""
    places = {record.get("line"): record for record in new}
    pairs = []
    left = []
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
    """What became of a row, with the lines that the rows of both sides have."""
    old_line, new_line = (None if side is None else number(side.get("line")) for side in (old, new))
    return ModuleChange(area, what, (name,), old_line=old_line, new_line=new_line, **more)


def folded(value: Value) -> str:
    """A text with `*` for numbers; of numbers of an op_name nothing depends."""
    return _DIGITS.sub("*", str(value or ""))


def text(value: Value) -> str:
    """A value as a change shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def more(old: Value, new: Value) -> int | None:
    """NEW - OLD of whole numbers, `None` where one is not known."""
    before, after = number(old), number(new)
    return None if before is None or after is None else after - before
