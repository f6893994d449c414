"""Builds the site into a folder that any static host serves.

    python -m docs.site -o FOLDER [--try]

Needs the extra [docs]. With `--try` the site has the page Try it too, whose build needs npm and node.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from docs import perfetto
from docs.playground.build import build as build_playground
from docs.playground.packages import BuildError
from docs.site.reports import FOLDER, REPORTS, write_report

DOCS = Path(__file__).parents[1]
CONFIG = Path(__file__).parent / "zensical.toml"
FOLDERS, OWN_PLACES = ("rules", "hardware"), ("index.md", "own.md")
"""Folders whose pages stand behind their index in the navigation, except those with a place of their own."""
_PAGES = (".md", ".png", ".css")
_MARK = "search.json"
"""File that each built site has."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description="Build the site into a folder.")
    parser.add_argument("-o", type=Path, required=True, dest="folder", help="folder of the site; replaces an older site in it")
    parser.add_argument("--try", action="store_true", dest="has_playground", help="build the page Try it into its folder `try`")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if not all(map(find_spec, ("zensical", "jinja2", "itables"))):
        sys.exit("the site needs the extra [docs]: pip install '.[docs]'")
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).is_file():
        sys.exit(f"{folder} holds other files than a site: name an empty folder")
    with TemporaryDirectory() as staging:
        status = build(Path(staging))
        if status:
            sys.exit(status)
        perfetto.write(Path(staging) / "site" / "perfetto")
        if arguments.has_playground:
            try:
                build_playground(Path(staging) / "site" / "try")
            except BuildError as error:
                sys.exit(f"Try it cannot be built: {error}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(Path(staging) / "site", folder)


def build(staging: Path) -> int:
    """Build the site into `staging/site`. Return the exit status of Zensical, which fails on each warning."""
    for path in page_files():
        target = staging / "docs" / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (staging / "docs" / FOLDER).mkdir()
    for report in REPORTS:
        write_report(report, staging / "docs" / FOLDER / f"{report.name}.html")
    (staging / CONFIG.name).write_text(config(), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", CONFIG.name]
    return subprocess.run(command, cwd=staging, check=False).returncode


def config() -> str:
    """Return the configuration, with the pages of `FOLDERS` behind their index in the navigation."""
    text = CONFIG.read_text(encoding="utf-8")
    for folder in FOLDERS:
        names = sorted(path.name for path in (DOCS / folder).glob("*.md") if path.name not in OWN_PLACES)
        pages = ", ".join(f'"{folder}/{name}"' for name in ("index.md", *names))
        text = text.replace(f'"{folder}/index.md"', f"[{pages}]")
    return text


def page_files() -> Iterator[Path]:
    """Yield the files of `docs` that the site shows: pages, and the pictures in them."""
    files = (path for path in sorted(DOCS.rglob("*")) if path.suffix in _PAGES and path.is_file())
    yield from (path for path in files if "playground" not in path.parts)


if __name__ == "__main__":
    main()
