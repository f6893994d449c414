"""The parts of a page besides its data: Plotly, DataTables, the page's script and style, and the policy that allows these."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hlo_inspect.errors import MissingExtraError

_NEEDED = ("jinja2", "plotly", "itables")
_OWN = Path(__file__).parent
SCRIPTS = (
    "base",
    "data",
    "clipboard",
    "switch",
    "instructions",
    "card",
    "filter",
    "tables",
    "pictures",
    "views",
    "paper",
    "start",
)
"""The files of the page's script in the order in which they run; a file uses what those before it define."""
_EXPORTS = re.compile(r"export\s*\{([^}]*)\}\s*;?\s*(?=/\*|\Z|\n)")
_DEFAULT = re.compile(r"([\w$]+)\s+as\s+default\b")


def need_extra() -> None:
    """Raise MissingExtraError if a package of the extra is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"a page needs the extra [html]: pip install {' '.join(missing)}")


def libraries() -> dict[str, str]:
    """Return the scripts of others that the page runs, by their purpose."""
    return {"tables": _tables_script(), "pictures": _plotly_script()}


@cache
def packed(text: str) -> str:
    """Return a script as the page holds it, which is a third of its size."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


@cache
def _plotly_script() -> str:
    """Return the JavaScript of Plotly's Python package, which is not imported."""
    return (_package("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


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
        raise MissingExtraError(f"{path} cannot be put in a page: pip install --upgrade plotly itables")
    return text
