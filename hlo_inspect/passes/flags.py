"""The table `flags` of a summary: flags that differ from XLA's defaults, without those of dumps and logs."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from hlo_inspect.analysis.context import Context
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

FLAGS = TableSpec("flags", "Flags that differ from XLA's defaults", TablePlace("program", "", "", 1)).with_columns(
    Column("name", width=40, meaning="flag or option", get=itemgetter(0)), Column("value", width=24, get=itemgetter(1))
)


def flags_table(context: Context) -> Iterator[Table]:
    """Yield the flags from the file `.debug_options` beside the text, nothing without that file."""
    settings = context.settings
    if settings is not None and settings.flags is not None:
        yield FLAGS.of(sorted(settings.flags.items()))


def flags_notes(context: Context) -> Iterator[str]:
    """Yield why flags are unknown, for a text of a dump directory."""
    settings = context.settings
    if settings is None:
        return
    if settings.unknown:
        yield f"flags: {settings.unknown[0]}"
    elif settings.flags is None:
        yield "flags: the dump states all flags and no defaults; `hlo-inspect diff` names those that differ from another dump"
