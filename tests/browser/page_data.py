"""Content of a page, read back from its text without a browser: tables with raw values and texts, figures."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

_PACKED = re.compile(r'<script type="application/octet-stream" data-packed="[^"]*">(.*?)</script>')
"""A view that the page's script makes when it is shown."""


def _unpacked(text: str) -> str:
    return gzip.decompress(b64decode(text)).decode()


@dataclass(frozen=True)
class PageTable:
    """A table of a page: raw values and what people read, by rows."""

    title: str
    names: list[str]
    units: list[str]
    rows: list[tuple[Any, ...]]
    texts: list[tuple[str, ...]]
    links: list[str]


class PageData(HTMLParser):
    """The data blocks of a page by view and name, and whatever else tests ask of its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: dict[tuple[str, str, str], Any] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.policy = ""
        self._block: tuple[str, str, str] | None = None
        self._silent = ""
        self._lines_of: str | None = None
        self.lines: dict[str, list[str]] = {}
        self.feed(_PACKED.sub(lambda view: _unpacked(view[1]), text))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if "href" in attributes:
            self.links.append(attributes["href"])
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag in ("script", "style"):
            self._silent = tag
            if "data-lines-of" in attributes:
                self._lines_of = attributes["data-lines-of"]
            kind = next((block for block in ("table", "picture") if f"data-{block}" in attributes), None)
            if kind is not None:
                self._block = (attributes["data-view"], kind, attributes[f"data-{kind}"])
                assert self._block not in self.blocks

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent, self._block, self._lines_of = "", None, None

    def handle_data(self, data: str) -> None:
        if self._block is not None:
            self.blocks[self._block] = json.loads(data)
        elif self._lines_of is not None:
            self.lines[self._lines_of] = json.loads(_unpacked(data))
        elif not self._silent:
            self.words.append(data)

    @property
    def text(self) -> str:
        """Text that a reader sees of the static page."""
        return "".join(self.words)

    def table(self, name: str, view: str = "") -> PageTable:
        data = self.blocks[view, "table", name]

        def cells(column: dict[str, Any], kind: str) -> list[Any]:
            values = column.get(kind, column["values"])
            return [values[index] for index in column.get("at", range(data["rows"]))]

        lines = {"name": "text", "unit": "text", "values": self.lines[view]} if name == "instructions" else None
        columns = [*data["columns"], *([lines] if lines else [])]
        return PageTable(
            data["title"],
            [column["name"] for column in columns],
            [column["unit"] for column in columns],
            list(zip(*(cells(column, "values") for column in columns), strict=True)),
            list(zip(*(cells(column, "texts") for column in columns), strict=True)),
            data.get("links", []),
        )

    def tables(self, view: str = "") -> dict[str, PageTable]:
        return {name: self.table(name, view) for owner, kind, name in self.blocks if kind == "table" and owner == view}

    def pictures(self, view: str = "") -> dict[str, Any]:
        """Return the blocks of pictures by name: `figures` with `label` and `figure`, `height`, `table`."""
        return {name: block for (owner, kind, name), block in self.blocks.items() if kind == "picture" and owner == view}
