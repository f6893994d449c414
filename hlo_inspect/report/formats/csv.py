r"""A table of a report as CSV or TSV: the command's own, which is the first, or that of the options.

`summary` and reports without tables give `fact,value`. Several reports share one header, with the column `input`
(path#module) before the others. Sizes are integers of bytes, booleans true and false, unknown is an empty field.

Spreadsheets read a cell that starts with = + - or @ as a formula. Such a text of a dump gets an apostrophe before it.
Numbers are never touched, negative ones included. Control characters are escaped, newlines too, so that one row is one line.
TSV has a tab between fields and no quotes: a tab in a text is `\t`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from io import StringIO
from itertools import chain, islice
from typing import TextIO

from hlo_inspect.errors import UsageError, printable
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions, rendered, shown_tables
from hlo_inspect.report.table import Row, Value

_FORMULA_STARTS = ("=", "+", "-", "@")


def render_csv(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    _render(reports, stream, options, "CSV", _csv_lines)


def render_tsv(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    _render(reports, stream, options, "TSV", _tsv_lines)


def _csv_lines(rows: Iterable[Row]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _tsv_lines(rows: Iterable[Row]) -> str:
    return "".join("\t".join("" if value is None else str(value) for value in row) + "\n" for row in rows)


def _render(
    reports: Iterable[Report], stream: TextIO, options: RenderOptions, form: str, lines: Callable[[Iterable[Row]], str]
) -> None:
    reports = iter(reports)
    firsts = list(islice(reports, 2))
    several = len(firsts) > 1
    header: list[str] = []
    for report, (names, rows) in rendered(chain(firsts, reports), lambda report: (report, _content(report, options)), options):
        first = () if header else (("input", *names) if several else tuple(names),)
        header = header or names
        if names != header:
            raise UsageError(f"the reports have different tables, which one {form} cannot hold: choose one with --table")
        key = [f"{report.input.path}#{report.facts.get('module.name', report.title) or ''}"] if several else []
        stream.write(lines(chain(first, (tuple(csv_field(value) for value in (*key, *row)) for row in rows))))
    if options.left_out:
        stream.write(lines([(csv_field(options.left_out), *[None] * (len(header) + several - 1))]))


def _content(report: Report, options: RenderOptions) -> tuple[list[str], Iterable[Row]]:
    tables = shown_tables(report, options)
    if options.table is None and (report.command == "summary" or not tables):
        return ["fact", "value"], report.facts.items()
    table = tables[0].flat()
    return [column.name for column in table.columns], table.rows


def csv_field(value: Value) -> Value:
    """Return the value as a field, for copies of a page too: no text of a dump is a formula or has control characters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    return value
