"""Reports as JSON: raw values, unknown is null, `schema_version` 1.

One report is one object, several are one object with a list of them. JSON has no NaN or infinity: they are the strings "NaN",
"Infinity" and "-Infinity". The output is ASCII; one row of a table takes one line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, TextIO

from hlo_inspect.report.model import LEFT_OUT, SCHEMA_VERSION, Finding, Report
from hlo_inspect.report.render_options import RenderOptions, rendered, shown_tables
from hlo_inspect.report.table import Row, Table, Value
from hlo_inspect.version import __version__

_encode = json.JSONEncoder(allow_nan=False).encode


def render_json(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    shown = as_dicts(reports, options)
    first, second = next(shown, None), next(shown, None)
    if first is None:
        stream.write(f'{{\n "schema_version": {SCHEMA_VERSION},\n "reports": []{_end(options)}')
        return
    if second is None:
        stream.write("".join(_pieces(first, 0, "")).removesuffix("\n}") + _end(options))
        return
    before = f'{{\n "schema_version": {SCHEMA_VERSION},\n "reports": ['
    for report in chain([first, second], shown):
        stream.write("".join((before, "\n  ", *_pieces(report, 0, "  "))))
        before = ","
    stream.write(f"\n ]{_end(options)}")


def _end(options: RenderOptions) -> str:
    """Return the end of a document. The line of what is left out is its last member, and the last line."""
    return f',\n "{LEFT_OUT}": {_encode(options.left_out)}}}\n' if options.left_out else "\n}\n"


def as_dicts(reports: Iterable[Report], options: RenderOptions) -> Iterator[dict[str, Any]]:
    """Yield the reports as `report_to_dict` returns them, with the tables that are shown."""
    return rendered(reports, lambda report: report_to_dict(replace(report, tables=shown_tables(report, options))), options)


def report_to_dict(report: Report) -> dict[str, Any]:
    """Return the report as plain dicts, lists and scalars."""
    source = report.input
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "hlo-inspect", "version": __version__},
        "command": report.command,
        "input": {"path": source.path, "first_line": source.first_line, "lines": source.lines, "bytes": source.bytes},
        "profile": report.profile,
        "facts": {name: _plain(value) for name, value in report.facts.items()},
        "tables": [_table(table) for table in report.tables],
        "findings": [_finding(finding) for finding in report.findings],
        "notes": list(report.notes),
    }


def _table(table: Table) -> dict[str, Any]:
    table = table.flat()
    total, left_out = table.total, table.left_out
    return {
        "name": table.name,
        "title": table.title,
        "columns": [{"name": column.name, "unit": column.unit} for column in table.columns],
        "rows": [_row(row) for row in table.rows],
        "total": None if total is None else _row(total),
        **({"left_out": {"rows": left_out.rows, "sums": _row(left_out.sums)}} if left_out else {}),
    }


def _row(row: Row) -> list[Value]:
    return [_plain(value) for value in row]


def _plain(value: Value) -> Value:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "location": None if place is None else {"path": place.path, "line": place.line, "column": place.column},
        "subject": finding.subject,
        "name": finding.name,
        "stake": finding.stake,
        "stake_unit": finding.stake_unit if finding.stake is not None else None,
        "share": finding.share,
        "share_of": finding.share_of or None,
        "source": finding.source,
        "fingerprint": finding.fingerprint,
    }


def _pieces(value: object, depth: int, margin: str) -> list[str]:
    """Return the text of `value`. A row, a column or a location takes one line.

    Values that contain lists or objects are opened, one item a line. So are all values in the first levels of a report, whose
    depth is 0.
    """
    pieces: list[str] = []
    _add_pieces(pieces, value, depth, margin)
    return pieces


def _add_pieces(pieces: list[str], value: object, depth: int, margin: str) -> None:
    if not value or not isinstance(value, dict | list):
        pieces.append(_encode(value))
        return
    items = value.values() if isinstance(value, dict) else value
    if depth > 2 and not any(isinstance(item, list | dict) for item in items):
        pieces.append(_encode(value))
        return
    inner = margin + " "
    start, brackets = f"\n{inner}", "{}" if isinstance(value, dict) else "[]"
    labels = [f"{start}{_encode(key)}: " for key in value] if isinstance(value, dict) else repeat(start)
    separator = brackets[0]
    for label, item in zip(labels, items, strict=False):
        pieces += separator, label
        _add_pieces(pieces, item, depth + 1, inner)
        separator = ","
    pieces.append(f"\n{margin}{brackets[1]}")


def render_jsonl(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    for shown in as_dicts(reports, options):
        shown["tables"] = [_with_objects(table) for table in shown["tables"]]
        stream.write(json.dumps(shown, allow_nan=False, separators=(",", ":")) + "\n")
    if options.left_out:
        last = {"schema_version": SCHEMA_VERSION, LEFT_OUT: options.left_out}
        stream.write(json.dumps(last, separators=(",", ":")) + "\n")


def _with_objects(table: dict[str, Any]) -> dict[str, Any]:
    names = [column["name"] for column in table["columns"]]
    total = table["total"]
    return {
        **table,
        "rows": [dict(zip(names, row, strict=True)) for row in table["rows"]],
        "total": None if total is None else dict(zip(names, total, strict=True)),
    }
