"""Reports of command lines, as data: what a renderer gets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

from hlo_inspect.cli import output
from hlo_inspect.cli.main import run
from hlo_inspect.report.formats import RenderOptions
from hlo_inspect.report.formats.markdown import render_markdown
from hlo_inspect.report.model import Report

ROOT = Path(__file__).parents[2]


def reports_of(*arguments: str) -> list[Report]:
    """Run a command line in the root of the repository, and return its reports. Raise ValueError if there are none."""
    reports: list[Report] = []

    def record(rendered: Iterable[Report], _stream: TextIO, _options: RenderOptions) -> None:
        reports.extend(rendered)

    folder = Path.cwd()
    os.chdir(ROOT)
    try:
        with patch.object(output, "ALL_FORMATS", {"json": record}):
            status = run([*arguments, "--format", "json"])
    finally:
        os.chdir(folder)
    if not reports:
        raise ValueError(f"hlo-inspect {' '.join(arguments)} has no report, and exit status {status}")
    return reports


def markdown_of(report: Report) -> str:
    """Return a report as `--format markdown` prints it."""
    stream = StringIO()
    render_markdown([report], stream, RenderOptions())
    return stream.getvalue()
