"""Loops that are new or gone, or run another number of times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlo_inspect.compare.changes import Aspect, ModuleChange
from hlo_inspect.compare.records import Record, more, number, pair_lines, pair_records, text

_IN_STEP = ("collectives", "executed_wire_bytes", "runs")


def loop_changes(old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int]) -> Iterator[ModuleChange]:
    """What differs between the rows of two tables of loops; sizes are bytes sent in them in a step."""
    found = pair_lines(old, new, lines)
    rest = pair_records(found.old, found.new, (lambda one: (one["loop"], one["trip_count"]), lambda one: one["source"] or None))
    for before, after in (*found.pairs, *rest.pairs):
        if before["trip_count"] != after["trip_count"]:
            yield _change("changed", before, after)
    for one in rest.old:
        yield _change("gone", one, None)
    for one in rest.new:
        yield _change("new", None, one)


def _change(what: str, old: Record | None, new: Record | None) -> ModuleChange:
    before, after = old or {}, new or {}
    one = new or old or {}
    return ModuleChange(
        "loops",
        what,
        (text(one["loop"]),),
        kind="while" if old and new else f"while of {_times(old or new)} runs",
        aspects=(Aspect("trip count", _times(old), _times(new)),) if old and new else (),
        size=more(before.get("executed_wire_bytes", 0), after.get("executed_wire_bytes", 0)),
        source=text(one.get("source")),
        old_line=number(before.get("line")),
        new_line=number(after.get("line")),
    )


def _times(record: Record | None) -> str:
    return "unknown" if record is None or record["trip_count"] is None else text(record["trip_count"])
