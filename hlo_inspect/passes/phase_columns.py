"""The columns of tables that say what told a phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hlo_inspect.report.model import Column


def phase_source(get: Callable[[Any], str]) -> Column:
    """`name` where metadata told the phase, `graph` where the graph of values did; nothing where the phase is unknown."""
    return Column("phase_from", detail=9, optional=True, only_verbose=True, width=6, get=lambda row: get(row) or None)


def joined_sources(sources: Iterable[str]) -> str:
    """What told the phase of several that are in one row."""
    return ", ".join(sorted(set(filter(None, sources)), reverse=True))
