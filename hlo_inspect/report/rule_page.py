"""The documentation of one kind of finding, as `hlo-inspect rule CODE` and formats for CI show it."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.errors import Location
from hlo_inspect.report.model import Finding, Severity

HEADINGS = ("What it finds", "Why it matters", "How to fix it", "Example")


class RulePage(NamedTuple):
    """The documentation of one kind of finding: `summary` is one line, `example` is shown as it is written.

    `threshold` is the least stake that is a finding, such as `1.00 MiB`; empty if the user cannot set it.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    what: str
    why: str
    fix: str
    example: str
    threshold: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """The four texts by their headings."""
        return dict(zip(HEADINGS, (self.what, self.why, self.fix, self.example), strict=True))

    def finding(
        self, message: str, location: Location | None = None, subject: str | None = None, stake: int | None = None
    ) -> Finding:
        """Return a finding of this kind; `stake` is in bytes."""
        return Finding(self.code, self.severity, message, location, subject, stake, name=self.name)
