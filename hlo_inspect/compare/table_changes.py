"""What the rows of two tables show: parameters, outputs, the optimizer's weights, collectives and loops that differ."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.compare.changes import Area, Aspect, ModuleChange
from hlo_inspect.compare.pairing import Record, RecordPairs, change_of, folded, more, number, pair_lines, pair_records, text
from hlo_inspect.hlo.values.device_groups import DeviceListError, parse_groups
from hlo_inspect.lazy_pattern import lazy_pattern

_PARAMETER_ASPECTS = ("shape", "sharding", "memory_space")
_BOTH = ("shape", "sharding")
"""What parameters and outputs have both."""


def pair_parameters(old: Sequence[Record], new: Sequence[Record]) -> RecordPairs:
    """The arrays of parameters that belong together: by their paths where these name each one of them, else by number, and of
    another number of parameters those of the same shapes from the first and from the last one on.
    """
    names = [[_path(record) for record in side] for side in (old, new)]
    if all(len(set(side)) == len(side) and "" not in side for side in names) and set(names[0]) & set(names[1]):
        return pair_records(old, new, [_path])
    return pair_in_order(old, new)


def pair_in_order(old: Sequence[Record], new: Sequence[Record]) -> RecordPairs:
    """Rows in their order; where one side has more of them, those that have no mate of their shape between
    the first and the last ones that have.
    """
    if len(old) == len(new):
        return RecordPairs(list(zip(old, new, strict=True)), [], [])
    least = min(len(old), len(new))
    front = 0
    while front < least and old[front]["shape"] == new[front]["shape"]:
        front += 1
    back = 0
    while back < least - front and old[-back - 1]["shape"] == new[-back - 1]["shape"]:
        back += 1
    middle = least - front - back
    pairs = list(zip(old[: front + middle], new[: front + middle], strict=True))
    pairs += zip(old[len(old) - back :], new[len(new) - back :], strict=True)
    return RecordPairs(pairs, list(old[front + middle : len(old) - back]), list(new[front + middle : len(new) - back]))


def parameter_changes(pairs: RecordPairs) -> Iterator[ModuleChange]:
    """What differs between parameters; sizes are bytes of the arrays, for donations those that are given away."""
    yield from (_gone("parameters", record) for record in pairs.old)
    yield from (_new("parameters", record) for record in pairs.new)
    for old, new in pairs.pairs:
        yield from _aspects("parameters", old, new, _PARAMETER_ASPECTS)
        before, after = old.get("donated"), new.get("donated")
        if isinstance(before, bool) and isinstance(after, bool) and before != after:
            size = number(new.get("bytes")) or 0
            what = "not donated any more" if before else "donated now"
            yield change_of("parameters", what, _name(new), None, new, kind="parameter", size=-size if before else size)


def output_changes(pairs: RecordPairs, parameters: RecordPairs) -> Iterator[ModuleChange]:
    """What differs between results. One that takes the place of a parameter that changed in the same way is left out."""
    changed = {
        text(after["number"])
        for before, after in parameters.pairs
        if any(True for _ in _aspects("outputs", before, after, _BOTH))
    }
    yield from (_gone("outputs", record) for record in pairs.old)
    yield from (_new("outputs", record) for record in pairs.new)
    for before, after in pairs.pairs:
        if not after.get("aliased_parameter") or text(after["aliased_parameter"]) not in changed:
            yield from _aspects("outputs", before, after, _BOTH)


def _aspects(area: Area, old: Record, new: Record, names: Sequence[str]) -> Iterator[ModuleChange]:
    """In what an array changed, in one change. Its shape on one device follows from its sharding."""
    differing = [name for name in names if name in old and name in new and old[name] != new[name]]
    if "sharding" in differing and _array(old) == _array(new):
        differing = [name for name in differing if name != "shape"]
    if differing:
        aspects = tuple(_aspect(name, old, new) for name in differing)
        size = more(old.get("bytes"), new.get("bytes"))
        yield change_of(area, "changed", _name(new), old, new, kind=area.removesuffix("s"), aspects=aspects, size=size)


def _aspect(name: str, old: Record, new: Record) -> Aspect:
    """One aspect; of a shape the type, where that is all that differs."""
    shapes = [text(record["shape"]).partition("[") for record in (old, new)]
    if name == "shape" and shapes[0][0] != shapes[1][0] and shapes[0][2] == shapes[1][2]:
        return Aspect("type", shapes[0][0], shapes[1][0])
    return Aspect(name, _spelled(name, old), _spelled(name, new))


def _array(record: Record) -> tuple[str, int]:
    """The type and the number of dimensions of an array."""
    dtype, _, dimensions = text(record["shape"]).partition("[")
    return dtype, dimensions.count(",")


def _spelled(aspect: str, record: Record) -> str:
    """A sharding in the names of mesh axes, where they describe it."""
    return text((record.get("partition_spec") if aspect == "sharding" else None) or record[aspect])


def _gone(area: Area, record: Record) -> ModuleChange:
    return change_of(
        area, "gone", _name(record), record, None, kind=_kind(area, record), size=-(number(record.get("bytes")) or 0)
    )


def _new(area: Area, record: Record) -> ModuleChange:
    return change_of(area, "new", _name(record), None, record, kind=_kind(area, record), size=number(record.get("bytes")))


def _kind(area: Area, record: Record) -> str:
    return f"{text(record.get('shape'))} {area.removesuffix('s')}"


def _name(record: Record) -> str:
    """The path of a parameter, else its number; of an output its index."""
    return text(record.get("path")) or text(record.get("number", record.get("index")))


def _path(record: Record) -> str:
    return f"{text(record.get('path'))}{text(record.get('index'))}" if record.get("path") else ""


_NOT_COMPARED = frozenset({"weight", "path", "shape", "first_moment", "second_moment", "master_weight", "counter"}) | {
    *("bytes", "fusion", "computation", "line")
}
_CLOSE = 1e-5
_MOST_NUMBERS = 1 << 6


def optimizer_changes(old: Sequence[Record], new: Sequence[Record], parameters: RecordPairs) -> Iterator[ModuleChange]:
    """What differs between the rows of two tables of weights; `parameters` says which are the same."""
    followers = {before["number"]: after["number"] for before, after in parameters.pairs}
    places = {one["weight"]: one for one in new}
    for before in old:
        after = places.pop(followers.get(before["weight"]), None)
        if after is None:
            yield change_of("optimizer", "gone", _weight_name(before), before, None, kind=text(before["rule"]))
            continue
        compared = [name for name in before if name not in _NOT_COMPARED and name in after and before[name] != after[name]]
        aspects = tuple(Aspect(name, text(before[name]), text(after[name])) for name in compared)
        if aspects:
            yield change_of("optimizer", "changed", _weight_name(after), before, after, kind="weight", aspects=aspects)
    for after in places.values():
        yield change_of("optimizer", "new", _weight_name(after), None, after, kind=text(after["rule"]))


def _weight_name(record: Record) -> str:
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
