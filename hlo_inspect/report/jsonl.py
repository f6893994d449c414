"""Reports as JSON Lines: each report is one line, with the keys of the JSON report, and each row of a table is an object by the
names of its columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TextIO

from hlo_inspect.report.json import report_to_dict
from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions, shown_tables


def render_jsonl(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    for report in reports:
        shown = report_to_dict(replace(report, tables=shown_tables(report, options)))
        shown["tables"] = [_with_objects(table) for table in shown["tables"]]
        stream.write(json.dumps(shown, allow_nan=False, separators=(",", ":")) + "\n")


def _with_objects(table: dict[str, Any]) -> dict[str, Any]:
    names = [column["name"] for column in table["columns"]]
    total = table["total"]
    return {
        **table,
        "rows": [dict(zip(names, row, strict=True)) for row in table["rows"]],
        "total": None if total is None else dict(zip(names, total, strict=True)),
    }
