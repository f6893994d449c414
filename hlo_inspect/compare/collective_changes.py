"""Collectives that are new, gone, moved or changed, and loops that are new or gone, or run another number of times.

Those whose instructions are matched belong together; the others by kind, shape, groups and op_name, in this order of
importance. One that runs another number of times, since it is in another loop or in none, has moved; one whose loop runs
more often has not changed itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.compare.changes import Aspect, ModuleChange
from hlo_inspect.compare.pairing import Record, change_of, folded, more, number, pair_lines, pair_records, text
from hlo_inspect.hlo.values.device_groups import DeviceListError, parse_groups
from hlo_inspect.lazy_pattern import lazy_pattern

_FIELDS = ("kind", "dtype", "shape", "group_size", "replica_groups", "source_target_pairs", "reduction", "is_async", "phase")
_WORDS = {"is_async": "asynchronous", "replica_groups": "groups", "dtype": "type"}
_MOST_MERGED = 1 << 7
"""At most this many collectives are looked at for what they were merged of."""

_IN_COLUMNS = frozenset({"opcode", "operands", "replica_groups", "source_target_pairs", "shape", "type", "to_apply"})
_ARRAY = lazy_pattern(r"[a-z]\w*+\[[^\]]*+\]", re.ASCII)

_KEYS: tuple[Callable[[Record], Hashable | None], ...] = (
    lambda one: (*_what(one), one["replica_groups"], one["source_target_pairs"], folded(one["op_name"]), one["runs"]),
    lambda one: (*_what(one), one["replica_groups"], one["source_target_pairs"], folded(one["op_name"])),
    lambda one: (*_what(one), one["group_size"], one.get("axis"), one["runs"]),
    lambda one: (*_what(one), one["group_size"], one.get("axis")),
    lambda one: (one["kind"], folded(one["op_name"])) if one["op_name"] else None,
)


def _what(one: Record) -> tuple[Hashable, ...]:
    return one["kind"], one["shape"], one["phase"]


def collective_changes(
    old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int], aspects: Mapping[int, Sequence[Aspect]]
) -> Iterator[ModuleChange]:
    """What differs between the rows of two tables of collectives. `lines` are those of matched instructions, old and new;
    `aspects` say by the line in OLD in what these changed. Sizes are bytes that one device sends in a step.
    """
    found = pair_lines(old, new, lines)
    for before, after in found.pairs:
        yield from _changed(before, after, aspects.get(number(before["line"]) or 0, ()))
    rest = pair_records(found.old, found.new, _KEYS)
    for before, after in rest.pairs:
        if before["runs"] != after["runs"]:
            yield _change("moved", before, after, (Aspect("runs", text(before["runs"]), text(after["runs"])),))
        else:
            yield from _changed(before, after, ())
    gone, came = list(rest.old), list(rest.new)
    yield from _merged("merged", gone, came)
    yield from _merged("split", came, gone)
    yield from (_change("gone", one, None, ()) for one in gone)
    yield from (_change("new", None, one, ()) for one in came)


def _merged(what: str, many: list[Record], single: list[Record]) -> Iterator[ModuleChange]:
    """Collectives whose arrays together are those of one on the other side: they are taken out of both lists."""
    for whole in [one for one in single if text(one["shape"]).startswith("(")][:_MOST_MERGED]:
        parts = _parts(whole, [one for one in many if _group(one) == _group(whole)])
        if len(parts) < 2:
            continue
        single.remove(whole)
        for part in parts:
            many.remove(part)
        sizes = [sum(number(one["executed_wire_bytes"]) or 0 for one in side) for side in (parts, [whole])]
        change = _change("new", None, whole, ()) if what == "merged" else _change("gone", whole, None, ())
        size = sizes[1] - sizes[0]
        words = f"{len(parts)} merged in one" if what == "merged" else f"split in {len(parts)}"
        yield replace(change, what=words, size=size if what == "merged" else -size)


def _parts(whole: Record, many: Sequence[Record]) -> list[Record]:
    """Those that have exactly the arrays of `whole` together."""
    wanted = Counter(_ARRAY.findall(text(whole["shape"])))
    found = []
    for one in many:
        arrays = Counter(_ARRAY.findall(text(one["shape"])))
        if arrays <= wanted:
            wanted -= arrays
            found.append(one)
    return [] if wanted else found


def _group(one: Record) -> tuple[Hashable, ...]:
    return one["kind"], one["group_size"], one.get("axis"), one["reduction"], one["runs"]


def _changed(old: Record, new: Record, aspects: Sequence[Aspect]) -> Iterator[ModuleChange]:
    """In what a collective changed, in one change: what it says, then what its attributes say that no column has."""
    differing = [name for name in _FIELDS if old.get(name) != new.get(name)]
    if "replica_groups" in differing and _same_groups(text(old.get("replica_groups")), text(new.get("replica_groups"))):
        differing.remove("replica_groups")
    differing = [name for name in differing if not (name == "shape" and _but_type(old) == _but_type(new))]
    if "replica_groups" in differing and "group_size" in differing:
        differing.remove("group_size")
    told = tuple(Aspect(_WORDS.get(name, name), text(old.get(name)), text(new.get(name))) for name in differing)
    told = told or tuple(one for one in aspects if one.name not in _IN_COLUMNS)
    if told:
        yield _change("changed", old, new, told)


def _same_groups(old: str, new: str) -> bool:
    """Whether two texts mean the same groups, as a list of devices and the axis of a mesh."""
    try:
        first, second = parse_groups(old), parse_groups(new)
        if first.count != second.count or first.sizes != second.sizes:
            return False
        return first.key == second.key or sorted(first.groups) == sorted(second.groups)
    except DeviceListError:
        return False


def _but_type(record: Record) -> str:
    return text(record.get("shape")).replace(f"{text(record.get('dtype'))}[", "[")


def _change(what: str, old: Record | None, new: Record | None, aspects: tuple[Aspect, ...]) -> ModuleChange:
    one = new or old or {}
    sizes = (0 if side is None else side["executed_wire_bytes"] for side in (old, new))
    return change_of(
        "collectives",
        what,
        text(one["name"]),
        old,
        new,
        kind=" ".join(filter(None, (_arrays(one), text(one["kind"]), _over(one)))),
        aspects=aspects,
        size=more(*sizes),
        phase=text(one["phase"]),
        source=text(one["source"]),
    )


def _arrays(one: Record) -> str:
    """The shape; of a tuple how many arrays it holds."""
    shape = text(one["shape"])
    return f"{len(_ARRAY.findall(shape))} arrays" if shape.startswith("(") else shape


def _over(one: Record) -> str:
    if one.get("axis"):
        return f"over {one['axis']}"
    return f"over groups of {one['group_size']}" if one.get("group_size") else ""


# -- loops -------------------------------------------------------------------------------------------------------------


def loop_changes(old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int]) -> Iterator[ModuleChange]:
    """What differs between the rows of two tables of loops; sizes are bytes sent in them in a step."""
    found = pair_lines(old, new, lines)
    rest = pair_records(found.old, found.new, (lambda one: (one["loop"], one["trip_count"]), lambda one: one["source"] or None))
    for before, after in (*found.pairs, *rest.pairs):
        if before["trip_count"] != after["trip_count"]:
            yield _loop_change("changed", before, after)
    for one in rest.old:
        yield _loop_change("gone", one, None)
    for one in rest.new:
        yield _loop_change("new", None, one)


def _loop_change(what: str, old: Record | None, new: Record | None) -> ModuleChange:
    before, after = old or {}, new or {}
    one = new or old or {}
    return change_of(
        "loops",
        what,
        text(one["loop"]),
        old,
        new,
        kind="while" if old and new else f"while of {_times(old or new)} runs",
        aspects=(Aspect("trip count", _times(old), _times(new)),) if old and new else (),
        size=more(before.get("executed_wire_bytes", 0), after.get("executed_wire_bytes", 0)),
        source=text(one.get("source")),
    )


def _times(record: Record | None) -> str:
    return "unknown" if record is None or record["trip_count"] is None else text(record["trip_count"])
