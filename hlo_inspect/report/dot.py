"""Reports as graphs in the DOT language of Graphviz: one `digraph` a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.picture import COLORS, Picture, PictureNode, pictures

_FONT = 'fontname="Helvetica"'


def render_dot(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    for picture in pictures(reports):
        stream.write(dot_text(picture))


def dot_text(picture: Picture) -> str:
    """The graph as text. Texts of a dump are in quoted strings only."""
    return "".join(f"{line}\n" for line in _lines(picture))


def _lines(picture: Picture) -> Iterator[str]:
    yield f"digraph {_quoted([picture.title])} {{"
    label = [picture.title, picture.cut] if picture.cut else [picture.title]
    yield f'  graph [label={_quoted(label)}, labelloc="t", {_FONT}, fontsize="12", ranksep="0.35", nodesep="0.25"];'
    yield f'  node [shape="box", style="filled,rounded", {_FONT}, fontsize="10", margin="0.12,0.06"];'
    yield '  edge [color="#555555", arrowsize="0.7"];'
    for number, (computation, nodes) in enumerate(picture.groups.items()):
        if len(picture.groups) == 1:
            yield from map(_node, nodes)
            continue
        yield f"  subgraph cluster_{number} {{"
        yield f'    graph [label={_quoted([computation])}, fontsize="10", color="#999999", style="dashed"];'
        yield from (f"  {_node(node)}" for node in nodes)
        yield "  }"
    yield from (f"  n{source} -> n{target};" for source, target in picture.edges)
    yield "}"


def _node(node: PictureNode) -> str:
    fill, outline = COLORS[node.phase]
    asked = ', penwidth="3"' if node.is_asked else ""
    label = f'label={_quoted(node.lines)}, tooltip="{node.phase}"'
    return f'  n{node.number} [{label}, fillcolor="{fill}", color="{outline}"{asked}];'


def _quoted(lines: Iterable[str]) -> str:
    """A quoted string; Graphviz takes what follows a backslash for an escape, and `&` for the start of an HTML entity."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'
