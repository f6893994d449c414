"""Reports as flowcharts of Mermaid, which GitHub, GitLab and many editors draw."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TextIO

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.picture import COLORS, Picture, PictureNode, pictures

_MARKUP = lazy_pattern(r"[^\w .,:/()\[\]'=+\-…→]", re.ASCII)


def render_mermaid(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    for index, picture in enumerate(pictures(reports)):
        text = "".join(f"{line}\n" for line in _lines(picture))
        stream.write(f"\n{text}" if index else text)


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    if picture.cut:
        yield f"  %% {_escaped(picture.cut)}"
    for number, (computation, nodes) in enumerate(picture.groups.items()):
        if len(picture.groups) == 1:
            yield from map(_node, nodes)
            continue
        yield f'  subgraph g{number}["{_escaped(computation)}"]'
        yield from (f"  {_node(node)}" for node in nodes)
        yield "  end"
    yield from (f"  n{source} --> n{target}" for source, target in picture.edges)
    everything = [node for nodes in picture.groups.values() for node in nodes]
    for phase, (fill, outline) in COLORS.items():
        members = [f"n{node.number}" for node in everything if node.phase == phase]
        if members:
            yield f"  classDef {phase} fill:{fill},stroke:{outline},color:#000"
            yield f"  class {','.join(members)} {phase}"
    yield from (f"  style n{node.number} stroke-width:3px" for node in everything if node.is_asked)


def _node(node: PictureNode) -> str:
    return f'  n{node.number}["{"<br/>".join(map(_escaped, node.lines))}"]'


def _escaped(text: str) -> str:
    """A text without anything that Mermaid or HTML could take for markup: other characters are entities by their number."""
    return _MARKUP.sub(lambda match: f"#{ord(match[0])};", text)
