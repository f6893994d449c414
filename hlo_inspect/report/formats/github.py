"""Workflow commands of GitHub Actions: an annotation for each finding, worst first.

Source of the syntax and its escapes: GitHub's documentation, "Workflow commands for GitHub Actions". All output is commands: a
text of a dump cannot begin one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TextIO

from hlo_inspect.report.annotations import Annotation, annotate
from hlo_inspect.report.model import Report, Severity
from hlo_inspect.report.render_options import RenderOptions

SHOWN = 10
"""Annotations of one kind that GitHub shows for a step; the log has all."""

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    annotations = [annotation for annotation in annotate(reports, options) if annotation.ignored_because is None]
    for annotation in annotations:
        stream.write(
            _command(_COMMANDS[annotation.finding.severity], annotation.title, annotation.message_with_place, annotation)
        )
    counts = Counter(_COMMANDS[annotation.finding.severity] for annotation in annotations)
    hidden = sum(max(count - SHOWN, 0) for count in counts.values())
    if hidden:
        text = f"GitHub shows {SHOWN} annotations of a kind: {hidden:,} more are in the log. The format sarif shows all."
        stream.write(_command("notice", "hlo-inspect", text, None))
    if options.left_out:
        stream.write(_command("notice", "hlo-inspect", options.left_out, None))


def _command(command: str, title: str, message: str, annotation: Annotation | None) -> str:
    properties = {"title": title}
    if annotation is not None and annotation.in_repository:
        properties = {"file": annotation.path, "line": str(annotation.line), **properties}
    written = ",".join(f"{name}={_escaped_property(value)}" for name, value in properties.items())
    return f"::{command} {written}::{_escaped(message)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
