"""What explains a difference: one line for each thing that is new, gone or otherwise, and equal ones together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.instruction_rows import group_rows, joined_name
from hlo_inspect.passes.params import joined_path
from hlo_inspect.report.model import Amount, Column, Parts, Table, sentence

Area = Literal[
    "parameters", "outputs", "optimizer", "collectives", "loops", "custom calls", "kernels", "constants", "compiler", "other"
]
AREAS: tuple[Area, ...] = get_args(Area)
"""What differs, in the order of the report."""

_NAMED_BY_PATHS = ("parameters", "outputs", "optimizer")

HEADLINES = 6
"""At most this many changes are in the first lines of a page."""

_LONGEST_VALUE = 48
"""Characters of a value in the first lines; the tables have it whole."""


class Aspect(NamedTuple):
    """One thing in which something changed: what it is called, and its text in OLD and in NEW."""

    name: str
    was: str = ""
    now: str = ""


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """One thing that differs, or several equal ones.

    `what` happened to what is called `names`, of a `kind` such as an opcode: it changed in these `aspects`.
    `size` and `flops` are how much more a step has of them: bytes that are sent, moved or held; `None` where that is not known,
    or means nothing. Lines are those of the first one.
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
    def alike(self) -> Hashable:
        """What the changes of one row have in common."""
        return self.area, self.what, self.kind, self.aspects, self.phase

    @property
    def name(self) -> str:
        """One name for all; empty where they have nothing in common."""
        joined = joined_path(self.names) if self.area in _NAMED_BY_PATHS else joined_name(self.names)
        name = joined.partition(" × ")[0] if len(self.names) > 1 else joined
        return "" if name == "*" else name


def grouped(changes: Iterable[ModuleChange]) -> list[ModuleChange]:
    """The changes with equal ones together: by area, in each those of the most bytes first."""
    groups = [_together(group) for group in group_rows(changes, lambda change: change.alike)]
    return sorted(groups, key=lambda one: (AREAS.index(one.area), -abs(one.size or 0), -abs(one.flops or 0), -len(one.names)))


def _together(group: Sequence[ModuleChange]) -> ModuleChange:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        names=tuple(name for one in group for name in one.names),
        size=total(one.size for one in group),
        flops=total(one.flops for one in group),
    )


def told_first(changes: Sequence[ModuleChange]) -> list[ModuleChange]:
    """Those for the first lines: the first of each area, then more in their order."""
    firsts = {change.area: change for change in reversed(changes)}
    chosen = list(reversed(firsts.values()))[:HEADLINES]
    chosen += [change for change in changes if change not in chosen][: HEADLINES - len(chosen)]
    return [change for change in changes if change in chosen]


def in_words(change: ModuleChange) -> Parts:
    """A change in one line, without its area: what changed in which way, where, and by how much."""
    if change.aspects:
        yield ", ".join(map(_in_words, change.aspects)) + ": "
    if change.what != "changed":
        yield f"{change.what}: "
    if len(change.names) > 1:
        yield from sentence("{} × ", Amount(len(change.names), "count"))
    yield " ".join(filter(None, (change.kind, change.name)))
    if change.phase:
        yield f", {change.phase}"
    for amount in (Amount(change.size, "bytes"), Amount(change.flops, "flops")):
        if isinstance(amount.value, int) and amount.value:
            yield from sentence(", +{}" if amount.value > 0 else ", {}", amount)


def _in_words(aspect: Aspect) -> str:
    if not (aspect.was or aspect.now):
        return aspect.name
    return f"{aspect.name} {_short(aspect.was)} → {_short(aspect.now)}"


def _short(text: str) -> str:
    if not text:
        return "none"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _joined(values: Iterable[str]) -> str:
    """The values of several aspects, in their order."""
    found = list(values)
    return ", ".join(value or "none" for value in found) if len(found) > 1 else "".join(found)


_COLUMNS = (
    Column("area", width=12, get=attrgetter("area")),
    Column("change", width=8, get=attrgetter("what")),
    Column("sites", "count", get=lambda change: len(change.names)),
    Column("name", width=16, get=attrgetter("name")),
    Column("kind", detail=1, width=12, get=attrgetter("kind")),
    Column("aspect", detail=1, width=8, get=lambda change: ", ".join(aspect.name for aspect in change.aspects)),
    Column("was", width=12, get=lambda change: _joined(aspect.was for aspect in change.aspects)),
    Column("now", width=12, get=lambda change: _joined(aspect.now for aspect in change.aspects)),
    Column("bytes", "bytes", optional=True, signed=True, get=attrgetter("size")),
    Column("flops", "flops", detail=3, optional=True, signed=True, get=attrgetter("flops")),
    Column("phase", detail=4, get=attrgetter("phase")),
    Column("source", detail=5, get=attrgetter("source")),
    Column("old_line", "number", detail=6, optional=True, get=attrgetter("old_line")),
    Column("new_line", "number", detail=6, optional=True, get=attrgetter("new_line")),
)


def changes_table(changes: Sequence[ModuleChange]) -> Table:
    """One row for equal changes."""
    return Table.of("changes", "What changed", _COLUMNS, changes, on_page=bool(changes))
