"""The marker `extras`: what a test needs beyond the extras `test` and `xla`.

`@pytest.mark.extras("duckdb", "chromium", "HLO_INSPECT_AXE")` names packages, programs, and variables that name a file. A test
is skipped if this machine lacks one of them. The variable HLO_INSPECT_WITHOUT_EXTRAS skips all of them, because `.ci/run` runs
them in an environment of their own.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec

import pytest

from tests.chromium import CHROMIUM

MARKER = "extras"
LEFT_OUT = "HLO_INSPECT_WITHOUT_EXTRAS"
PROGRAMS = frozenset({"dot", "hadolint", "node", "npm"})
OF_FIXTURES = {"browser": ("chromium", "playwright"), "site": ("npm", "node", "hatchling", "jinja2", "itables")}
"""Needs of all tests that use a fixture: a browser, and the page that runs in it."""


def lacks(need: str) -> bool:
    """Return True if this machine lacks a package, a program or the file of a variable."""
    if need == "chromium":
        return CHROMIUM is None
    if need.isupper():
        return not os.environ.get(need)
    return shutil.which(need) is None if need in PROGRAMS else find_spec(need) is None


def skip_tests(items: Iterable[pytest.Item]) -> None:
    """Mark tests by their fixtures. Skip those that lack something, or all with the marker."""
    for item in items:
        for fixture in OF_FIXTURES.keys() & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.extras(*OF_FIXTURES[fixture]))
        markers = list(item.iter_markers(MARKER))
        missing = sorted({need for marker in markers for need in marker.args if lacks(need)})
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)}"))
        elif markers and not lacks(LEFT_OUT):
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT))


def summary(skipped: Iterable[pytest.TestReport]) -> str:
    """Return the number of skipped tests, and of each reason."""
    reasons = Counter(str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr) for report in skipped)
    texts = (f"{count} × {reason.removeprefix('Skipped: ')}" for reason, count in reasons.most_common())
    return f"{reasons.total()} skipped: {'; '.join(texts)}"
