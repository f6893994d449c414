"""Makes the pictures of the README: two sections of the page of a dump, on light and on dark paper.

    python docs/screenshots.py DUMP --profile NAME

Those in the repository are of a transformer's training step, sharded over 8 H100 (FSDP). Needs the extra [html], Playwright and
a Chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hlo_inspect.cli.main import run

FOLDER = Path(__file__).parent
SHOTS = (
    ("step", "#step", "light", 675),
    ("memory", "[id='picture/live-bytes']", "dark", 975),
)
"""What is shown: from where on, on which paper, and how many pixels of it."""
WIDTH = 1000


def main() -> None:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        if run(["report", *sys.argv[1:], "-o", str(path)]):
            sys.exit("the page could not be made")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, place, paper, height in SHOTS:
            page = browser.new_page(viewport={"width": WIDTH, "height": 1600}, color_scheme=paper)
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            page.locator(place).evaluate("element => element.scrollIntoView()")
            page.wait_for_selector(f"{place} svg.picture")
            page.wait_for_timeout(1500)  # until what is below is drawn too
            top = page.locator(place).bounding_box()["y"]
            page.screenshot(path=FOLDER / f"report_{name}.png", clip={"x": 0, "y": top, "width": WIDTH, "height": height})
        browser.close()


if __name__ == "__main__":
    main()
