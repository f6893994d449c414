"""Differences between the flags, options and devices of two compiles; the table `flags`, and a cache's key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hlo_inspect.errors import first_few
from hlo_inspect.hlo.settings.compile_settings import CompileSettings, Values
from hlo_inspect.report.model import HeadlineRow
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

DEFAULT = "default"
"""Value of a setting that no file states: XLA's default."""
NOT_OVERRIDDEN = "not overridden"


class SettingChange(NamedTuple):
    """A flag, an option or the devices of two compiles, with both values."""

    kind: Literal["flag", "option", "devices"]
    name: str
    old: str
    new: str


def setting_changes(old: CompileSettings, new: CompileSettings) -> list[SettingChange]:
    """Return the settings that differ, as far as the files of both compiles state them: flags, options, devices."""
    if old is new:  # compiles of one process share them
        return []
    flags = list(_flag_changes(old, new))
    names = {change.name for change in flags}
    overrides = [  # without effect: a cache's key has them, but they set the value that the flag has anyway
        change._replace(name=f"env_option_overrides.{change.name}")
        for change in _changes("option", old.overrides, new.overrides, NOT_OVERRIDDEN)
        if change.name not in names
    ]
    return [*flags, *overrides, *_option_changes(old, new), *_device_changes(old, new)]


def incomparable_settings(old: CompileSettings, new: CompileSettings) -> list[str]:
    """Say why flags or options of two compiles may differ without a row; nothing if all of them are compared."""
    reasons = dict.fromkeys((*old.unknown, *new.unknown))
    if not reasons and None in (old.flags, new.flags) and None in (old.process_flags, new.process_flags):
        reasons["flags are unknown: the two directories have other kinds of files beside their modules"] = None
    return list(reasons)


def _flag_changes(old: CompileSettings, new: CompileSettings) -> Iterator[SettingChange]:
    if old.flags is not None and new.flags is not None:
        for name in dict.fromkeys((*old.flags, *new.flags)):
            values = old.flags.get(name), new.flags.get(name)
            are_known = (values[0] is not None or old.complete) and (values[1] is not None or new.complete)
            if values[0] != values[1] and are_known:
                yield SettingChange("flag", name, old.flag(name) or DEFAULT, new.flag(name) or DEFAULT)
    else:
        yield from _changes("flag", _effective(old), _effective(new))
    yield from _changes("flag", old.tpu_flags, new.tpu_flags)


def _effective(settings: CompileSettings) -> Values | None:
    """Return all flags after overrides, as files other than `.debug_options` state them."""
    return None if settings.process_flags is None else {**settings.process_flags, **(settings.overrides or {})}


def _option_changes(old: CompileSettings, new: CompileSettings) -> Iterator[SettingChange]:
    if old.options_kind == new.options_kind:
        yield from _changes("option", old.options, new.options)
    if old.platform is not None and new.platform is not None and old.platform != new.platform:
        yield SettingChange("option", "platform", old.platform, new.platform)


def _device_changes(old: CompileSettings, new: CompileSettings) -> Iterator[SettingChange]:
    """Yield the device assignment, unless it follows from another number of partitions or replicas."""
    if old.devices is None or new.devices is None or old.devices == new.devices:
        return
    if [len(part) for part in old.devices] == [len(part) for part in new.devices]:
        yield SettingChange("devices", "device_assignment", _device_text(old.devices), _device_text(new.devices))


def _device_text(devices: Sequence[Sequence[str]]) -> str:
    return ",".join("/".join(replicas) for replicas in devices)


def _changes(
    kind: Literal["flag", "option"], old: Values | None, new: Values | None, absent: str = DEFAULT
) -> Iterator[SettingChange]:
    if old is None or new is None:
        return
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, absent), new.get(name, absent)
        if before != after:
            yield SettingChange(kind, name, before, after)


# -- the report of a comparison -----------------------------------------------------------------------------------------------

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
            parts = [f"{change.name} {_short(change.old)} → {_short(change.new)}" for change in self.changes]
            yield HeadlineRow("flags", (first_few(parts, _NAMED, "; ", "; "),))
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
