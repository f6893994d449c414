"""Reports as SVG, which Graphviz' library lays out: the extra `[graph]`.

pygraphviz brings that library with it for Linux, macOS and Windows and works in this process, where the packages graphviz and
pydot run a program `dot` that has to be installed beside Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from hlo_inspect.errors import MissingExtraError, UsageError
from hlo_inspect.report.dot import dot_text
from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.picture import pictures


def render_svg(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    """One SVG document. `UsageError` where there are several modules, `MissingExtraError` without the extra."""
    try:
        from pygraphviz import AGraph
    except ImportError as error:
        message = "--format svg needs the extra [graph]: pip install pygraphviz (--format dot and mermaid need nothing)"
        raise MissingExtraError(message) from error
    for index, picture in enumerate(pictures(reports)):
        if index:
            raise UsageError("an SVG holds one picture, and several modules have the instruction: name one by --module")
        stream.write(AGraph(string=dot_text(picture)).draw(format="svg", prog="dot").decode("utf-8"))
