"""The output formats: `FORMATS` lists them, and all renderers are called in the same way."""

from __future__ import annotations

from types import MappingProxyType

from hlo_inspect.report.csv import render_csv
from hlo_inspect.report.dot import render_dot
from hlo_inspect.report.json import render_json
from hlo_inspect.report.jsonl import render_jsonl
from hlo_inspect.report.markdown import render_markdown
from hlo_inspect.report.mermaid import render_mermaid
from hlo_inspect.report.options import Renderer, RenderOptions
from hlo_inspect.report.svg import render_svg
from hlo_inspect.report.terminal import render_terminal

FORMATS: MappingProxyType[str, Renderer] = MappingProxyType(
    {
        "table": render_terminal,
        "json": render_json,
        "jsonl": render_jsonl,
        "csv": render_csv,
        "markdown": render_markdown,
    }
)

OWN_FORMATS: MappingProxyType[str, Renderer] = MappingProxyType(
    {"dot": render_dot, "mermaid": render_mermaid, "svg": render_svg},
)
"""Formats of single commands, which have the tables that these draw (`Question.formats`)."""

ALL_FORMATS: MappingProxyType[str, Renderer] = MappingProxyType({**FORMATS, **OWN_FORMATS})

FORMATS_FOR_PEOPLE = ("table", "markdown")

__all__ = ["ALL_FORMATS", "FORMATS", "FORMATS_FOR_PEOPLE", "OWN_FORMATS", "RenderOptions", "Renderer"]
