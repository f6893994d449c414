"""A report as a picture: instructions and the arrays between them, out of its tables `graph_nodes` and `graph_edges`.

What draws it escapes the texts, which come from a dump.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.errors import UsageError, printable
from hlo_inspect.report.model import Report, Value

MOST_NODES = 300
"""Nobody reads a picture of more."""
_LONGEST_LINE = 44

COLORS: Mapping[str, tuple[str, str]] = {
    "forward": ("#d6e8fa", "#3a6ea5"),
    "recompute": ("#d9d2ee", "#6a51a3"),
    "backward": ("#fbe0cf", "#b35806"),
    "loss": ("#f9d3df", "#a0305a"),
    "optimizer": ("#d8efd3", "#3b7d3b"),
    "unknown": ("#f0f0f0", "#6b6b6b"),
}
"""Fill and outline by phase; black text can be read on all of them."""


class PictureNode(NamedTuple):
    """An instruction: its number, the lines of its label, its phase (of `COLORS`), and whether it was asked for."""

    number: int
    lines: tuple[str, ...]
    phase: str
    is_asked: bool


@dataclass(frozen=True)
class Picture:
    """Instructions by the computation that holds them, and edges by their numbers. `cut` says what is left out and how to see
    less; empty where all is there.
    """

    title: str
    groups: Mapping[str, list[PictureNode]]
    edges: list[tuple[int, int]]
    cut: str


def pictures(reports: Iterable[Report]) -> Iterator[Picture]:
    """The picture of each report. `UsageError` for one that has none."""
    for report in reports:
        names = {table.name for table in report.tables}
        if not {"graph_nodes", "graph_edges"} <= names:
            found = len(report.table("show").rows) if "show" in names else 0
            what = f": {found:,} instructions fit; a picture is of one, by its name or line" if found else ""
            raise UsageError(f"there is nothing to draw{what}")
        yield _picture(report)


def _picture(report: Report) -> Picture:
    records = report.table("graph_nodes").records()
    asked = [record for record in records if record["side"] == "asked"]
    others = sorted((record for record in records if record["side"] != "asked"), key=lambda record: _number(record["steps"]))
    shown = [*asked, *others][:MOST_NODES]
    kept = {_number(record["node"]) for record in shown}
    groups: dict[str, list[PictureNode]] = {}
    for record in shown:
        groups.setdefault(printable(str(record["computation"])), []).append(_node(record))
    edges = [(_number(source), _number(target)) for source, target in report.table("graph_edges").rows]
    cut = ""
    if len(shown) < len(records):
        cut = f"{len(shown)} of {len(records):,} instructions, the nearest; fewer by --depth 1, or by --path A B"
    names = ", ".join(dict.fromkeys(str(record["name"]) for record in asked))
    title = printable(f"{names}, {report.facts.get('module.name')}" if names else str(report.facts.get("module.name")))
    return Picture(title, groups, [edge for edge in edges if kept.issuperset(edge)], cut)


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _node(record: Mapping[str, Value]) -> PictureNode:
    name, opcode = str(record["name"]), str(record["opcode"])
    lines = [name, record["expression"] or ("" if opcode == name.partition(".")[0] else opcode), record["shape"]]
    texts = tuple(_short(printable(str(line))) for line in lines if line)
    phase = str(record["phase"])
    return PictureNode(_number(record["node"]), texts, phase if phase in COLORS else "unknown", record["side"] == "asked")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"
