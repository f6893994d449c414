"""Dump directories of the ranks of a job, made of the dump of one rank in tests/data/ranks."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from hlo_inspect.inspection.rank_reports import RankReports
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Plain
from tests.data import make_ranks

DATA = Path(__file__).parents[2] / "data"
FINAL = ".cpu_after_optimizations.txt"
"""End of the file that most edits are of."""

Edit = Callable[[str], str]
Edits = Mapping[tuple[int, str], Edit | None]
"""Edits of single ranks by the end of a file's name, `train.debug_options`; None leaves the file out."""


@cache
def dumped() -> dict[str, str]:
    """Return the files of the dump."""
    with tarfile.open(DATA / "ranks" / "job.tar.xz") as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive.getmembers()]
        return {name: stream.read().decode() for name, stream in members if stream is not None}


def write_job(folder: Path, edits: Edits | None = None, *, ranks: int = 4, labels: Callable[[int], str] = str) -> str:
    """Write the dump of each rank with its own numbers, names and paths, and return the pattern of their directories."""
    for rank in range(ranks):
        for name, content in dumped().items():
            changed: str | None = content
            for (edited, end), edit in (edits or {}).items():
                if edited == rank and name.partition(".jit_")[2].startswith(end) and changed is not None:
                    changed = edit(changed) if edit is not None else None
            if changed is not None:
                number, _, rest = name.removeprefix("module_").partition(".")
                path = folder / labels(rank) / f"module_{int(number) * (rank + 1):04d}.{rest}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(make_ranks.of_rank(changed, rank))
    return f"{folder}/{{rank}}"


def swapped(first: str, second: str) -> Edit:
    """Return an edit that swaps the lines of two instructions."""
    return lambda text: make_ranks.swapped(text, first, second)


def replaced(old: str, new: str, count: int = 1) -> Edit:
    """Return an edit that replaces a text that must occur."""

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, count)

    return edit


def compared(pattern: str) -> Report:
    """Return the report of `ranks`, which must have read everything."""
    comparison = RankReports((pattern,))
    report = comparison.report()
    assert comparison.errors == []
    return report


def deviations(report: Report) -> list[dict[str, Plain]]:
    return report.table("rank_deviations").records()


def facts(report: Report) -> dict[str, Plain]:
    """Return the facts without the beginning of their names."""
    return {name.removeprefix("ranks."): value for name, value in report.facts.items()}
