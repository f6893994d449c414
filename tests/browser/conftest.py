"""Pages in a real browser. Tests need Chromium and Playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from hlo_inspect.cli.main import run
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DUMP = Path(__file__).parents[1] / "data" / "memory" / "gpu_unrolled.hlo"
"""Dump of the page of most tests: a training step for one GPU."""

Opened = Callable[..., "Page"]


def wait_until(page: Page, expression: str, argument: object = None) -> None:
    """Wait until an expression or a function is true on the page.

    Playwright's own way evaluates a text on the page, which the page's policy forbids.
    """
    for _ in range(200):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it does not come true: {expression}")


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`written(dump, …, "--profile", "h100-sxm")`: the page that `report` writes of it, once for all tests."""
    folder = tmp_path_factory.mktemp("pages")
    made: dict[tuple[str, ...], Path] = {}

    def write(*arguments: str | Path) -> Path:
        key = tuple(map(str, arguments))
        if key not in made:
            page = folder / f"{len(made)}.html"
            assert run(["report", *key, "-q", "-o", str(page)]) == 0
            made[key] = page
        return made[key]

    return write


class WatchedPage:
    """A page in the browser, what went wrong on it, and what it asked for; the policy of the page can be left out."""

    def __init__(self, browser: Browser, path: Path, *, without_policy: bool = False) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=without_policy)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.page.on("request", lambda request: self._asked(request.url, path.as_uri()))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def _asked(self, url: str, own: str) -> None:
        if url.partition("#")[0] != own and not url.startswith(("data:", "blob:")):
            self.problems.append(f"request: {url}")


@pytest.fixture(scope="session")
def watched(browser: Browser) -> Iterator[dict[Path, WatchedPage]]:
    pages: dict[Path, WatchedPage] = {}
    yield pages
    for page in pages.values():
        page.context.close()


@pytest.fixture
def opened(browser: Browser, watched: dict[Path, WatchedPage]) -> Iterator[Opened]:
    """Open a page in the browser: `opened(path, width=390, scheme="dark")`.

    All tests of a page share it, as the test before left it. After each test the page must have no errors and no requests for
    other files.
    """
    used: list[WatchedPage] = []

    def open_page(path: Path, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Page:
        if path not in watched:
            watched[path] = WatchedPage(browser, path)
        used.append(watched[path])
        page = watched[path].page
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme=scheme)
        page.evaluate("location.hash = '#top'")
        return page

    yield open_page
    for entry in used:
        assert entry.problems == []


@pytest.fixture(scope="session")
def path(written: Callable[..., Path]) -> Path:
    """Return the page of `DUMP` on an accelerator."""
    return written(DUMP, "--profile", "h100-sxm")


@pytest.fixture(scope="session")
def page_data(path: Path) -> PageData:
    """Return the data in that page."""
    return PageData(path.read_text(encoding="utf-8"))
