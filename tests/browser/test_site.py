"""The site in a browser, from loopback and without other hosts: search, pages, live reports, a narrow and a dark screen.

HLO_INSPECT_SITE names the folder of a built site. Without it the tests build one, if Zensical is installed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from docs.site.__main__ import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_BUILT = os.environ.get("HLO_INSPECT_SITE")

pytestmark = pytest.mark.skipif(not _BUILT and find_spec("zensical") is None, reason="needs the extra [docs]")


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


@pytest.fixture(scope="module")
def page(browser: Browser, address: str, problems: list[str]) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None)
    own = (address, "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    yield page
    context.close()


def search(page: Page, address: str, words: str) -> list[str]:
    """Return the addresses that the search lists for these words, the best first."""
    raise NotImplementedError


QUESTIONS = {
    "all-gather": "questions/all-gather.html",
}
"""Words of a search, and a page that has to be among its first results."""


@pytest.mark.parametrize("words", QUESTIONS)
def test_the_search_finds_the_page_of_a_question(words: str, page: Page, address: str) -> None:
    assert any(QUESTIONS[words] in result for result in search(page, address, words)[:5])
