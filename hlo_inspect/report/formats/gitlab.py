"""Code quality report of GitLab: a JSON array with an entry for each finding, worst first.

Source of the fields: GitLab's documentation, "Code Quality", "Code Quality report format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from hlo_inspect.report.annotations import annotate, stable_name
from hlo_inspect.report.model import Report, Severity
from hlo_inspect.report.render_options import RenderOptions

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
    text = json.dumps(entries, indent=1)
    if options.left_out:
        text = text.removesuffix("]").removesuffix("\n") + f"{',' if entries else ''}\n {json.dumps(_last(options.left_out))}]"
    stream.write(text + "\n")


def _last(left_out: str) -> dict[str, Any]:
    """Return the entry that says what is left out: a report of this form has no other place for it."""
    place = {"path": stable_name("module"), "lines": {"begin": 1}}
    names = {"check_name": "left-out", "fingerprint": "left-out", "severity": SEVERITY_NAMES["info"]}
    return {"description": left_out, **names, "location": place}
