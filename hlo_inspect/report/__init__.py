"""The output formats: `FORMATS` lists them, and all renderers are called in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from hlo_inspect.report.options import Renderer, RenderOptions


class Formats(Mapping[str, Renderer]):
    """Renderers by the names of formats. Each is `render_FILE` of a file here, which is imported when it is asked for."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files

    def __getitem__(self, name: str) -> Renderer:
        file = self.files[name]
        renderer: Renderer = getattr(import_module(f"{__name__}.{file}"), f"render_{file}")
        return renderer

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


FORMATS = Formats({"table": "terminal", "json": "json", "jsonl": "jsonl", "csv": "csv", "markdown": "markdown"})

OWN_FORMATS = Formats({"dot": "dot", "mermaid": "mermaid", "perfetto": "perfetto", "svg": "svg"})
"""Formats of single commands, which have the tables that these draw (`Question.formats`)."""

PAGE = Formats({"html": "html"})
"""What the command `report` writes."""

ALL_FORMATS = Formats({**FORMATS.files, **OWN_FORMATS.files, **PAGE.files})

FORMATS_FOR_PEOPLE = ("table", "markdown")

__all__ = ["ALL_FORMATS", "FORMATS", "FORMATS_FOR_PEOPLE", "OWN_FORMATS", "Formats", "RenderOptions", "Renderer"]
