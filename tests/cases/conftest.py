"""Each case is a test: `python -m pytest tests/cases/cost/loops.hlo` runs those of a file.

With `--cases-update` a figure that differs is replaced in the file if a reason stands behind it. The run fails all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.case import Case, CaseError, cases_of
from tests.cases.expectations import NotMetError, meet


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases-update", action="store_true", help="replace figures that differ in cases, if they have reasons")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return CaseFile.from_parent(parent, path=file_path) if file_path.suffix == ".hlo" else None


class CaseFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for case in cases_of(self.path):
            yield CaseItem.from_parent(self, name=f"line {case.first}", case=case)


class CaseItem(pytest.Item):
    def __init__(self, *, case: Case, **given: Any) -> None:
        super().__init__(**given)
        self.case = case

    def runtest(self) -> None:
        failures: list[CaseError] = []
        try:
            failures += meet(self.case)
        except CaseError as error:
            failures.append(error)
        if failures:
            if self.config.getoption("cases_update", default=False):
                update(self.path, [failure for failure in failures if isinstance(failure, NotMetError)])
            raise CaseFailedError(failures)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: object) -> str:
        """Return a line for each expectation with its place, the command, what is expected and what is there."""
        if not isinstance(excinfo.value, CaseFailedError):
            return str(super().repr_failure(excinfo))
        return "\n".join(f"{self.path}:{failure.line}: {failure}" for failure in excinfo.value.failures)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.first - 1, self.name


class CaseFailedError(Exception):
    def __init__(self, failures: list[CaseError]) -> None:
        super().__init__(failures)
        self.failures = failures


def update(path: Path, failures: list[NotMetError]) -> None:
    """Replace the expectations that are known to be others, and keep their reasons."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for failure in failures:
        before, mark, reason = lines[failure.line - 1].partition("  # ")
        if failure.better is not None and mark:
            slashes, name, _ = before.split(" ", 2)
            lines[failure.line - 1] = f"{slashes} {name} {failure.better}{mark}{reason}"
    path.write_text("".join(lines), encoding="utf-8")
