"""Parameters and outputs that differ: new, gone, of another shape or sharding, and donations that are lost or won."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.compare.changes import Area, Aspect, ModuleChange
from hlo_inspect.compare.pairing import Record, RecordPairs, change_of, more, number, pair_records, text

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
