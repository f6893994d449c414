"""Many comparisons in one report: a row each."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.compare.comparison import COMMAND, ModuleComparison
from hlo_inspect.report.model import Column, Input, Report, Table, Value


class _ListedPair(NamedTuple):
    """What the list says of a comparison."""

    name: Value
    verdict: str
    facts: Value
    changes: Value
    findings: int
    path: str


class PairList:
    """The table `pairs`. Each comparison becomes a row as it comes, so that comparisons need not be kept."""

    def __init__(self) -> None:
        self._pairs: list[_ListedPair] = []
        self._lines = self._bytes = 0

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, one: ModuleComparison) -> None:
        report = one.report
        counts = (report.facts.get("diff.fact_count"), report.facts.get("diff.change_count"))
        self._pairs.append(_ListedPair(report.module_name, one.verdict, *counts, len(report.findings), report.input.place))
        self._lines += report.input.lines
        self._bytes += report.input.bytes

    def report(self, path: str) -> Report:
        """The pairs as they came; `path` names what is compared."""
        return Report(
            COMMAND,
            Input(path, first_line=1, lines=self._lines, bytes=self._bytes),
            facts={},
            tables=(Table.of("pairs", "Pairs of modules", _COLUMNS, self._pairs, page_rows=0),),
            title=f"{len(self):,} pair{'' if len(self) == 1 else 's'} of modules",
        )


_COLUMNS = (
    Column("name", get=lambda pair: pair.name),
    Column("verdict", width=24, get=lambda pair: pair.verdict),
    Column("facts", "count", optional=True, get=lambda pair: pair.facts),
    Column("changes", "count", optional=True, get=lambda pair: pair.changes),
    Column("findings", "count", get=lambda pair: pair.findings),
    Column("path", detail=1, width=24, get=lambda pair: pair.path),
)
