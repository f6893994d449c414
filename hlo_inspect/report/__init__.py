"""The output formats: `FORMATS` lists them, and all renderers are called in the same way."""

from __future__ import annotations

from types import MappingProxyType

from hlo_inspect.report.csv import render_csv
from hlo_inspect.report.json import render_json
from hlo_inspect.report.jsonl import render_jsonl
from hlo_inspect.report.markdown import render_markdown
from hlo_inspect.report.options import Renderer, RenderOptions
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

FORMATS_FOR_PEOPLE = ("table", "markdown")

__all__ = ["FORMATS", "FORMATS_FOR_PEOPLE", "RenderOptions", "Renderer"]
