"""What explains a difference: one line for each thing that is new, gone or otherwise, and equal ones together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from hlo_inspect.passes.grouping import group_rows, joined_name
from hlo_inspect.passes.parameter_tables import joined_path
from hlo_inspect.report.model import Amount, Column, Row, Table

Area = Literal[
    "parameters", "outputs", "optimizer", "collectives", "loops", "custom calls", "kernels", "constants", "compiler", "other"
]
AREAS: tuple[Area, ...] = (
    "parameters", "outputs", "optimizer", "collectives", "loops", "custom calls", "kernels", "constants", "compiler", "other"
)  # fmt: skip
"""What differs, in the order in which it is told."""

_NAMED_BY_PATHS = ("parameters", "outputs", "optimizer")

HEADLINES = 6
"""So many changes are told in the first lines of a page."""

_LONGEST_VALUE = 48
"""Characters of a value in the first lines; the tables have it whole."""

_COLUMNS = (
    Column("area", width=12),
    Column("change", width=8),
    Column("sites", "count"),
    Column("name", width=16),
    Column("kind", detail=1, width=12),
    Column("aspect", detail=1, width=8),
    Column("was", width=12),
    Column("now", width=12),
    Column("bytes", "bytes", optional=True, signed=True),
    Column("flops", "flops", detail=3, optional=True, signed=True),
    Column("phase", detail=4),
    Column("source", detail=5),
    Column("old_line", "number", detail=6, optional=True),
    Column("new_line", "number", detail=6, optional=True),
)


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
        size=_sum(one.size for one in group),
        flops=_sum(one.flops for one in group),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def told_first(changes: Sequence[ModuleChange]) -> list[ModuleChange]:
    """Those for the first lines: the first of each area, then more in their order."""
    firsts = {change.area: change for change in reversed(changes)}
    chosen = list(reversed(firsts.values()))[:HEADLINES]
    chosen += [change for change in changes if change not in chosen][: HEADLINES - len(chosen)]
    return [change for change in changes if change in chosen]


def in_words(change: ModuleChange) -> Iterator[str | Amount]:
    """A change in one line, without its area: what changed in which way, where, and by how much."""
    if change.aspects:
        yield ", ".join(map(_in_words, change.aspects)) + ": "
    if change.what != "changed":
        yield f"{change.what}: "
    if len(change.names) > 1:
        yield Amount(len(change.names), "count")
        yield " × "
    yield " ".join(filter(None, (change.kind, change.name)))
    if change.phase:
        yield f", {change.phase}"
    if change.size:
        yield ", +" if change.size > 0 else ", "
        yield Amount(change.size, "bytes")
    if change.flops:
        yield ", +" if change.flops > 0 else ", "
        yield Amount(change.flops, "flops")


def _in_words(aspect: Aspect) -> str:
    if not (aspect.was or aspect.now):
        return aspect.name
    return f"{aspect.name} {_short(aspect.was)} → {_short(aspect.now)}"


def _short(text: str) -> str:
    if not text:
        return "none"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def changes_table(changes: Sequence[ModuleChange]) -> Table:
    """One row for equal changes."""
    return Table("changes", "What changed", _COLUMNS, tuple(map(_row, changes)), on_page=bool(changes))


def _joined(values: Sequence[str]) -> str:
    """The values of several aspects, in their order."""
    return ", ".join(value or "none" for value in values) if len(values) > 1 else "".join(values)


def _row(change: ModuleChange) -> Row:
    return (
        change.area,
        change.what,
        len(change.names),
        change.name,
        change.kind,
        ", ".join(aspect.name for aspect in change.aspects),
        _joined([aspect.was for aspect in change.aspects]),
        _joined([aspect.now for aspect in change.aspects]),
        change.size,
        change.flops,
        change.phase,
        change.source,
        change.old_line,
        change.new_line,
    )
