"""Flags and options in the report of a comparison: the table `flags`, and what they mean for a compilation cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_inspect.compare.setting_changes import SettingChange, incomparable_settings, setting_changes
from hlo_inspect.hlo.settings.compile_settings import CompileSettings
from hlo_inspect.report.model import HeadlineRow
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

_NAMED, _LONGEST = 3, 40
"""Settings that the first lines name, and characters of their values."""


FLAG_CHANGES = TableSpec("flags", "Flags and options that differ").with_columns(
    Column("name", width=36, meaning="flag or option"),
    Column("old", width=24),
    Column("new", width=24),
)


@dataclass(frozen=True, slots=True)
class ComparedSettings:
    """The settings of two compiles that differ, and why others are unknown.

    `other_parts` are the remaining parts of a cache's key that differ, in words. `are_known` is False without files to compare.
    """

    changes: Sequence[SettingChange]
    unknown: Sequence[str]
    other_parts: Sequence[str]
    are_known: bool

    @property
    def differ(self) -> bool | None:
        """True if a setting differs, None if that is unknown."""
        return True if self.changes else False if self.are_known else None

    def table(self) -> Table:
        """Return the table of settings that differ."""
        return FLAG_CHANGES.of(self.changes, on_page=bool(self.changes))

    def headline(self, *, is_same: bool) -> Iterator[HeadlineRow]:
        """Yield the settings that differ; of one program also the parts of a cache's key that do."""
        if self.changes:
            parts = [f"{change.name} {_short(change.old)} → {_short(change.new)}" for change in self.changes[:_NAMED]]
            more = [f"{len(self.changes) - _NAMED:,} more"] if len(self.changes) > _NAMED else []
            yield HeadlineRow("flags", ("; ".join([*parts, *more]),))
        differing = [*dict.fromkeys(f"{change.kind} {change.name}" for change in self.changes[:_NAMED]), *self.other_parts]
        if is_same and differing:
            yield HeadlineRow("cache", (f"XLA's cache key may differ: {', '.join(differing)}",))

    def notes(self) -> Iterator[str]:
        if self.unknown:
            yield f"flags: {self.unknown[0]}"


def _short(value: str) -> str:
    """Return a value, of a long path its end."""
    return value if len(value) <= _LONGEST else f"…{value[1 - _LONGEST :]}"


def compare_settings(old: CompileSettings | None, new: CompileSettings | None, other_parts: Sequence[str]) -> ComparedSettings:
    """Compare the settings of two compiles. None means that a text is no file of a dump."""
    if old is None or new is None:
        sides = " and ".join(name for name, settings in (("OLD", old), ("NEW", new)) if settings is None)
        unknown = [f"{sides}: no file of a dump directory, which has flags beside it"] if (old is None) != (new is None) else []
        return ComparedSettings((), unknown, other_parts, are_known=False)
    unknown = incomparable_settings(old, new)
    return ComparedSettings(setting_changes(old, new), unknown, other_parts, are_known=not unknown)
