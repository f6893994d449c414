"""The user's choices for every format: tables and rows to show, and how values are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os.path import commonprefix
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar

from hlo_inspect.errors import HloInspectError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.faults import Failed, answers, internal_error
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Row, Table, Value

if TYPE_CHECKING:
    from hlo_inspect.report.rule_page import RulePage

T = TypeVar("T")


class RenderOptions(NamedTuple):
    """The choices for all formats; a renderer ignores those that do not apply to its format.

    `top`: rows per table, the rest folded into `[N more]`; 0 is all. None leaves it to the table on a page for people;
    JSON and CSV have all then. `table`: only the table of that name. `sites`: single rows in place of merged rows. `raw_bytes`:
    sizes as integers of bytes. `width` in columns and `color` are the terminal's; the caller decides both, so that a renderer
    never examines its output. `verbose` adds all findings, notes and the names of hidden columns; `quiet` leaves
    only the first lines and the tables. `root` is the folder of the repository and `rule_pages` the
    documentation by code of a rule, for the formats of CI. `failed` receives a
    report that cannot be rendered, and the others follow. `left_out` is the last line of an output that a limit cuts.
    `config` is the path of a configuration that applies although it is in no folder of the command.
    """

    top: int | None = None
    table: str | None = None
    raw_bytes: bool = False
    width: int | None = None
    color: bool = False
    verbose: bool = False
    quiet: bool = False
    sites: bool = False
    root: Path | None = None
    rule_pages: Mapping[str, RulePage] = MappingProxyType({})
    failed: Failed[Report] | None = None
    left_out: str = ""
    config: str | None = None


Renderer = Callable[[Iterable[Report], TextIO, RenderOptions], None]
"""Write reports as they come, each when its text is complete.

A report that cannot be rendered whole leaves no half of it behind.
"""


def rendered(reports: Iterable[Report], render: Callable[[Report], T], options: RenderOptions) -> Iterator[T]:
    """Yield the output of `render` for each report."""
    return answers(reports, render, options.failed)


@contextmanager
def naming(report: Report) -> Iterator[None]:
    """Raise unexpected exceptions as InternalError with the place of the report, for a document that is lost by one of them."""
    try:
        yield
    except (HloInspectError, MemoryError, OSError):
        raise
    except Exception as error:
        raise internal_error(report, error) from error


def shown_tables(report: Report, options: RenderOptions, *, for_people: bool = False) -> tuple[Table, ...]:
    """Return the requested tables with the requested rows, for people with relative paths.

    Raise UsageError if the report has no table of that name.
    """
    if options.table is not None:
        tables: Sequence[Table] = (report.table_with_figures(options.table),)
    else:
        tables = _page_tables(report.tables, options) if for_people else report.tables
    if not for_people:
        return tuple(table.top(options.top or 0) for table in tables)
    tables = [_cut_for_page(table, options) for table in tables]
    if options.verbose:
        tables = list(map(_with_verbose_columns, tables))
    return with_relative_paths(tables)


def needed_tables(tables: Sequence[Table], options: RenderOptions) -> list[Table]:
    """Return the tables that a page for people needs, cut to its rows; all tables if one is selected by name.

    `shown_tables` returns the same for a report of these.
    """
    return [_cut_for_page(table, options) for table in (_page_tables(tables, options) if options.table is None else tables)]


def _cut_for_page(table: Table, options: RenderOptions) -> Table:
    return table.top(table.page_rows if options.top is None else options.top)


def _with_verbose_columns(table: Table) -> Table:
    """Return the table with columns that are else in JSON and CSV alone, each with the column before it, which they detail."""
    columns = list(table.columns)
    for index, column in enumerate(table.columns):
        if column.only_verbose:
            columns[index] = column._replace(detail=1)
            if index and not columns[index - 1].only_verbose:
                columns[index - 1] = columns[index - 1]._replace(detail=min(columns[index - 1].detail, 1))
    return replace(table, columns=tuple(columns))


def _page_tables(tables: Sequence[Table], options: RenderOptions) -> list[Table]:
    """Return the tables of a page. Single rows and merged rows share a place: one of the two is shown."""
    named = {table.name: table for table in tables}
    replaced = {table.name: named[table.page_as] for table in tables if table.page_as in named}
    groups = {group.name for group in replaced.values()}
    return [
        table if options.sites else replaced.get(table.name, table)
        for table in tables
        if table.on_page and table.name not in groups and (options.verbose or not table.only_verbose)
    ]


SOURCE_COLUMNS = frozenset({"source", "frame"})
"""Columns of source lines: `/train/main.py:10`, several joined by commas, or a word if there is none."""

_INSTALLED = lazy_pattern(r"^.*/(?:site-packages|dist-packages)/")


def with_relative_paths(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables with shorter paths in their columns of source lines."""
    lines = {line for table in tables for index in _path_columns(table) for row in table.rows for line in _lines(row[index])}
    directory = _directory(line for line in lines if line.startswith("/") and not _INSTALLED.match(line))
    return tuple(_relative(table, directory) for table in tables)


def _path_columns(table: Table) -> list[int]:
    return [index for index, column in enumerate(table.columns) if column.name in SOURCE_COLUMNS or column.is_file]


def _lines(value: Value) -> list[str]:
    return value.split(",") if isinstance(value, str) else []


def _directory(lines: Iterable[str]) -> str:
    """Return the common directory, with the slash after it."""
    common = commonprefix(list(lines))  # noqa: RUF071 - up to the last slash of it
    return common[: common.rfind("/") + 1]


def _relative(table: Table, directory: str) -> Table:
    columns = _path_columns(table)
    if not columns:
        return table

    def shorter(row: Row) -> Row:
        values = list(row)
        for index in columns:
            if isinstance(row[index], str):
                values[index] = ",".join(_INSTALLED.sub("", line).removeprefix(directory) for line in _lines(row[index]))
        return tuple(values)

    return replace(table, rows=tuple(map(shorter, table.rows)))
