"""Changes that table rows show: parameters, outputs, the optimizer's weights, collectives and loops."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.compare.changes import Area, Aspect, ModuleChange
from hlo_inspect.compare.pairing import Record, RecordPairs, change_of, folded, more, number, pair_lines, pair_records, text
from hlo_inspect.hlo.tokens import split_items
from hlo_inspect.hlo.values.device_groups import DeviceListError, parse_groups
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.table import Value

_PARAMETER_ASPECTS = ("shape", "sharding", "memory_space")
_BOTH = ("shape", "sharding")
"""Properties that parameters and outputs share."""


def pair_parameters(old: Sequence[Record], new: Sequence[Record]) -> RecordPairs:
    """Pair the arrays of parameters: by their paths if each has its own, else by number.

    If the numbers of parameters differ, pair those of the same shapes from both ends.
    """
    names = [[_path(record) for record in side] for side in (old, new)]
    if all(len(set(side)) == len(side) and "" not in side for side in names) and set(names[0]) & set(names[1]):
        return pair_records(old, new, [_path])
    return pair_in_order(old, new)


def pair_in_order(old: Sequence[Record], new: Sequence[Record]) -> RecordPairs:
    """Pair rows in their order. If one side has more, match equal shapes from both ends; the surplus between is left out."""
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


def parameter_changes(pairs: RecordPairs, *, have_one_mesh: bool = True) -> Iterator[ModuleChange]:
    """Yield the changes of parameters; sizes are bytes of the arrays, for donations the donated bytes."""
    yield from _unpaired("parameters", pairs)
    for old, new in pairs.pairs:
        yield from _aspects("parameters", old, new, _PARAMETER_ASPECTS, have_one_mesh)
        before, after = old.get("donated"), new.get("donated")
        if isinstance(before, bool) and isinstance(after, bool) and before != after:
            size = number(new.get("bytes")) or 0
            what = "not donated any more" if before else "donated now"
            yield change_of("parameters", what, _name(new), None, new, kind="parameter", size=-size if before else size)


def output_changes(pairs: RecordPairs, parameters: RecordPairs, *, have_one_mesh: bool = True) -> Iterator[ModuleChange]:
    """Yield the changes of outputs, except those that alias a parameter which changed in the same way."""
    changed = {
        text(after["number"])
        for before, after in parameters.pairs
        if any(True for _ in _aspects("outputs", before, after, _BOTH, have_one_mesh))
    }
    yield from _unpaired("outputs", pairs)
    for before, after in pairs.pairs:
        if not after.get("aliased_parameter") or text(after["aliased_parameter"]) not in changed:
            yield from _aspects("outputs", before, after, _BOTH, have_one_mesh)


def _aspects(area: Area, old: Record, new: Record, names: Sequence[str], have_one_mesh: bool) -> Iterator[ModuleChange]:
    """Yield one change with the changed properties of an array, if both are known. Its shape follows from its sharding.

    A sharding over the same axes of another mesh is no change of the array.
    """
    comparable = [name for name in names if old.get(name) is not None and new.get(name) is not None]
    differing = [name for name in comparable if old[name] != new[name]]
    if "sharding" in differing:
        copies = {side.get("copies") for side in (old, new)} - {None}
        is_same = _spelled("sharding", old) == _spelled("sharding", new) and not (have_one_mesh and len(copies) > 1)
        follows = _differs_along_axes(old, new) if is_same else _array(old) == _array(new)
        dropped = {"sharding": is_same, "shape": follows}
        differing = [name for name in differing if not dropped.get(name)]
    if differing:
        aspects = tuple(_aspect(name, old, new) for name in differing)
        size = more(old.get("bytes"), new.get("bytes"))
        yield change_of(area, "changed", _name(new), old, new, kind=area.removesuffix("s"), aspects=aspects, size=size)


def _aspect(name: str, old: Record, new: Record) -> Aspect:
    """Return one aspect; for a shape the type, if nothing else of it differs."""
    shapes = [text(record["shape"]).partition("[") for record in (old, new)]
    if name == "shape" and shapes[0][0] != shapes[1][0] and shapes[0][2] == shapes[1][2]:
        return Aspect("type", shapes[0][0], shapes[1][0])
    was, now = _spelled(name, old), _spelled(name, new)
    return Aspect(name, was, now) if was != now else Aspect(name, text(old[name]), text(new[name]))


def _differs_along_axes(old: Record, new: Record) -> bool:
    """Return True if two shapes differ only in dimensions that the partition spec divides."""
    spec = text(new.get("partition_spec"))
    items = [spec[start:end].strip() for start, end in split_items(spec, 1, len(spec) - 1)]
    shapes = [text(record["shape"]).partition("]")[0].partition("[")[2].split(",") for record in (old, new)]
    items += ["None"] * (len(shapes[0]) - len(items))
    return _array(old) == _array(new) and all(
        was == now for was, now, item in zip(*shapes, items, strict=False) if item == "None"
    )


def _array(record: Record) -> tuple[str, int]:
    """Return the type and the number of dimensions of an array."""
    dtype, _, dimensions = text(record["shape"]).partition("[")
    return dtype, dimensions.count(",")


def _spelled(aspect: str, record: Record) -> str:
    """Return the text of a property; a sharding in the names of mesh axes, if they describe it."""
    return text((record.get("partition_spec") if aspect == "sharding" else None) or record[aspect])


def _unpaired(area: Area, pairs: RecordPairs) -> Iterator[ModuleChange]:
    """Yield the arrays that one side lacks."""
    for record, is_gone in (*((record, True) for record in pairs.old), *((record, False) for record in pairs.new)):
        kind, size = f"{text(record.get('shape'))} {area.removesuffix('s')}", number(record.get("bytes"))
        if is_gone:
            yield change_of(area, "gone", _name(record), record, None, kind=kind, size=-(size or 0))
        else:
            yield change_of(area, "new", _name(record), None, record, kind=kind, size=size)


def _name(record: Record) -> str:
    """Return the path of a parameter, else its number, or an output's index."""
    return text(record.get("path")) or text(record.get("number", record.get("index")))


def _path(record: Record) -> str:
    return f"{text(record.get('path'))}{text(record.get('index'))}" if record.get("path") else ""


_NOT_COMPARED = frozenset({"weight", "path", "shape", "first_moment", "second_moment", "master_weight", "counter"}) | {
    *("bytes", "fusion", "computation", "line")
}
_ROLES = ("weight", "first_moment", "second_moment", "master_weight")
_CLOSE = 1e-5
_MOST_NUMBERS = 1 << 6


def optimizer_changes(old: Sequence[Record], new: Sequence[Record], parameters: RecordPairs) -> Iterator[ModuleChange]:
    """Yield the changes of the optimizer's weights; `parameters` pairs the parameters."""
    followers = {before["number"]: after["number"] for before, after in parameters.pairs}
    unmatched = {record["weight"]: record for record in new}
    gone: list[Record] = []
    for before in old:
        after = unmatched.pop(followers.get(before["weight"]), None)
        if after is None:
            gone.append(before)
            continue
        compared = [name for name in before if name not in _NOT_COMPARED and name in after and before[name] != after[name]]
        aspects = tuple(Aspect(name, text(before[name]), text(after[name])) for name in compared)
        if aspects:
            yield change_of("optimizer", "changed", _weight_name(after), before, after, kind="weight", aspects=aspects)
    same_arrays = {_arrays_of_update(record): record for record in unmatched.values()}
    for before in gone:
        after = same_arrays.pop(_arrays_of_update(before, followers), None)
        if after is None:
            yield change_of("optimizer", "gone", _weight_name(before), before, None, kind=text(before["rule"]))
            continue
        del unmatched[after["weight"]]
        aspects = (Aspect("roles of the same arrays"),)
        yield change_of("optimizer", "changed", _weight_name(after), before, after, kind="weight", aspects=aspects)
    for after in unmatched.values():
        yield change_of("optimizer", "new", _weight_name(after), None, after, kind=text(after["rule"]))


def _arrays_of_update(record: Record, followers: Mapping[Value, Value] | None = None) -> Hashable:
    """Return rule, weight and states of an update. Which of equal arrays is the weight may be a tie between two compilers."""
    numbers = [record.get(name) for name in _ROLES if record.get(name) is not None]
    return record["rule"], frozenset(numbers if followers is None else map(followers.get, numbers))


def _weight_name(record: Record) -> str:
    return text(record["path"]) or f"weight {text(record['weight'])}"


def changed_numbers(aspects: Iterable[Aspect]) -> list[tuple[float, float]]:
    """Return hyper-parameters and trip counts before and after, if both are numbers, at most `_MOST_NUMBERS`."""
    pairs: dict[tuple[float, float], None] = {}
    for aspect in aspects:
        old, new = _number(aspect.was), _number(aspect.now)
        if old is not None and new is not None and len(pairs) < _MOST_NUMBERS:
            pairs[old, new] = None
    return list(pairs)


def explained(change: ModuleChange, numbers: Iterable[tuple[float, float]]) -> bool:
    """Return True if a changed constant follows from one of the `numbers`: itself, negated, as 1 - it or it - 1."""
    was, now = (_number(value) for value in (change.aspects[0].was, change.aspects[0].now))
    if was is None or now is None:
        return False
    for old, new in numbers:
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
"""Limit of collectives that are examined as the result of a merge."""

_IN_COLUMNS = frozenset({"opcode", "operands", "replica_groups", "source_target_pairs", "shape", "type", "to_apply"})
_ARRAY = lazy_pattern(r"[a-z]\w*+\[[^\]]*+\]", re.ASCII)

_KEYS: tuple[Callable[[Record], Hashable | None], ...] = (
    lambda row: (*_collective_key(row), row["replica_groups"], row["source_target_pairs"], folded(row["op_name"]), row["runs"]),
    lambda row: (*_collective_key(row), row["replica_groups"], row["source_target_pairs"], folded(row["op_name"])),
    lambda row: (*_collective_key(row), row["group_size"], row.get("axis"), row["runs"]),
    lambda row: (*_collective_key(row), row["group_size"], row.get("axis")),
    lambda row: (row["kind"], folded(row["op_name"])) if row["op_name"] else None,
)


def _collective_key(row: Record) -> tuple[Hashable, ...]:
    return row["kind"], row["shape"], row["phase"]


def collective_changes(
    old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int], aspects: Mapping[int, Sequence[Aspect]]
) -> Iterator[ModuleChange]:
    """Yield the changes of collectives; sizes are bytes that one device sends in a step.

    `lines` are those of matched instructions, old and new. `aspects` are the changes of instructions by their line in OLD.
    """
    matched = pair_lines(old, new, lines)
    for before, after in matched.pairs:
        yield from _changed(before, after, aspects.get(number(before["line"]) or 0, ()))
    rest = pair_records(matched.old, matched.new, _KEYS)
    for before, after in rest.pairs:
        if before["runs"] != after["runs"]:
            yield _change("moved", before, after, (Aspect("runs", text(before["runs"]), text(after["runs"])),))
        else:
            yield from _changed(before, after, ())
    gone, came = list(rest.old), list(rest.new)
    yield from _merged("merged", gone, came)
    yield from _merged("split", came, gone)
    yield from (_change("gone", record, None, ()) for record in gone)
    yield from (_change("new", None, record, ()) for record in came)


def _merged(what: str, many: list[Record], single: list[Record]) -> Iterator[ModuleChange]:
    """Yield collectives whose arrays together are those of one on the other side, and remove them from both lists."""
    for whole in [record for record in single if text(record["shape"]).startswith("(")][:_MOST_MERGED]:
        parts = _parts(whole, [record for record in many if _group(record) == _group(whole)])
        if len(parts) < 2:
            continue
        single.remove(whole)
        for part in parts:
            many.remove(part)
        sizes = [sum(number(record["executed_wire_bytes"]) or 0 for record in side) for side in (parts, [whole])]
        change = _change("new", None, whole, ()) if what == "merged" else _change("gone", whole, None, ())
        size = sizes[1] - sizes[0]
        words = f"{len(parts)} merged in one" if what == "merged" else f"split in {len(parts)}"
        yield replace(change, what=words, size=size if what == "merged" else -size)


def _parts(whole: Record, many: Sequence[Record]) -> list[Record]:
    """Return the collectives of `many` that together have exactly the arrays of `whole`."""
    wanted = Counter(_ARRAY.findall(text(whole["shape"])))
    parts = []
    for record in many:
        arrays = Counter(_ARRAY.findall(text(record["shape"])))
        if arrays <= wanted:
            wanted -= arrays
            parts.append(record)
    return [] if wanted else parts


def _group(record: Record) -> tuple[Hashable, ...]:
    return record["kind"], record["group_size"], record.get("axis"), record["reduction"], record["runs"]


def _changed(old: Record, new: Record, aspects: Sequence[Aspect]) -> Iterator[ModuleChange]:
    """Yield one change of a collective: its changed columns, else its changed attributes without a column."""
    differing = [name for name in _FIELDS if old.get(name) != new.get(name)]
    if "replica_groups" in differing and _same_groups(text(old.get("replica_groups")), text(new.get("replica_groups"))):
        differing.remove("replica_groups")
    differing = [name for name in differing if not (name == "shape" and _but_type(old) == _but_type(new))]
    if "replica_groups" in differing and "group_size" in differing:
        differing.remove("group_size")
    changes = tuple(Aspect(_WORDS.get(name, name), text(old.get(name)), text(new.get(name))) for name in differing)
    changes = changes or tuple(aspect for aspect in aspects if aspect.name not in _IN_COLUMNS)
    if changes:
        yield _change("changed", old, new, changes)


def _same_groups(old: str, new: str) -> bool:
    """Return True if two texts mean the same groups, such as a list of devices and a mesh axis."""
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
    record = new or old or {}
    sizes = (0 if side is None else side["executed_wire_bytes"] for side in (old, new))
    group = f"over groups of {record['group_size']}" if record.get("group_size") else ""
    group = f"over {record['axis']}" if record.get("axis") else group
    return change_of(
        "collectives",
        what,
        text(record["name"]),
        old,
        new,
        kind=" ".join(filter(None, (_arrays(record), text(record["kind"]), group))),
        aspects=aspects,
        size=more(*sizes),
        phase=text(record["phase"]),
        source=text(record["source"]),
    )


def _arrays(record: Record) -> str:
    """Return the shape; for a tuple the number of its arrays."""
    shape = text(record["shape"])
    return f"{len(_ARRAY.findall(shape))} arrays" if shape.startswith("(") else shape


# -- loops -------------------------------------------------------------------------------------------------------------


def loop_changes(old: Sequence[Record], new: Sequence[Record], lines: Mapping[int, int]) -> Iterator[ModuleChange]:
    """Yield the changes of loops; sizes are bytes sent in them in a step."""
    matched = pair_lines(old, new, lines)
    keys = (lambda row: (row["loop"], row["trip_count"]), lambda row: row["source"] or None)
    rest = pair_records(matched.old, matched.new, keys)
    for before, after in (*matched.pairs, *rest.pairs):
        if before["trip_count"] != after["trip_count"]:
            yield _loop_change("changed", before, after)
    yield from (_loop_change("gone", record, None) for record in rest.old)
    yield from (_loop_change("new", None, record) for record in rest.new)


def _loop_change(what: str, old: Record | None, new: Record | None) -> ModuleChange:
    before, after = old or {}, new or {}
    record = new or old or {}
    return change_of(
        "loops",
        what,
        text(record["loop"]),
        old,
        new,
        kind="while" if old and new else f"while of {_times(old or new)} runs",
        aspects=(Aspect("trip count", _times(old), _times(new)),) if old and new else (),
        size=more(before.get("executed_wire_bytes", 0), after.get("executed_wire_bytes", 0)),
        source=text(record.get("source")),
    )


def _times(record: Record | None) -> str:
    return "unknown" if record is None or record["trip_count"] is None else text(record["trip_count"])
