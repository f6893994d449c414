"""Settings of all tests, the browser, and fixtures that read small modules with all that the analyses need."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import settings

from hlo_inspect.analysis import fusion_contents as fusions
from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, RESIZING_OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import build
from tests import extras
from tests import slow as slow_files
from tests.chromium import CHROMIUM, OFFLINE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No test is timed: on a loaded machine an example may take longer than it should.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# Pages have the same width wherever the tests run.
os.environ.pop("COLUMNS", None)
# Workers of xdist and hundreds of other processes start in the tests: without cached bytecode each compiles the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

EVERYTHING = Wants(
    opcodes=OPCODES | fusions.OPCODES,
    operands=RESIZING_OPCODES | fusions.CUSTOM_CALL,
    targets=TARGETS,
    entry=True,
    unused=True,
    graph=True,
)

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # which would begin with the files of the most tests
    if not hasattr(config, "workerinput") and not build.is_current():  # tests import the tree, whose library no install builds
        with suppress(build.BuildError):
            build.compile_library(build.LIBRARY)


@pytest.hookimpl(tryfirst=True)  # before the selection by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {slow_files.FOLDER / name: place for place, name in enumerate(slow_files.names())}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        if item.path not in places:
            item.add_marker("quick")
    extras.skip_tests(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped")
    if skipped:
        terminalreporter.write_line(extras.summary(skipped))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the browser of all tests of a process. It reaches no other machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", OFFLINE])
        yield launched
        launched.close()


@pytest.fixture(autouse=True)
def _quick_tests_start_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("quick") is None:
        return

    def refused(*_: object, **__: object) -> NoReturn:
        pytest.fail("a quick test starts a process or reaches a server: its file belongs to tests/slow.txt")

    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(BaseProcess, "start", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)


@pytest.fixture
def read() -> Callable[..., Context]:
    """Return `read(text)`, which gives the Context of the only module of a text."""

    def context(text: str, wants: Wants = EVERYTHING) -> Context:
        (module,) = read_modules(open_source(text), wants)
        return Context(module)

    return context


@pytest.fixture
def entry(read: Callable[..., Context]) -> Callable[..., Context]:
    """Return `entry(*lines, header=…, before=…)`, which reads an entry of these lines after `%add` and the text `before`."""

    def context(*lines: str, header: str = "", before: str = "", wants: Wants = EVERYTHING) -> Context:
        body = "".join(f"  {line}\n" for line in lines)
        return read(f"HloModule test{header}\n\n{ADD}\n{before}\nENTRY %main {{\n{body}}}\n", wants)

    return context
