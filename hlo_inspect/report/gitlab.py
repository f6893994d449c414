"""Code quality report of GitLab: a JSON array with an entry for each finding, worst first.

Source of the fields: GitLab's documentation, "Code Quality", "Code Quality report format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TextIO

from hlo_inspect.report.annotations import annotate
from hlo_inspect.report.model import Report, Severity
from hlo_inspect.report.options import RenderOptions

SEVERITY_NAMES: dict[Severity, str] = {"error": "critical", "warning": "major", "info": "info"}


def render_gitlab(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    entries = [
        {
            "description": annotation.message,
            "check_name": annotation.finding.name or annotation.finding.rule,
            "fingerprint": annotation.fingerprint,
            "severity": SEVERITY_NAMES[annotation.finding.severity],
            "location": {"path": annotation.path, "lines": {"begin": annotation.line}},
        }
        for annotation in annotate(reports, options)
        if annotation.ignored_because is None
    ]
    stream.write(json.dumps(entries, indent=1) + "\n")
