"""The compiles of each function, in order: why each of them was not the one before."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

from hlo_inspect.compare.programs.compile_record import CompileRecord
from hlo_inspect.compare.programs.reasons import (
    FIRST,
    LOADED,
    NOTHING,
    REASONS,
    SAME_PROGRAM,
    Difference,
    count_donations,
    detail_of,
    find_differences,
)
from hlo_inspect.compare.setting_changes import incomparable_settings

_NAMED = 3
"""Arguments that an advice names."""
_NUMPY_TYPES = {"f32": "np.float32", "f64": "np.float64", "s32": "np.int32", "s64": "np.int64", "bf16": "jnp.bfloat16"}
"""Makers of a strong number by dtype."""


@dataclass(frozen=True, slots=True)
class Compile:
    """A compile, or a load from a persistent cache, with its reasons.

    `nearest` is the earlier compile of the function that differs least; None for the first. `reasons` is None if the text does
    not tell them. `avoidable` is True if XLA compiled the same for nothing, None if that is unknown.
    """

    record: CompileRecord
    reasons: tuple[str, ...] | None
    detail: str
    nearest: CompileRecord | None = None
    avoidable: bool | None = False

    @property
    def is_load(self) -> bool:
        return self.reasons == (LOADED,)

    @property
    def is_distinct(self) -> bool:
        """True if another program was asked for than at all compiles before."""
        return bool(self.reasons) and not self.is_load and not SAME_PROGRAM.issuperset(self.reasons or ())


class RecompiledFunction:
    """The compiles of one function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.compiles: list[Compile] = []
        self._candidates: dict[object, CompileRecord] = {}

    def add(self, record: CompileRecord) -> None:
        """Add the next compile."""
        candidates = [earlier for earlier in self._candidates.values() if earlier.is_optimized == record.is_optimized]
        nearest = _find_nearest(record, candidates)
        if nearest is not None:
            self.compiles.append(_explained(record, *nearest))
        else:
            lacking = "before" if record.is_optimized else "after"
            unknown = Compile(record, None, f"unknown: the dump lacks its text {lacking} optimizations", avoidable=None)
            self.compiles.append(unknown if self._candidates else Compile(record, (FIRST,), ""))
        self._candidates.setdefault(_identity(record), record)

    def add_load(self, record: CompileRecord, origin: CompileRecord | None) -> None:
        """Add a load from a persistent cache; `origin` is the compile of the same program, if the dump has it."""
        detail = "loaded from a persistent cache, not compiled"
        self.compiles.append(Compile(record, (LOADED,), detail, origin))

    def count(self) -> int:
        """Return the number of compiles without loads."""
        return sum(not compile_.is_load for compile_ in self.compiles)

    def reasons(self) -> Counter[str]:
        """Return the number of compiles with each reason."""
        return Counter(reason for compile_ in self.compiles for reason in compile_.reasons or ())

    def avoidable(self) -> int:
        return sum(compile_.avoidable is True for compile_ in self.compiles)

    def distinct(self) -> int:
        return sum(compile_.is_distinct for compile_ in self.compiles)

    def unknown(self) -> list[Compile]:
        return [compile_ for compile_ in self.compiles if compile_.reasons is None]


def _identity(record: CompileRecord) -> object:
    """Return a value that compiles share if later ones differ from them in the same way; the first of them is the nearest."""
    settings = record.settings
    values = (settings.flags, settings.process_flags, settings.overrides, settings.tpu_flags, settings.options)
    parts = tuple(None if value is None else tuple(sorted(value.items())) for value in values)
    if not record.is_whole:
        return id(record)
    asked = record.is_optimized, record.program, record.elided is None
    return *asked, *parts, settings.complete, settings.devices, settings.platform


def _reasons(differences: Iterable[Difference]) -> tuple[str, ...]:
    reasons = {difference.reason for difference in differences}
    return tuple(reason for reason in REASONS if reason in reasons)


class _Distance(NamedTuple):
    """The order of earlier compiles: the nearest has the least.

    `reasons` and `things` are numbers. `hides_body` is True if other shapes or devices hide differences of the bodies.
    `hidden` counts donations that leave no trace.
    """

    reasons: int
    hides_body: bool
    things: int
    hidden: int
    order: int


def _find_nearest(
    record: CompileRecord, candidates: Sequence[CompileRecord]
) -> tuple[CompileRecord, Sequence[Difference]] | None:
    """Return the earlier compile that differs least, with its differences. The first wins if several differ equally.

    Arguments that differ bound the distance from below, so that most of many candidates are not compared.
    """
    bounds = sorted(_least_distance(earlier, record, order) for order, earlier in enumerate(candidates))
    nearest: tuple[_Distance, CompileRecord, Sequence[Difference]] | None = None
    for bound in bounds:
        if nearest is not None and bound > nearest[0]:
            break
        earlier = candidates[bound.order]
        differences = find_differences(earlier, record)
        reported = sum(difference.reason == "donation" for difference in differences)
        hidden = count_donations(earlier, record) - reported
        distance = bound._replace(reasons=len(_reasons(differences)), things=len(differences), hidden=hidden)
        if nearest is None or distance < nearest[0]:
            nearest = distance, earlier, differences
    return nearest[1:] if nearest is not None else None


def _least_distance(earlier: CompileRecord, record: CompileRecord, order: int) -> _Distance:
    """Return a lower bound of the distance."""
    hides_body = earlier.asked_shapes != record.asked_shapes
    if len(earlier.arguments) != len(record.arguments):
        return _Distance(1, hides_body, 1, 0, order)
    things = sum(map(operator.ne, earlier.signatures, record.signatures))
    return _Distance(min(things, 1), hides_body, things, 0, order)


def _explained(record: CompileRecord, nearest: CompileRecord, differences: Sequence[Difference]) -> Compile:
    reasons = _reasons(differences)
    if reasons:
        return Compile(record, reasons, detail_of(differences), nearest)
    if not (record.is_whole and nearest.is_whole):
        return Compile(record, None, "the text is truncated: its arguments are those of the nearest compile", nearest, None)
    unknown = [*_unknown_parts(record, nearest)]
    advice = _weak_type_advice(record, nearest) or _remade_advice(record, nearest)
    return Compile(record, (NOTHING,), "; ".join([advice, *unknown]), nearest, avoidable=True)


def _unknown_parts(record: CompileRecord, nearest: CompileRecord) -> Iterator[str]:
    if incomparable_settings(nearest.settings, record.settings):
        yield "flags or options are unknown"
    if record.elided is None or nearest.elided is None:
        yield "values of elided constants are unknown"


def _weak_type_advice(record: CompileRecord, nearest: CompileRecord) -> str:
    """Say which argument is a Python number in one of two compiles; nothing if the StableHLO shows none."""
    if record.stablehlo is None or nearest.stablehlo is None:
        return ""
    if record.stablehlo.weak_values == nearest.stablehlo.weak_values:
        return ""
    now, before = record.stablehlo.weak_arguments, nearest.stablehlo.weak_arguments
    numbers = [number for number in sorted(now ^ before) if number < len(record.arguments)]
    if not numbers:
        return "weak type of a value: pass arrays or NumPy numbers of one dtype, no Python numbers"
    side = "here" if now - before else "in the nearest compile"
    names = ", ".join(_named(record, number) for number in numbers)
    example = _NUMPY_TYPES.get(record.arguments[numbers[0]].dtype, "np.asarray")
    return f"weak type of {names}: a Python number {side}; always pass an array, such as {example}(x)"


def _named(record: CompileRecord, number: int) -> str:
    argument = record.arguments[number]
    return f"argument {number}{f' ({argument.name})' if argument.name else ''}"


def _remade_advice(record: CompileRecord, nearest: CompileRecord) -> str:
    """Say what to do about a compile for nothing whose trace is in no file."""
    if Path(record.path).parent != Path(nearest.path).parent:
        if record.settings.topology != nearest.settings.topology:
            return "another process compiled it, with other devices or on another machine (topology.textproto)"
        return "another process compiled it: keep a persistent cache (jax_compilation_cache_dir)"
    names = [(old.name, new.name) for old, new in zip(nearest.arguments, record.arguments, strict=True)]
    renamed = [f"{old} -> {new}" for old, new in names if old != new]
    if renamed:
        return f"other names of arguments ({', '.join(renamed[:_NAMED])}): pass one structure of arguments"
    lines = [_first_line(compile_) for compile_ in (nearest, record)]
    if lines[0] != lines[1] and all(lines):
        return f"another function of this name and program: {lines[0]} and {lines[1]}; share one jit function"
    place = f" ({lines[1]})" if lines[1] else ""
    return f"the function was made anew{place}: jit it once, outside of loops; or another cause that leaves no trace"


def _first_line(record: CompileRecord) -> str:
    """Return the first line of Python of a program, without the folders of its file."""
    sources = record.skeleton.sources.values() if record.skeleton is not None else ()
    return next((PurePath(source).name for source in sources if source), "")
