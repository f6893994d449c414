"""Answers of `query` as reports: rows of SQL, views of a store, tables of modules, and named queries.

Each named query is a documented file of `configs`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from hlo_inspect.configs import shipped_configs
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.fleet.database import Database
from hlo_inspect.fleet.module_database import ModuleDatabase, columns_of_table
from hlo_inspect.fleet.parts import plain
from hlo_inspect.fleet.sql_database import QueryResult
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table, Unit, Value
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "query"
_CHOSEN_COLUMNS = 20
"""The most columns of a query that a page shows all, also those without a value."""
_UNITS: tuple[Unit, ...] = ("bytes", "flops", "seconds")
_BOUNDS = ("_lower_bound", "_upper_bound")
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "NUMBER")


class NamedQuery(NamedTuple):
    """A query of a file: what it answers, its parameters with their meanings, and its SQL."""

    name: str
    summary: str
    parameters: dict[str, str]
    sql: str


def named_queries() -> list[NamedQuery]:
    """Return the shipped queries by name."""
    return [_read(path) for path in sorted(shipped_configs("queries").glob("*.sql"))]


def find_query(name: str) -> NamedQuery:
    """Return the query of that name. Raise UsageError with all names if there is none."""
    queries = {query.name: query for query in named_queries()}
    if name not in queries:
        hint = did_you_mean(name, queries)
        raise UsageError(f"{name!r} is neither SQL nor a query; `query --list` shows the queries: {', '.join(queries)}{hint}")
    return queries[name]


def _read(path: Path) -> NamedQuery:
    sql = path.read_text(encoding="utf-8")
    comments = [line.removeprefix("--").strip() for line in sql.splitlines() if line.startswith("--")]
    parameters = dict(line.removeprefix("$").split(": ", 1) for line in comments if line.startswith("$"))
    return NamedQuery(path.stem, " ".join(line for line in comments if not line.startswith("$")), parameters, sql)


_QUERIES = TableSpec("queries", "Named queries", page_rows=0).with_columns(
    Column("name", meaning="name for `query`"),
    Column(
        "parameters",
        optional=True,
        meaning="parameters that `--set` gives",
        get=lambda query: ", ".join(f"${name}" for name in query.parameters) or None,
    ),
    Column("answers", width=60, wraps=True, meaning="the question that it answers", get=attrgetter("summary")),
)
_VIEWS = TableSpec("views", "Views of the store", page_rows=0).with_columns(
    Column("view", get=itemgetter(0)),
    Column("rows", "count", get=itemgetter(1)),
    Column("columns", "count", get=itemgetter(2)),
)
_TABLES = TableSpec("module_tables", "Tables of", page_rows=0).with_columns(
    Column("table", get=itemgetter(0)),
    Column("rows", "count", get=itemgetter(1)),
    Column("columns", width=80, wraps=True, meaning="columns, the bounds of unknown figures left out", get=itemgetter(2)),
)
TABLES = (_QUERIES, _VIEWS, _TABLES)


def query_report(store: str, title: str, result: QueryResult, notes: Sequence[str] = ()) -> Report:
    """Return the rows of a query. Columns called `bytes`, `flops` or `seconds`, or with that ending, have that unit."""
    is_chosen = len(result.columns) <= _CHOSEN_COLUMNS
    columns = tuple(
        Column(name, _unit(name, type_), is_chosen=is_chosen) for name, type_ in zip(result.columns, result.types, strict=True)
    )
    rows = tuple(tuple(map(_value, row)) for row in result.rows)
    return replace(_report(store, Table("rows", title, columns, rows)), notes=tuple(notes))


def queries_report() -> Report:
    """Return the named queries with their parameters."""
    return _report("configs/queries", _QUERIES.of(named_queries()))


def views_report(store: str, database: Database) -> Report:
    """Return the views of a store, with their numbers of rows and columns."""
    return _report(store, _VIEWS.of(database.relations(), title=f"{_VIEWS.title} {store}"))


def tables_report(source: str, database: ModuleDatabase) -> Report:
    """Return the tables of modules, with their numbers of rows and their columns."""
    names = {table: [column.name for column in columns_of_table(table)] for table in database.tables}
    shown = {table: [name for name in names[table] if not name.endswith(_BOUNDS)] for table in names}
    rows = [(table, rows, ", ".join(shown[table])) for table, rows, _ in database.sizes(database.tables)]
    return _report(source, _TABLES.of(rows, title=f"{_TABLES.title} {source}"))


def _report(path: str, table: Table) -> Report:
    return Report(COMMAND, Input(path, first_line=1, lines=0, bytes=0), facts={}, tables=(table,))


def _unit(name: str, type_: str) -> Unit:
    if type_ == "BOOLEAN":
        return "bool"
    if not any(word in type_ for word in _NUMBERS) or type_.endswith("]") or type_.startswith(("MAP", "STRUCT")):
        return "text"
    for unit in _UNITS:
        if name == unit or name.endswith((f"_{unit}", f".{unit}")):
            return unit
    return "count" if "INT" in type_ else "number"


def _value(value: Any) -> Value:  # noqa: ANN401 - a value of any type of DuckDB
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return json.dumps(plain(value), ensure_ascii=False)
