"""SARIF 2.1.0, as GitHub's code scanning takes it: one run with a result for each finding, worst first.

Sources: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". GitHub's documentation, "SARIF support for
code scanning", has the properties that it reads and their limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO
from urllib.parse import quote

from hlo_inspect.errors import printable
from hlo_inspect.report.annotations import Annotation, annotate
from hlo_inspect.report.model import LEFT_OUT, Finding, Report, Severity
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.rule_page import HEADINGS, RulePage
from hlo_inspect.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 25_000
"""Results of a run that GitHub reads."""

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def render_sarif(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    annotations = annotate(reports, options)
    left_out = len(annotations) - MAX_RESULTS
    codes = list(dict.fromkeys(annotation.finding.rule for annotation in annotations[:MAX_RESULTS]))
    findings = {annotation.finding.rule: annotation.finding for annotation in reversed(annotations)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "hlo-inspect",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(findings[code], options.rule_pages.get(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(annotation, codes.index(annotation.finding.rule)) for annotation in annotations[:MAX_RESULTS]],
    }
    if left_out > 0:
        run["invocations"] = [_cut(left_out)]
    text = json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)
    if options.left_out:
        text = text.removesuffix("\n}") + f',\n "properties": {json.dumps({LEFT_OUT: options.left_out})}}}'
    stream.write(text + "\n")


def _cut(left_out: int) -> dict[str, Any]:
    """Return the notification that the file lacks results."""
    text = f"{left_out:,} more results are left out: a run has {MAX_RESULTS:,} at most"
    return {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": text}}],
    }


def _rule(finding: Finding, page: RulePage | None) -> dict[str, Any]:
    """Return the documentation of a rule as a descriptor."""
    rule: dict[str, Any] = {"id": finding.rule, "name": finding.name or finding.rule}
    if page is None:
        return rule
    return rule | {
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": _one_line(page.what)},
        "help": {"text": "\n\n".join(map(_one_line, (page.what, page.why, page.fix))), "markdown": _help_in_markdown(page)},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
        "properties": {"tags": ["hlo", "xla"]},
    }


def _help_in_markdown(page: RulePage) -> str:
    texts = [f"## {heading}\n\n{_one_line(text)}" for heading, text in page.texts.items() if heading != HEADINGS[-1]]
    return "\n\n".join((*texts, f"## {HEADINGS[-1]}\n\n```\n{page.example}\n```"))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _result(annotation: Annotation, rule_index: int) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": annotation.line}
    if annotation.column is not None:
        region["startColumn"] = annotation.column
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": annotation.path if not annotation.in_repository else quote(annotation.path)},
            "region": region,
        }
    }
    if annotation.names:
        location["logicalLocations"] = [{"fullyQualifiedName": printable("/".join(annotation.names))}]
    result: dict[str, Any] = {
        "ruleId": annotation.finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[annotation.finding.severity],
        "message": {"text": annotation.message},
        "locations": [location],
        "partialFingerprints": {
            "hloInspect/v1": annotation.fingerprint,
            "primaryLocationLineHash": annotation.fingerprint,
        },
    }
    if annotation.ignored_because is not None:
        result["suppressions"] = [{"kind": "external", "justification": printable(annotation.ignored_because)}]
    return result
