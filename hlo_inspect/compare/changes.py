"""Changes that explain a difference: one row for each added, removed or changed thing, merged if they agree."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes.instruction_rows import group_rows, joined_name
from hlo_inspect.passes.params import joined_path
from hlo_inspect.report.model import Amount, Parts, sentence
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec

Area = Literal[
    "parameters", "outputs", "optimizer", "collectives", "loops", "custom calls", "kernels", "constants", "compiler", "other"
]
AREAS: tuple[Area, ...] = get_args(Area)
"""Kinds of differences, in the order of the report."""

_NAMED_BY_PATHS = ("parameters", "outputs", "optimizer")

_PLACED: tuple[Area, ...] = ("collectives", "loops", "custom calls", "kernels", "constants")
"""Areas of instructions, which have a line."""

HEADLINES = 6
"""Limit of changes in the first lines of a page."""

_LONG_VALUE = 48
"""Characters from which on the first lines show only the items of a value that differ; the tables have all of it."""

_MOST_ITEMS = 6
_ITEM = lazy_pattern(r"(?:[^,\[\]]|\[[^\[\]]*\])++,?|.", re.DOTALL)
"""Pattern of an item of a list; the commas of a shape's dimensions stay inside."""


class Aspect(NamedTuple):
    """A changed property: its name, and its text in OLD and in NEW."""

    name: str
    was: str = ""
    now: str = ""


def differing(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Aspect]:
    """Yield the names with another text, sorted; a side without a name has an empty text."""
    for name in sorted(was.keys() | now.keys()):
        if was.get(name, "") != now.get(name, ""):
            yield Aspect(name, was.get(name, ""), now.get(name, ""))


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """A difference, or several merged ones.

    `what` happened to the things called `names`, of a `kind` such as an opcode; `aspects` are the changed properties. `size`
    and `flops` are NEW - OLD of a step: bytes that are sent, accessed or live; None if unknown or meaningless. Lines are those
    of the first thing.
    """

    area: Area
    what: str
    names: tuple[str, ...]
    kind: str = ""
    aspects: tuple[Aspect, ...] = ()
    size: int | None = None
    flops: int | None = None
    phase: str = ""
    source: str = ""
    old_line: int | None = None
    new_line: int | None = None

    @property
    def merge_key(self) -> Hashable:
        """Key of merged changes: everything that they have in common."""
        return self.area, self.what, self.kind, self.aspects, self.phase

    @property
    def name(self) -> str:
        """The common part of all names; the first one if they have none."""
        joined = joined_path(self.names) if self.area in _NAMED_BY_PATHS else joined_name(self.names)
        name = joined.partition(" × ")[0] if len(self.names) > 1 else joined
        return f"{self.names[0]}, …" if name == "*" else name


def grouped(changes: Iterable[ModuleChange]) -> list[ModuleChange]:
    """Merge changes that differ only in names and figures; sort them by area, bytes, FLOPs and sites, the largest first."""
    groups = [_merged(group) for group in group_rows(changes, lambda change: change.merge_key)]
    return sorted(
        groups, key=lambda group: (AREAS.index(group.area), -abs(group.size or 0), -abs(group.flops or 0), -len(group.names))
    )


def _merged(group: Sequence[ModuleChange]) -> ModuleChange:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        names=tuple(name for change in group for name in change.names),
        size=total(change.size for change in group),
        flops=total(change.flops for change in group),
    )


def headline_changes(changes: Sequence[ModuleChange]) -> list[ModuleChange]:
    """Return the changes for the first lines: the first of each area, then others in their order."""
    firsts = {change.area: change for change in reversed(changes)}
    chosen = list(reversed(firsts.values()))[:HEADLINES]
    chosen += [change for change in changes if change not in chosen][: HEADLINES - len(chosen)]
    return [change for change in changes if change in chosen]


def format_change(change: ModuleChange) -> Parts:
    """Format a change in one line, without its area: sites, name, source line and phase, then what happened, and amounts.

    Merged changes have no line, as they may come from several.
    """
    if len(change.names) > 1:
        yield from sentence("{} × ", Amount(len(change.names), "count"))
    place = f"({_place(change)})" if len(change.names) == 1 and change.area in _PLACED else ""
    yield " ".join(filter(None, (change.kind, change.name, place)))
    if change.phase:
        yield f", {change.phase}"
    yield ": "
    aspects = [_format_aspect(aspect, change.name) for aspect in change.aspects]
    yield ", ".join(aspects if aspects and change.what == "changed" else [change.what, *aspects])
    for amount in (Amount(change.size, "bytes"), Amount(change.flops, "flops")):
        if isinstance(amount.value, int) and amount.value:
            yield from sentence(", +{}" if amount.value > 0 else ", {}", amount)


def _place(change: ModuleChange) -> str:
    """Return the source line, else the line in the text that has the thing: NEW, or OLD if it is gone."""
    return change.source or (f"line {change.new_line}" if change.new_line is not None else f"line {change.old_line} of OLD")


def _format_aspect(aspect: Aspect, name: str) -> str:
    """Format a changed property of the thing called `name`; a setting is its own property."""
    if not (aspect.was or aspect.now):
        return aspect.name
    was, now = aspect.was, aspect.now
    if max(len(was), len(now)) > _LONG_VALUE:
        was, now = _differing_parts(was, now)
    values = f"{was or 'none'} → {now or 'none'}"
    return values if aspect.name == name else f"{aspect.name} {values}"


def _differing_parts(was: str, now: str) -> tuple[str, str]:
    """Return the first items in which two lists differ, with … for the equal items before and behind them."""
    before, behind = _ITEM.findall(was), _ITEM.findall(now)
    shorter = min(len(before), len(behind))
    first = next((n for n in range(shorter) if before[n] != behind[n]), shorter)
    last = next((n for n in range(shorter - first) if before[-1 - n] != behind[-1 - n]), shorter - first)
    if not first + last:
        return was, now
    parts = [_first_items(items[first : len(items) - last]) for items in (before, behind)]
    own, other = (f"{'…' * bool(first)}{part}{'…' * bool(last)}" for part in parts)
    return own, other


def _first_items(items: Sequence[str]) -> str:
    more = len(items) - _MOST_ITEMS
    return "".join(items[:_MOST_ITEMS]).strip() + (f" and {more} more" if more > 0 else "")


def _joined(values: Iterable[str]) -> str:
    """Join the values of several aspects, in their order."""
    texts = list(values)
    return ", ".join(value or "none" for value in texts) if len(texts) > 1 else "".join(texts)


CHANGES = TableSpec("changes", "What changed").with_columns(
    Column("area", width=12, meaning="part of the program, such as kernels or collectives"),
    Column("change", width=8, meaning="gone, new, changed or moved", get=attrgetter("what")),
    Column("sites", "count", detail=2, get=lambda change: len(change.names)),
    Column("name", width=16, meaning="names of the instructions that changed"),
    Column("kind", detail=2, width=16, meaning="kind of the instructions"),
    Column(
        "aspect",
        detail=1,
        width=16,
        meaning="attribute or operand that changed",
        get=lambda change: ", ".join(aspect.name for aspect in change.aspects),
    ),
    Column(
        "was", width=18, wraps=True, meaning="text in OLD", get=lambda change: _joined(aspect.was for aspect in change.aspects)
    ),
    Column(
        "now", width=18, wraps=True, meaning="text in NEW", get=lambda change: _joined(aspect.now for aspect in change.aspects)
    ),
    Column("bytes", "bytes", optional=True, signed=True, meaning="difference of the bytes", get=attrgetter("size")),
    Column("flops", "flops", detail=3, optional=True, signed=True, meaning="difference of the FLOPs"),
    Column("phase", detail=4),
    Column("source", detail=5),
    Column("old_line", "number", detail=6, optional=True),
    Column("new_line", "number", detail=6, optional=True),
)
"""Merged changes share a row."""
