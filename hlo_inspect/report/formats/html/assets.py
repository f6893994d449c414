"""The parts of a page besides its data: DataTables, the page's scripts and style, and the policy that allows these."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from hlo_inspect.errors import MissingExtraError

_NEEDED = ("jinja2", "itables")
_OWN = Path(__file__).parent
SCRIPTS = (
    *("base", "libraries", "data", "clipboard", "switch", "instructions", "card"),
    *("filter", "states", "tables", "pictures", "views", "search", "paper", "start"),
)
"""The files of the page's script in the order in which they run; a file uses what those before it define."""
_EXPORTS = re.compile(r"export\s*\{([^}]*)\}\s*;?\s*(?=/\*|\Z|\n)")
_DEFAULT = re.compile(r"([\w$]+)\s+as\s+default\b")


def need_extra() -> None:
    """Raise MissingExtraError if a package of the extra is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"a page needs the extra [html]: pip install {' '.join(missing)}")


def libraries(kinds: Collection[str]) -> dict[str, str]:
    """Return the scripts that wait in the page, by their purpose. `kinds` are those of its pictures."""
    return {"tables": _tables_script()} | ({"pictures": pictures_script(kinds)} if kinds else {})


DRAWINGS: Mapping[str, tuple[str, ...]] = {
    "bar": ("axes", "bars"),
    "line": ("axes", "points"),
    "points": ("axes", "points"),
    "cells": ("cells",),
    "icicle": ("trees",),
    "treemap": ("trees",),
    "timeline": ("time_axis", "timeline_canvas", "timeline_search", "timeline"),
}
"""The files that draw each kind of picture, beside `figure`."""


def pictures_script(kinds: Collection[str]) -> str:
    """Return the script that draws pictures of these kinds: the function `drawFigure`."""
    files = dict.fromkeys(("figure", *(name for kind, names in DRAWINGS.items() if kind in kinds for name in names)))
    texts = "\n".join(read_asset(f"drawing/{name}.js") for name in files)
    return f"(() => {{\n{texts}\nwindow.drawFigure = drawFigure;\n}})();"


@cache
def packed(text: str) -> str:
    """Return a script as the page holds it, which is a third of its size."""
    return packed_pieces([text])


def packed_pieces(pieces: Iterable[str]) -> str:
    """Return texts one after the other as the page holds them: compressed, in letters."""
    compressed = BytesIO()
    with gzip.GzipFile(fileobj=compressed, mode="wb", mtime=0) as stream:
        for piece in pieces:
            stream.write(piece.encode())
    return base64.b64encode(compressed.getbuffer()).decode("ascii")


def unpacked(text: str) -> str:
    """Return the text that `packed_pieces` made of these letters."""
    return gzip.decompress(base64.b64decode(text)).decode()


@cache
def _tables_script() -> str:
    """Return DataTables with its extensions, as itables ships it: a module whose default export becomes `window.DataTable`."""
    text = (_package("itables") / "html" / "dt_bundle.js").read_text(encoding="utf-8")
    exports = _EXPORTS.search(text)
    name = _DEFAULT.search(exports[1]) if exports else None
    if exports is None or name is None:
        raise MissingExtraError("the installed itables has an unknown layout: pip install --upgrade itables")
    return f'(()=>{{"use strict";{text[: exports.start()]}window.DataTable={name[1]};{text[exports.end() :]}\n}})();'


@cache
def tables_style() -> str:
    return _text(_package("itables") / "html" / "dt_bundle.css")


def read_asset(name: str) -> str:
    """Return the text of a file of this folder."""
    return _text(_OWN / name)


@cache
def page_script() -> str:
    """Return the page's own script: its files as one module."""
    return "\n".join(read_asset(f"script/{name}.js") for name in SCRIPTS)


def policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: only these scripts by their hashes, styles in the page, and pictures from it."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"a page needs the extra [html]: pip install {name}")
    return Path(spec.origin).parent


def _text(path: Path) -> str:
    """Return the text of a file for a page; it holds nothing that would end its element."""
    text = path.read_text(encoding="utf-8")
    if ("</style" if path.suffix == ".css" else "</script") in text.lower():
        raise MissingExtraError(f"{path} cannot be put in a page: pip install --upgrade itables")
    return text
