"""The picture of Model Explorer with a graph of the extension.

    python -m docs.model_explorer

Needs Model Explorer, Playwright and a Chromium. The picture depends on their versions, so no test compares it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.request import urlopen

from docs.pictures import FOLDER, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURE = FOLDER / "model_explorer.png"
DUMP = FOLDER.parent / "tests" / "data" / "memory" / "gpu_scan.hlo"
PROFILE, NODE = "h100-sxm", "gemm_fusion_dot.4"
PORT = 8764
_SERVER = """from model_explorer import server
server.start(port=PORT, no_open_in_browser=True, extensions=["hlo_inspect_explorer"])
"""
_WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")


def main() -> None:
    import model_explorer

    path = model_explorer.config().add_model_from_path(str(DUMP), "hlo_inspect").to_url_param_value()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen([sys.executable, "-c", _SERVER.replace("PORT", str(PORT))], env=environment)
    try:
        _wait_for(f"http://localhost:{PORT}/check_health")
        _take(f"http://localhost:{PORT}/?data={path}")
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str) -> None:
    for _ in range(60):
        try:
            with urlopen(address):  # noqa: S310 - of this machine
                return
        except OSError:
            time.sleep(1)
    raise TimeoutError(f"{address} does not answer")


def _take(address: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", *_WEBGL])
        page = browser.new_page(viewport={"width": 1400, "height": 760})
        page.goto(address)
        page.get_by_text("Add per-node data").click()
        page.locator(':text("HLO figures"):visible').click()
        page.locator("select:visible").last.select_option(PROFILE)
        page.locator('button:visible:has-text("Run")').click()
        page.wait_for_selector(f':text("time on {PROFILE}"):visible')
        _show_node(page)
        page.screenshot(path=PICTURE)
        browser.close()


def _show_node(page: Page) -> None:
    """Search a node, which opens the layers around it."""
    page.get_by_placeholder("Search nodes/layers by regex").fill(f"^{NODE}$")
    page.locator(f':text-is("{NODE}"):visible').last.click()
    page.wait_for_timeout(3000)  # until the graph has moved
    page.locator('mat-icon:visible:text-is("close")').first.click()
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
