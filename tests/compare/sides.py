"""Modules of texts, and what a diff says of two of them."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

from hlo_inspect.compare.changes import ModuleChange, format_change
from hlo_inspect.compare.compared_module import ComparedModule
from hlo_inspect.compare.explanation import Explanation
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.request import Request

DATA = Path(__file__).parent.parent / "data"


def module(text: str) -> ComparedModule:
    """Return the only module of a text, with its analyses."""
    (compared,) = Comparisons(Request())._side(ComparedInput(text)).modules()
    assert compared is not None
    return compared


@cache
def dump(name: str) -> str:
    """Return the text of a dump in `tests/data`."""
    path = DATA / name
    return lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text()


def changes(old: ComparedModule, new: ComparedModule) -> list[ModuleChange]:
    """Return the changes that explain the difference of two modules."""
    assert old.context is not None
    assert new.context is not None
    return Explanation(old.report, new.report, (old.context, new.context)).changes()


def words(change: ModuleChange) -> str:
    """Format a change, sizes as integers."""
    return "".join(part if isinstance(part, str) else str(part.value) for part in format_change(change))
