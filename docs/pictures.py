"""Pictures of the README and the pages: parts of the pages that `report` writes of dumps of the repository.

    python -m docs.pictures

Needs the extra [html], Playwright and a Chromium. `pictures.json` holds a hash of what each picture shows: a test fails if a
picture is older than that.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple

from docs.site.reports import REPORTS, LiveReport, write_report
from hlo_inspect.report.formats.html.assets import read_asset
from hlo_inspect.report.formats.html.charts.palette import css_variables

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parent
HASHES = FOLDER / "pictures.json"
WIDTH, MARGIN = 1000, 12
"""Pixels: width of a picture, and paper above its element."""
_PACKED = re.compile(r'<script type="application/octet-stream".*?</script>', re.DOTALL)


class Picture(NamedTuple):
    """A picture of a report's page: the pixels below the top of an element."""

    name: str
    report: LiveReport
    element: str
    height: int
    paper: Literal["light", "dark"] = "light"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.png"


_SHARDED = next(report for report in REPORTS if report.name == "gpu-step")
_SINGLE = LiveReport("one-gpu", ("tests/data/memory/gpu_unrolled.hlo", "--profile", "h100-sxm"))
PICTURES = (
    Picture("report_first", _SHARDED, "body", 640),
    Picture("report_step", _SHARDED, "#step", 690),
    Picture("report_memory", _SINGLE, "[id='picture/live-bytes']", 975, "dark"),
)


def hash_of_page(page: str) -> str:
    """Return a hash of the first view of a page and of the files that decide its look.

    It does not depend on the browser, the libraries or the version.
    """
    view = page[page.index("<body>") : page.index("<footer>")]
    drawing = sorted(Path(sys.modules[read_asset.__module__].__file__ or "").parent.glob("drawing/*.js"))
    looks = [read_asset("style.css"), css_variables(), *(path.read_text(encoding="utf-8") for path in drawing)]
    return _digest("\0".join([_PACKED.sub("", view), *looks]).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def hashes_of_reports(folder: Path) -> dict[str, str]:
    """Write the reports of all pictures to a folder. Return the hash of what each picture shows, by its name."""
    reports = {picture.report.name: picture.report for picture in PICTURES}
    for name, report in reports.items():
        write_report(report, folder / f"{name}.html")
    hashes = {name: hash_of_page((folder / f"{name}.html").read_text(encoding="utf-8")) for name in reports}
    return {picture.name: hashes[picture.report.name] for picture in PICTURES}


def recorded_hashes() -> dict[str, dict[str, str]]:
    """Return the hashes of each picture: of its file (`file`), and of what it shows (`shows`)."""
    hashes: dict[str, dict[str, str]] = json.loads(HASHES.read_text(encoding="utf-8"))
    return hashes


def hash_of_file(picture: Picture) -> str:
    """Return the hash of a picture's file."""
    return _digest(picture.path.read_bytes())


def find_chromium() -> str | None:
    """Return the path of the machine's Chromium; None if only Playwright may have one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def main() -> None:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        shows = hashes_of_reports(Path(folder))
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        for picture in PICTURES:
            _take(picture, browser, Path(folder))
        browser.close()
    recorded = {picture.name: {"file": hash_of_file(picture), "shows": shows[picture.name]} for picture in PICTURES}
    HASHES.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")


def _take(picture: Picture, browser: Browser, folder: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 1600}, color_scheme=picture.paper)
    page.goto((folder / f"{picture.report.name}.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    element = page.locator(picture.element).first
    element.evaluate("element => element.scrollIntoView()")
    page.wait_for_timeout(1500)  # until what is below is drawn too
    box = element.bounding_box()
    if box is None:
        raise ValueError(f"the page has no {picture.element}")
    page.screenshot(path=picture.path, clip={"x": 0, "y": max(box["y"] - MARGIN, 0), "width": WIDTH, "height": picture.height})
    page.close()


if __name__ == "__main__":
    main()
