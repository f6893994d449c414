"""`pytest --hlo-watch`: the modules that JAX compiles in a run of tests, at the end of its page."""

from __future__ import annotations

import io

import pytest

from hlo_inspect.api_watch import watch
from hlo_inspect.checks.config import find_config
from hlo_inspect.errors import HloInspectError


class SessionWatch:
    """A watch over a run of tests. The run fails if a check of the project's policies fails on a module."""

    def __init__(self, config: pytest.Config) -> None:
        """Begin the watch. Raise pytest.UsageError if JAX is too old, or for several processes of tests."""
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--hlo-watch shows the compiles of one process: leave out -n")
        self._stream = io.StringIO()
        try:
            project = find_config(config.rootpath)
            options = {**project.defaults, "thresholds": project.lint.thresholds}
            self._watch = watch(policy=project.policies, stream=self._stream, **options)
        except HloInspectError as error:
            raise pytest.UsageError(f"--hlo-watch: {error}") from None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._watch.close()
        if self._watch.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("modules that JAX compiled")
        terminalreporter.write(self._stream.getvalue())
