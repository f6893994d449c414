"""Reasons for which a compile is another one than an earlier compile of the function.

A consequence is no reason. With another number, shape or dtype of arguments the bodies are not compared: constants such as the
divisor of a mean follow from them. With another number of devices only the opcodes are: a `shard_map` has other shapes then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import PurePath
from typing import NamedTuple

from hlo_inspect.analysis.devices.mesh_axes import spec_of_own_mesh, spec_text
from hlo_inspect.compare.programs.compile_record import ArrayRecord, CompileRecord
from hlo_inspect.compare.programs.skeleton import Place, PlacedText, Skeleton
from hlo_inspect.compare.setting_changes import setting_changes
from hlo_inspect.errors import first_few
from hlo_inspect.graph.canonical.elided_constants import ELIDED
from hlo_inspect.hlo.opcodes import opcodes_that_give
from hlo_inspect.hlo.values.device_groups import DeviceListError
from hlo_inspect.hlo.values.shapes import Layout
from hlo_inspect.hlo.values.sharding import parse_sharding
from hlo_inspect.passes.instruction_rows import group_rows

FIRST, NOTHING, LOADED = "first", "nothing", "loaded"
REASONS = (
    FIRST,
    "arguments",
    "shape",
    "dtype",
    "layout",
    "sharding",
    "donation",
    "constant",
    "precision",
    "program",
    "flag",
    "option",
    "devices",
    NOTHING,
    LOADED,
)
"""All reasons, in the order in which a row lists them."""

SAME_PROGRAM = frozenset({"flag", "option", "devices", NOTHING})
"""Reasons that leave the program that was asked for as it was."""

_COUNTS = frozenset({"num_partitions", "num_replicas", "replica_count"})
"""Options that the header states too."""
_PACKING = opcodes_that_give("element", "packing")
_PLUMBING = _PACKING | {"parameter", "call"}
"""Opcodes that a detail names only if nothing else differs."""
_NAMED, _MORE = 3, "; and "
"""Differences of one kind that a detail names."""
_LONGEST = 200
_PACKED = "packed into tuples otherwise"
"""Difference of programs that JAX makes to ask for the layout of a result."""


class Difference(NamedTuple):
    """A difference between two compiles: its reason, and both sides in words."""

    reason: str
    text: str


def find_differences(old: CompileRecord, new: CompileRecord) -> list[Difference]:
    """Return the differences that are reasons, in the order of `REASONS`; nothing if XLA was asked for the same twice."""
    differences = [*_argument_differences(old, new)]
    has_other_arguments = bool(differences)
    layouts = [*_layout_differences(old, new)]
    differences += layouts
    shardings = [*_sharding_differences(old, new)]
    if not (layouts and old.partitions == new.partitions == 1):  # the request for a layout fixes a sharding too
        differences += shardings or _propagation_differences(old, new)
    else:
        differences += shardings
    differences += _donation_differences(old, new)
    if not has_other_arguments and old.skeleton is not None and new.skeleton is not None:
        body = _body_differences(old, new, old.skeleton, new.skeleton)
        differences += [difference for difference in body if not (layouts and difference.text == _PACKED)]
    if not has_other_arguments and not differences and old.is_whole and new.is_whole:
        differences += _other_differences(old, new)
    differences += [  # without those that the number of devices follows from
        Difference(kind, f"{name}: {_short(before)} -> {_short(after)}")
        for kind, name, before, after in setting_changes(old.settings, new.settings)
        if name not in _COUNTS
    ]
    return sorted(differences, key=lambda difference: REASONS.index(difference.reason))


# -- arguments and results ---------------------------------------------------------------------------------------------


def _argument_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    if len(old.arguments) != len(new.arguments):
        yield Difference("arguments", f"{len(old.arguments)} -> {len(new.arguments)} arguments{_added(old, new)}")
        return
    for number, (before, after) in enumerate(zip(old.arguments, new.arguments, strict=True)):
        if before.dimensions != after.dimensions:
            fits = ", fits if padded" if _fits(before, after) else ""
            yield Difference("shape", _argument(number, after, before.shape, after.shape) + fits)
        elif before.dtype != after.dtype:
            yield Difference("dtype", _argument(number, after, before.shape, after.shape))
        if before.dimensions != after.dimensions and before.dtype != after.dtype:
            yield Difference("dtype", _argument(number, after, before.dtype, after.dtype))


def _added(old: CompileRecord, new: CompileRecord) -> str:
    """Return the names and shapes of arguments that only one compile has."""
    names = Counter(argument.name for argument in old.arguments), Counter(argument.name for argument in new.arguments)
    gone = [argument for argument in old.arguments if not names[1][argument.name]]
    added = [argument for argument in new.arguments if not names[0][argument.name]]
    changes = [*(f"-{argument.name} {argument.shape}" for argument in gone)]
    changes += [f"+{argument.name} {argument.shape}" for argument in added]
    return f": {first_few(changes, _NAMED, before_more=_MORE)}" if changes else ""


def _fits(bucket: ArrayRecord, argument: ArrayRecord) -> bool:
    """Return True if an argument is no larger than an earlier one in any dimension: padded, it needs no other program."""
    if bucket.dtype != argument.dtype or len(bucket.dimensions) != len(argument.dimensions):
        return False
    sizes = zip(bucket.dimensions, argument.dimensions, strict=True)
    return all(old is not None and new is not None and new <= old for old, new in sizes)


def _argument(number: int, argument: ArrayRecord, before: str, after: str) -> str:
    name = f" ({argument.name})" if argument.name else ""
    return f"argument {number}: {_short(before)} -> {_short(after)}{name}"


def _pairs(old: CompileRecord, new: CompileRecord) -> Iterator[tuple[str, ArrayRecord, ArrayRecord]]:
    """Yield arguments and results in pairs, each with a word for it, if both compiles have equal numbers of them."""
    for word, before, after in (("argument", old.arguments, new.arguments), ("result", old.results, new.results)):
        if len(before) == len(after):
            for number, pair in enumerate(zip(before, after, strict=True)):
                yield f"{word} {number}", *pair


def _layout_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    for word, before, after in _pairs(old, new):
        if before.shape == after.shape and before.layout != after.layout:  # tiles follow from the shape
            yield Difference("layout", f"{word}: {_layout(before.layout)} -> {_layout(after.layout)}")


def _layout(layout: Layout | None) -> str:
    """Return a layout as XLA prints it."""
    if layout is None:
        return "any layout"
    tiles = "".join(f"({','.join('*' if size is None else str(size) for size in tile)})" for tile in layout.tiles)
    space = f"S({layout.memory_space})" if layout.memory_space else ""
    rest = f"{'T' if tiles else ''}{tiles}{space}"
    return f"{{{','.join(map(str, layout.minor_to_major))}{f':{rest}' if rest else ''}}}"


def _sharding_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    for word, before, after in (("partitions", old.partitions, new.partitions), ("replicas", old.replicas, new.replicas)):
        if before != after:
            yield Difference("sharding", f"{before} -> {after} {word}")
    for word, first, second in _pairs(old, new):
        if len(first.dimensions) != len(second.dimensions):
            continue
        if first.sharding != second.sharding and first.layout != second.layout and _one_device(first, second):
            continue  # the request for a layout names the device
        if first.sharding != second.sharding:
            yield Difference("sharding", f"{word}: {_sharding(first.sharding)} -> {_sharding(second.sharding)}")
        elif first.shardy != second.shardy:
            yield Difference("sharding", f"{word}: {_sharding(first.shardy)} -> {_sharding(second.shardy)}")


def _one_device(*arrays: ArrayRecord) -> bool:
    """Return True if no array has a sharding over devices: it has none, or one over a mesh without axes."""
    return all(not array.sharding or array.sharding.startswith("{mesh[]") for array in arrays)


def _sharding(text: str) -> str:
    """Return a sharding over named axes as `("data", None) over data=4, model=2`, any other as it is printed."""
    if not text.startswith("{mesh["):
        return _short(text.removeprefix("#sdy.sharding")) or "no sharding"
    try:
        sharding = parse_sharding(text)
    except DeviceListError:
        return _short(text)
    axes = sharding.mesh.axes if sharding.mesh is not None else ()
    spec = spec_of_own_mesh(sharding, dict(axes))
    if spec is None or sharding.kind not in ("named", "replicated") or sharding.other_axes:
        return _short(text)
    over = ", ".join(f"{name}={size}" for name, size in axes)
    return f"{spec_text(spec)} over {over}" if over else spec_text(spec)


def _propagation_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    if len(old.arguments) != len(new.arguments) or len(old.results) != len(new.results):
        return
    for word, before, after in zip(("arguments", "results"), old.propagation, new.propagation, strict=True):
        if before != after:
            yield Difference("sharding", f"free shardings of {word}: {_short(before)} -> {_short(after)}")


def _donation_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    """Yield donations that differ. An argument of another shape or dtype may have lost the output that takes it."""
    if len(old.arguments) != len(new.arguments):
        return
    for number, (before, after) in enumerate(zip(old.arguments, new.arguments, strict=True)):
        if before.donated != after.donated and (before.shape == after.shape or _fits_result(old, new, number)):
            words = [f"donated to {argument.donated}" if argument.donated else "not donated" for argument in (before, after)]
            yield Difference("donation", _argument(number, after, *words))


def _fits_result(old: CompileRecord, new: CompileRecord, number: int) -> bool:
    """Return True if an argument could have been donated in the compile in which it is not: a result has its shape."""
    lacking = old if new.arguments[number].donated else new
    return any(result.shape == lacking.arguments[number].shape for result in lacking.results)


def count_donations(old: CompileRecord, new: CompileRecord) -> int:
    """Count the arguments that are donated in one compile alone; a donation that no output takes leaves no trace."""
    pairs = zip(old.arguments, new.arguments, strict=False)
    return sum(bool(before.donated) != bool(after.donated) for before, after in pairs)


# -- the body ----------------------------------------------------------------------------------------------------------


def _body_differences(old: CompileRecord, new: CompileRecord, before: Skeleton, after: Skeleton) -> Iterator[Difference]:
    if (old.partitions, old.replicas) != (new.partitions, new.replicas):
        opcodes = [_opcodes(skeleton.opcodes) for skeleton in (before, after)]
        if opcodes[0] != opcodes[1]:
            yield from _instruction_differences(opcodes[0], opcodes[1], {})
        return
    if before.digest != after.digest:
        yield from _instruction_differences(before.opcodes, after.opcodes, {**before.sources, **after.sources})
        return
    yield from _constant_differences(old, new, before, after)
    yield from _placed_differences("precision", before.precisions, after.precisions, "default")
    yield from _placed_differences("sharding", before.constraints, after.constraints, "no constraint")


def _opcodes(counts: Counter[str]) -> Counter[str]:
    """Return the counts by opcode alone."""
    opcodes: Counter[str] = Counter()
    for key, count in counts.items():
        opcodes[key.partition(" ")[0]] += count
    return opcodes


def _instruction_differences(before: Counter[str], after: Counter[str], sources: dict[str, str]) -> Iterator[Difference]:
    counts = [("+", key, count) for key, count in (after - before).items()]
    counts += [("-", key, count) for key, count in (before - after).items()]
    computing = [change for change in counts if change[1].partition(" ")[0] not in _PLUMBING]
    if counts and all(change[1].partition(" ")[0] in _PACKING for change in counts):
        yield Difference("program", _PACKED)
        return
    changes = [f"{sign}{count} {_short(key)}{_at(sources.get(key))}" for sign, key, count in computing or counts]
    named = first_few(changes, _NAMED, before_more=_MORE)
    yield Difference("program", named or "the same instructions with other operands or attributes")


def _constant_differences(old: CompileRecord, new: CompileRecord, before: Skeleton, after: Skeleton) -> Iterator[Difference]:
    yield from _placed_differences("constant", before.constants, after.constants, "none", "constant ")
    if old.elided is None or new.elided is None:
        return
    arrays = [text for texts in before.constants.values() for text in texts if text.text.startswith(ELIDED)]
    for position, (first, second) in enumerate(zip_longest(old.elided, new.elided)):
        if first is None or second is None or first == second:
            continue
        users = [text for text in arrays if f"[{','.join(map(str, second.dimensions))}]" in text.what]
        what = users[0].what.partition("{")[0] if users else f"number {position}"
        source = users[0].source if len(users) == 1 else ""
        yield Difference("constant", f"constant {what}: other values{_at(source)}")


def _placed_differences(
    reason: str, old: dict[Place, list[PlacedText]], new: dict[Place, list[PlacedText]], absent: str, before: str = ""
) -> Iterator[Difference]:
    """Yield the texts that differ in places of equal skeletons, each pair of texts once."""
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for place in dict.fromkeys((*old, *new)):
        for first, second in zip_longest(old.get(place, ()), new.get(place, ())):
            stated = second or first
            texts = first.text if first else absent, second.text if second else absent
            if stated is not None and texts[0] != texts[1]:
                pairs.setdefault((stated.what, *texts), []).append(stated.source)
    for (what, old_text, new_text), sources in pairs.items():
        times = f" ({len(sources)} times)" if len(sources) > 1 else ""
        yield Difference(reason, f"{before}{_short(what)}: {_short(old_text)} -> {_short(new_text)}{times}{_at(sources[0])}")


def _other_differences(old: CompileRecord, new: CompileRecord) -> Iterator[Difference]:
    """Yield differences of the text that no other reason covers."""
    for name in dict.fromkeys((*old.header, *new.header)):
        before, after = old.header.get(name, "none"), new.header.get(name, "none")
        if before != after:
            yield Difference("program", f"header {name}: {_short(before)} -> {_short(after)}")
            return
    if old.printed_program != new.printed_program:
        yield Difference("program", "the same instructions with another order of operands, or shared otherwise")


# -- words -------------------------------------------------------------------------------------------------------------


def _at(source: str | None) -> str:
    """Return the line of Python without the folders of its file."""
    return f" ({PurePath(source).name})" if source else ""


def _short(text: str) -> str:
    """Return a text of a dump, shortened in the middle if it is long."""
    half = _LONGEST // 2 - 1
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


def detail_of(differences: Iterable[Difference]) -> str:
    """Return the differences in words: the first ones of each reason, and how many more there are."""
    groups = group_rows(differences, lambda difference: difference.reason)
    return "; ".join(first_few([difference.text for difference in group], _NAMED, "; ", _MORE) for group in groups)
