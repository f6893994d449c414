"""Reports as graphs: instructions and the arrays between them, in DOT, as SVG and as Mermaid flowcharts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TextIO

from hlo_inspect.errors import MissingExtraError, UsageError, printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions, rendered
from hlo_inspect.report.table import Value

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
    """An instruction: its number, the lines of its label, and its phase (of `COLORS`). `is_asked` marks that of the request."""

    number: int
    lines: tuple[str, ...]
    phase: str
    is_asked: bool


@dataclass(frozen=True)
class Picture:
    """Instructions by computation, and edges by their numbers. `cut` names the part left out, if any, and how to see less."""

    title: str
    groups: Mapping[str, list[PictureNode]]
    edges: list[tuple[int, int]]
    cut: str


def picture_of(report: Report) -> Picture:
    """Return the picture of a report. Raise UsageError if it has none."""
    tables = {table.name for table in report.tables}
    if not {"graph_nodes", "graph_edges"} <= tables:
        matches = len(report.table("show").rows) if "show" in tables else 0
        what = f": {matches:,} instructions match; name one by its name or line" if matches else ""
        raise UsageError(f"there is nothing to draw{what}")
    records = report.table("graph_nodes").records()
    asked = [record for record in records if record["side"] == "asked"]
    shown = sorted(records, key=distance)[:MOST_NODES]
    kept = {_number(record["node"]) for record in shown}
    groups: dict[str, list[PictureNode]] = {}
    for record in shown:
        groups.setdefault(printable(str(record["computation"])), []).append(_node(record))
    edges = [(_number(source), _number(target)) for source, target in report.table("graph_edges").rows]
    cut = ""
    if len(shown) < len(records):
        cut = f"{len(shown)} of {len(records):,} instructions, the nearest first; --depth 1 or --path A B draws fewer"
    names = ", ".join(dict.fromkeys(str(record["name"]) for record in asked))
    title = printable(f"{names}, {report.facts.get('module.name')}" if names else str(report.facts.get("module.name")))
    return Picture(title, groups, [edge for edge in edges if kept.issuperset(edge)], cut)


def distance(node: Mapping[str, Value]) -> int:
    """Return 0 for an instruction of the request, for another the steps to it and one more."""
    return 0 if node["side"] == "asked" else _number(node["steps"]) + 1


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


_FONT = 'fontname="Helvetica"'


def render_dot(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    for text in rendered(reports, lambda report: dot_text(picture_of(report)), options):
        stream.write(text)
    if options.left_out:
        stream.write(f"// {options.left_out}\n")


def dot_text(picture: Picture) -> str:
    """Return the graph as text. Texts of a dump are in quoted strings only."""
    return "".join(f"{line}\n" for line in _dot_lines(picture))


def _dot_lines(picture: Picture) -> Iterator[str]:
    yield f"digraph {_quoted([picture.title])} {{"
    label = [picture.title, picture.cut] if picture.cut else [picture.title]
    yield f'  graph [label={_quoted(label)}, labelloc="t", {_FONT}, fontsize="12", ranksep="0.35", nodesep="0.25"];'
    yield f'  node [shape="box", style="filled,rounded", {_FONT}, fontsize="10", margin="0.12,0.06"];'
    yield '  edge [color="#555555", arrowsize="0.7"];'
    for number, (computation, nodes) in enumerate(picture.groups.items()):
        if len(picture.groups) == 1:
            yield from map(_dot_node, nodes)
            continue
        yield f"  subgraph cluster_{number} {{"
        yield f'    graph [label={_quoted([computation])}, fontsize="10", color="#999999", style="dashed"];'
        yield from (f"  {_dot_node(node)}" for node in nodes)
        yield "  }"
    yield from (f"  n{source} -> n{target};" for source, target in picture.edges)
    yield "}"


def _dot_node(node: PictureNode) -> str:
    fill, outline = COLORS[node.phase]
    asked = ', penwidth="3"' if node.is_asked else ""
    label = f'label={_quoted(node.lines)}, tooltip="{node.phase}"'
    return f'  n{node.number} [{label}, fillcolor="{fill}", color="{outline}"{asked}];'


def _quoted(lines: Iterable[str]) -> str:
    """Return a quoted string. Graphviz reads what follows a backslash as an escape, and `&` as the start of an HTML entity."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'


_MARKUP = lazy_pattern(r"[^\w .,:/()\[\]'=+\-…→]", re.ASCII)


def render_mermaid(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    texts = rendered(reports, lambda report: "".join(f"{line}\n" for line in _mermaid_lines(picture_of(report))), options)
    for index, text in enumerate(texts):
        stream.write(f"\n{text}" if index else text)
    if options.left_out:
        stream.write(f"%% {_escaped(options.left_out)}\n")


def _mermaid_lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    if picture.cut:
        yield f"  %% {_escaped(picture.cut)}"
    for number, (computation, nodes) in enumerate(picture.groups.items()):
        if len(picture.groups) == 1:
            yield from map(_mermaid_node, nodes)
            continue
        yield f'  subgraph g{number}["{_escaped(computation)}"]'
        yield from (f"  {_mermaid_node(node)}" for node in nodes)
        yield "  end"
    yield from (f"  n{source} --> n{target}" for source, target in picture.edges)
    everything = [node for nodes in picture.groups.values() for node in nodes]
    for phase, (fill, outline) in COLORS.items():
        members = [f"n{node.number}" for node in everything if node.phase == phase]
        if members:
            yield f"  classDef {phase} fill:{fill},stroke:{outline},color:#000"
            yield f"  class {','.join(members)} {phase}"
    yield from (f"  style n{node.number} stroke-width:3px" for node in everything if node.is_asked)


def _mermaid_node(node: PictureNode) -> str:
    return f'  n{node.number}["{"<br/>".join(map(_escaped, node.lines))}"]'


def _escaped(text: str) -> str:
    """Return a text without markup of Mermaid or HTML: other characters are entities by their number."""
    return _MARKUP.sub(lambda match: f"#{ord(match[0])};", text)


def render_svg(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    """Write one SVG document. Raise UsageError if there are several modules, MissingExtraError without the extra."""
    try:
        from pygraphviz import AGraph
    except ImportError as error:
        message = "--format svg needs the extra [graph]: pip install pygraphviz (--format dot and mermaid need nothing)"
        raise MissingExtraError(message) from error
    for index, graph in enumerate(rendered(reports, lambda report: AGraph(string=dot_text(picture_of(report))), options)):
        if index:
            raise UsageError("an SVG holds one picture, but several modules have the instruction: choose one with --module")
        stream.write(graph.draw(format="svg", prog="dot").decode("utf-8"))
    if options.left_out:  # not as a comment, which has no `--`
        stream.write(f"<?hlo-inspect {options.left_out.replace('?>', '? >')}?>\n")
