"""The export of the one module of an input: it is planned with its report, and written when the input is read."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.export.step_export import step_export
from hlo_inspect.report.model import Report


class WrittenExport:
    """Receiver of the reports of an input, which holds one module."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._context: Context | None = None

    def take(self, _report: Report, context: Context) -> None:
        """Keep the module to write. Raise UsageError for a second one."""
        if self._context is not None:
            names = f"{self._context.module.name} and {context.module.name}"
            raise UsageError(f"holds several modules, {names}; choose one with --module", Location(self._source))
        self._context = context

    def write(self, place: str) -> None:
        """Write the folder or file. Raise UsageError if it holds something else or cannot be written."""
        if self._context is None:
            raise InputError("holds no HLO module to export", Location(self._source))
        self._context.once(step_export).write(place)
