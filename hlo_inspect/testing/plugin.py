"""The pytest plugin: the fixture `hlo`, the marker `hlo_budget` and the options `--hlo-update` and `--hlo-watch`.

Every pytest run of an environment with this package imports this file, so it imports pytest alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hlo_inspect.testing.fixture import Hlo

MARKER = "hlo_budget"

_PASSED: pytest.StashKey[bool] = pytest.StashKey()
"""Set on a test with a budget: True if its body passed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hlo-inspect")
    group.addoption("--hlo-update", action="store_true", help="Write the golden files of compiled programs, not compare them.")
    group.addoption(
        "--hlo-watch", action="store_true", help="Inspect all modules that JAX compiles, by the project's policies."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(*conditions): check these conditions on each program that the test gives to the fixture hlo."
    )
    if config.getoption("--hlo-watch"):
        from hlo_inspect.testing.session_watch import SessionWatch

        config.pluginmanager.register(SessionWatch(config))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Raise UsageError for a marker that nothing would check."""
    __tracebackhide__ = True
    if item.get_closest_marker(MARKER) is not None and "hlo" not in getattr(item, "fixturenames", ()):
        path, line, _ = item.location
        raise pytest.UsageError(f"{path}:{(line or 0) + 1}: {MARKER} needs the fixture hlo: nothing else gives it a program")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the outcome of a test with a budget: a test that is skipped or fails need not give a program to the fixture."""
    report = yield
    if call.when == "call" and item.get_closest_marker(MARKER) is not None:
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def hlo(request: pytest.FixtureRequest) -> Iterator[Hlo]:
    """Compiled programs by what they do: `hlo(step, *arguments).expect("collectives.all-gather.executed_count == 0")`."""
    __tracebackhide__ = True
    from hlo_inspect.testing.fixture import fixture_for

    fixture = fixture_for(request, MARKER)
    yield fixture
    if fixture.has_unchecked_budget and request.node.stash.get(_PASSED, False):
        pytest.fail(f"{MARKER} checked nothing: the test gave no program to the fixture hlo", pytrace=False)
