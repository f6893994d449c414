"""The page Try it in a real browser: built once into a temporary folder, and served from loopback.

Tests need Chromium, Playwright, npm, node and hatchling. They are skipped if npm cannot fetch Pyodide.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from docs.playground.build import build
from docs.playground.packages import BuildError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, FilePayload, Page

BELOW = "try"
"""Folder of the page on its server, so that other addresses of the server are outside of it."""


_FLOAT = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def as_summed(text: str) -> str:
    """Return JSON to compare with that of the page, whose Python sums floats more precisely than a Python before 3.12."""
    return text if sys.version_info >= (3, 12) else _FLOAT.sub(lambda number: f"{float(number[0]):.12g}", text)


class _Handler(SimpleHTTPRequestHandler):
    """Handler that writes no log."""

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder from loopback; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class Tab:
    """The page in the browser, what went wrong in it, and the addresses that it asked for."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.context = context
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def wait(self, expression: str, seconds: int = 60) -> None:
        """Wait until an expression is true on the page, which forbids the texts that Playwright's own way evaluates."""
        for _ in range(10 * seconds):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"it does not come true: {expression}; {self.page.inner_text('main')[:500]}; {self.problems}")

    def rests(self, seconds: int = 60) -> None:
        self.wait("document.documentElement.dataset.ready && !document.getElementById('work').dataset.busy", seconds)

    def choose(self, *files: tuple[str, bytes]) -> None:
        payload: list[FilePayload] = [{"name": name, "mimeType": "", "buffer": data} for name, data in files]
        self.page.set_input_files("#files", payload)

    def open(self, *files: tuple[str, bytes]) -> None:
        """Choose files, and wait until the page has read them."""
        self.choose(*files)
        self.rests()

    def answer(self, line: str, seconds: int = 60) -> str:
        """Run a command line and return what it printed."""
        self.page.click("#tab-commands")
        self.page.fill("#line", line)
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Enter")
        self.rests(seconds)
        return self.page.locator("#terminal pre").last.evaluate("answer => answer.textContent")  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """Build the page and return the folder that holds its folder. The cache of pytest keeps Pyodide and bytecode."""
    folder = tmp_path_factory.mktemp("site")
    try:
        build(folder / BELOW, cache=pytestconfig.cache.mkdir("playground") if pytestconfig.cache else None)
    except BuildError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="session")
def tab(browser: Browser, site: Path) -> Iterator[Tab]:
    """Open the page once for all tests. They leave it without errors and without requests for other files."""
    with served(site) as address:
        opened = Tab(browser.new_context(viewport={"width": 1280, "height": 900}), f"{address}{BELOW}/")
        yield opened
        opened.context.close()
