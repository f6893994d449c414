"""The rows of two tables that belong together, as dicts by the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.compare.pairing import pair_by
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report, Value

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
