"""The site in a browser, from loopback and without other hosts: search, pages, live reports, a narrow and a dark screen.

HLO_INSPECT_SITE names the folder of a built site. Without it the tests build one, if Zensical is installed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest

from docs.site.__main__ import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_BUILT = os.environ.get("HLO_INSPECT_SITE")

pytestmark = pytest.mark.extras() if _BUILT else pytest.mark.extras("zensical")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base
        """Print nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server of the site on loopback."""
    folder = Path(_BUILT) if _BUILT else tmp_path_factory.mktemp("site")
    if not _BUILT:
        assert build(folder) == 0
        folder /= "site"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def problems() -> list[str]:
    return []


def opened(browser: Browser, address: str, problems: list[str], **options: Any) -> Iterator[Page]:
    """Yield a page of a context of its own, and note what goes wrong on it and which other hosts it asks."""
    own = (address, "data:", "blob:")
    context = browser.new_context(**options)
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    yield page
    context.close()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str, problems: list[str]) -> Iterator[Page]:
    yield from opened(browser, address, problems, viewport={"width": 1280, "height": 900})


@pytest.fixture(scope="module")
def narrow_page(browser: Browser, address: str, problems: list[str]) -> Iterator[Page]:
    yield from opened(browser, address, problems, viewport={"width": 390, "height": 844}, color_scheme="dark")


def found_pages(page: Page, address: str, words: str) -> list[str]:
    """Return the pages that the search lists for these words, the best first."""
    field = page.get_by_role("combobox", name="Search")
    if not field.is_visible():
        page.goto(f"{address}/index.html")
    for _ in range(50):  # until the page's script is there
        if field.is_visible():
            break
        page.keyboard.press("Control+k")
        page.wait_for_timeout(200)
    field.fill(words)
    page.wait_for_selector(f"a[role=option][href*='h={quote_plus(words)}']")
    results = page.get_by_role("option")
    before, links = None, results.evaluate_all(_PATHS)
    while links != before:  # the list changes piece by piece
        page.wait_for_timeout(100)
        before, links = links, results.evaluate_all(_PATHS)
    return [link.removeprefix("/") for link in links]


_PATHS = "links => links.map(link => link.pathname)"


SEARCHES = {
    "install": "install.html",  # How do I install it?
    "in python": "python.html",  # How do I get a figure in Python?
    "pytorch dump": "dumps.html",  # How do I make a dump with PyTorch/XLA?
    "lower bound": "numbers.html",  # What does >= before a number mean?
    "exposed": "questions/exposed.html",  # What is exposed time, and how do I get rid of it?
    "all-gather": "questions/all-gather.html",  # Why does this all-gather run?
    "does it fit": "questions/memory.html",  # Does it fit on an H100?
    "optimizer sharded": "questions/optimizer.html",  # Is my optimizer state sharded?
    "compile again": "questions/recompiles.html",  # Why is my step compiled again?
    "not donated": "questions/donation.html",  # Why is this argument not donated?
    "HI506": "rules/HI506.html",  # What does HI506 mean?
    "pytest": "ci.html",  # How do I test a step with pytest?
    "exit status": "commands/index.html",  # What does exit status 3 mean?
    "s3 bucket": "inputs.html",  # Can it read dumps in a bucket?
    "line of python": "questions/source.html",  # Which line of Python made this instruction?
    "h100 nvlink": "hardware/h100-sxm.html",  # Where does the bandwidth of NVLink come from?
    "accuracy": "times.html",  # How accurate are the times?
    "deadlock": "commands/ranks.html",  # Why does my job hang?
}
"""Questions of a newcomer: words of a search, and the page with the answer among its first results."""


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_the_page_of_a_question(words: str, page: Page, address: str) -> None:
    assert SEARCHES[words] in found_pages(page, address, words)[:5]


CLICKS: dict[tuple[str, ...], str] = {
    ("Commands", "memory"): "commands/memory.html",  # What does the column "role" of memory mean?
    ("Live reports", "Two versions of a step"): "reports/diff.html",  # What does a report look like?
}
"""Questions of a newcomer: links from the first page on, and the page with the answer."""


@pytest.mark.parametrize("names", CLICKS)
def test_two_clicks_lead_to_the_page_of_a_question(names: tuple[str, ...], page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    for name in names:
        page.get_by_role("link", name=name, exact=True).first.click()
    page.wait_for_url(f"{address}/{CLICKS[names]}")


@pytest.mark.parametrize("name", ["index", "commands/collectives"])
def test_a_narrow_dark_screen_has_no_wider_page(name: str, narrow_page: Page, address: str) -> None:
    narrow_page.goto(f"{address}/{name}.html")
    assert narrow_page.evaluate("document.documentElement.scrollWidth") <= 390
    assert narrow_page.evaluate("document.body.getAttribute('data-md-color-scheme')") == "slate"
    assert narrow_page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_nothing_went_wrong_and_no_other_host_was_asked(problems: list[str]) -> None:
    assert problems == []
