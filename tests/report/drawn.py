"""Reports with a picture, which the tests of its formats share."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table

HOSTILE = 'a"]; evil [label="<script>alert(1)</script>\\" -> \\n &quot; %% ]\n} end"; classDef x'

_NODES = tuple(map(Column, ("node", "name", "opcode", "shape", "expression", "phase", "computation", "side", "steps", "line")))


def _report(nodes: Sequence[Row], edges: Sequence[tuple[int, int]], rows: int = 1) -> Report:
    asked = Table("show", "Instructions", (Column("name"),), (("dot.4",),) * rows)
    pictured = Table("graph_nodes", "", _NODES, tuple(nodes), on_page=False)
    joined = Table("graph_edges", "", (Column("source"), Column("target")), tuple(edges), on_page=False)
    return Report("show", Input("dump.txt", 1, 2, 3), {"module.name": "step"}, (asked, pictured, joined))


def small_report(rows: int = 1) -> Report:
    """Return three instructions in two computations."""
    nodes: list[Row] = [
        (0, "dot.4", "dot", "f32[16]", None, "forward", "main", "asked", 0, 12),
        (1, "fusion.1", "fusion", "f32[8]", "x * 2", "nonsense", "main", "feeds", 1, 11),
        (2, "x", "add", "f32[8]", None, "unknown", "body", "feeds", 2, 4),
    ]
    return _report(nodes, [(1, 0), (2, 1)], rows)


def drawn(names: Sequence[str], edges: Sequence[tuple[int, int]]) -> Report:
    """Return a picture in which the names stand for every text of a dump."""
    return _report([(number, name, name, name, name, name, name, "asked", 0, 1) for number, name in enumerate(names)], edges)


def large_report(count: int) -> Report:
    """Return a chain of instructions, each one step further away."""
    sides = ["asked", *["feeds"] * (count - 1)]
    nodes: list[Row] = [
        (number, f"i.{number}", "add", "f32[]", None, "unknown", "main", side, number, number)
        for number, side in enumerate(sides)
    ]
    return _report(nodes, [(number, number - 1) for number in range(1, count)])


def rendered(name: str, report: Report) -> str:
    stream = StringIO()
    ALL_FORMATS[name]([report], stream, RenderOptions())
    return stream.getvalue()
