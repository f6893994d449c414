"""The output formats: `FORMATS` lists them, and all renderers are called in the same way.

A file here renders reports in one format, or in several that are alike. It may import the rest of `report`, and of other
formats no more than the fields of CSV and the page of a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from hlo_inspect.report.render_options import Renderer, RenderOptions


class Formats(Mapping[str, Renderer]):
    """Renderers by the names of formats. Each is `render_NAME` of a file here, imported on first use."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files

    def __getitem__(self, name: str) -> Renderer:
        renderer: Renderer = getattr(import_module(f"{__name__}.{self.files[name]}"), f"render_{name}")
        return renderer

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


FORMATS = Formats({"table": "terminal", "json": "json", "jsonl": "json", "csv": "csv", "tsv": "csv", "markdown": "markdown"})

OWN_FORMATS = Formats({"dot": "graphs", "mermaid": "graphs", "perfetto": "perfetto", "svg": "graphs"})
"""Formats of single commands, which have the tables that these draw (`Question.formats`)."""

CI_FORMATS = Formats({"sarif": "sarif", "junit": "junit", "github": "github", "gitlab": "gitlab"})
"""Formats of `check` and `lint`, for the pages of CI services."""

PAGE = Formats({"html": "html"})
"""Formats of the command `report`."""

ALL_FORMATS = Formats({**FORMATS.files, **OWN_FORMATS.files, **CI_FORMATS.files, **PAGE.files})

FORMATS_FOR_PEOPLE = ("table", "markdown")

FORMATS_OF_ROWS = ("csv", "tsv")
"""Formats that hold the rows of one table and nothing else."""

__all__ = [
    "ALL_FORMATS",
    "CI_FORMATS",
    "FORMATS",
    "FORMATS_FOR_PEOPLE",
    "FORMATS_OF_ROWS",
    "OWN_FORMATS",
    "Formats",
    "RenderOptions",
    "Renderer",
]
