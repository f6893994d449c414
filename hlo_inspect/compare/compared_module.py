"""A module on one side of a comparison: its report, and what identifies its program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.settings.compile_settings import CompileSettings
from hlo_inspect.report.model import Report

if TYPE_CHECKING:
    from hlo_inspect.passes.measured.measured_rows import MeasuredRows


class ComparedModule:
    """A module's report, with its analyses if its text was read and not a saved report."""

    def __init__(self, report: Report, context: Context | None = None) -> None:
        self.report = report
        self.context = context

    @property
    def name(self) -> str:
        return self.report.module_name

    @cached_property
    def program(self) -> str | None:
        """Hash of the program, independent of numbering, metadata and schedule; None if unknown."""
        return self.context.canonical.program if self.context is not None and self.is_whole else None

    def identities(self) -> Iterator[object]:
        """Yield values that equal programs share, the cheapest first; None if unknown or absent.

        They are the counts of the inner computations' fingerprints, the fingerprint of the entry, and the hash of the program.
        """
        canonical = self.context.canonical if self.context is not None else None
        entry = self.context.module.entry if self.context is not None else None
        yield canonical.inner if canonical is not None else None
        yield canonical.computation(entry.name).fingerprint if canonical is not None and entry is not None else None
        yield self.program

    @cached_property
    def schedule(self) -> str | None:
        """Hash of the schedule; None if the text has none."""
        return self.context.canonical.schedule if self.context is not None and self.is_whole else None

    @property
    def settings(self) -> CompileSettings | None:
        """Flags and options of the compile; None if the text is no file of a dump."""
        return self.context.settings if self.context is not None else None

    @property
    def is_whole(self) -> bool:
        """True if the text was read, and is more than quoted lines."""
        return self.context is not None and not self.context.module.quoted_lines

    @property
    def measured(self) -> MeasuredRows | None:
        """The measured rows; None unless the module ran in a recorded profile."""
        if self.context is None or self.context.measured is None:
            return None
        from hlo_inspect.passes.measured.measured_rows import MeasuredRows

        return MeasuredRows(self.context, self.context.measured)

    @cached_property
    def signature(self) -> tuple[str, ...] | None:
        """The shapes of parameters and results; None if unknown."""
        if self.context is None or not self.context.interface.parameters_known:
            return None
        interface = self.context.interface
        shapes = [*(leaf.shape for leaf in interface.parameters), *(output.shape for output in interface.outputs)]
        return (*map(str, shapes), str(len(interface.parameters)))
