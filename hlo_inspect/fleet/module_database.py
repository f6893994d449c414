"""Modules of a dump in DuckDB: their instructions, operands, computations, calls, buffers, and tables of passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Figure
from hlo_inspect.fleet.parts import column_definitions, connect, printable_text, require_fleet
from hlo_inspect.fleet.reading import finding_row, status_of, table_rows
from hlo_inspect.fleet.schema import (
    FINDING_COLUMNS,
    FINDINGS,
    MODULES,
    StoreColumn,
    Type,
    passes_of_tables,
    spec_columns,
    stored,
    stored_tables,
)
from hlo_inspect.fleet.sql_database import SqlDatabase, sql_error
from hlo_inspect.passes import FINDINGS as FINDINGS_PASS
from hlo_inspect.passes import RELATIONS as RELATIONS_PASS
from hlo_inspect.passes.relations import RELATIONS
from hlo_inspect.report.model import HeadlineRow, Report
from hlo_inspect.report.table import READERS, Bound, Value, plain
from hlo_inspect.report.table_spec import TableSpec

_OF_PASSES = {"collectives": "collectives", "kernels": "kernels", "parameters": "params"}
"""Tables with the name of the pass's table."""
_RELATIONS = {relation.spec.name: relation for relation in RELATIONS}
_MODULE = StoreColumn("module", "int", "number of the module in the input, from 0")
_MODULE_COLUMNS: Mapping[str, Type] = {
    "name": "text",
    "input": "text",
    "status": "text",
    "line": "int",
    "lines": "int",
    "bytes": "int",
}
COMMANDS_OF_TABLES = frozenset({*_OF_PASSES, FINDINGS})
"""Tables whose columns are those of commands and stores."""
TABLES = (MODULES, *_RELATIONS, *_OF_PASSES, FINDINGS)

_ARRAYS: Mapping[Type, str] = {"int": "int64", "float": "float64", "bool": "bool"}


def columns_of_table(table: str) -> list[StoreColumn]:
    """Return the columns of a table, the number of the module first."""
    if table == MODULES:
        return [_MODULE, *(StoreColumn(name, type_) for name, type_ in _MODULE_COLUMNS.items())]
    if table == FINDINGS:
        return [_MODULE, *(column for column in FINDING_COLUMNS if column.name not in {"module", "read_at", "row"})]
    return [_MODULE, *(StoreColumn(column.name, column.type) for column in spec_columns(_spec(table)))]


def _spec(table: str) -> TableSpec:
    return stored_tables()[_OF_PASSES[table]].spec if table in _OF_PASSES else _RELATIONS[table].spec


class ModuleDatabase(SqlDatabase):
    """Database of the modules of an input, with the tables that a statement names; with all if it names none.

    `passes` are those that have to run on each module. `notes` say why columns are null, `headline` that modules are truncated.
    """

    def __init__(self, sql: str | None) -> None:
        require_fleet("query")
        super().__init__(connect())
        words = set(re.findall(r"\w+", (sql or "").lower()))
        self.tables = [table for table in TABLES if table in words] or list(TABLES)
        self.passes = (RELATIONS_PASS, *passes_of_tables(_OF_PASSES[table] for table in self.tables if table in _OF_PASSES))
        if FINDINGS in self.tables:
            self.passes += (FINDINGS_PASS,)
        self.count = 0
        self.notes: list[str] = []
        self.headline: list[HeadlineRow] = []
        for table in self.tables:
            self._connection.execute(f"CREATE TABLE {table} ({column_definitions(columns_of_table(table))})")
        self.lock()

    def check(self, sql: str, values: Mapping[str, str]) -> None:
        """Raise UsageError for a statement that `query` refuses, before modules are read."""
        import duckdb

        try:
            self._run(sql, values, "EXPLAIN")
        except duckdb.Error as error:
            raise sql_error(error) from error

    def add(self, report: Report, context: Context) -> None:
        """Add the rows of a module, with the report of its passes."""
        for table in self.tables:
            self._insert(table, list(_columns(table, report, context)))
        if not {"buffers", "instructions"}.isdisjoint(self.tables) and context.memory.reason:
            unknown = f"buffers, live_from, live_to of module {self.count} ({report.module_name})"
            self.notes.append(f"{unknown}: {context.memory.reason}")
        self.headline += [row for row in report.headline if row.severity is not None]
        self.count += 1

    def _insert(self, table: str, columns: Sequence[Sequence[Value]]) -> None:
        """Insert columns as arrays, which DuckDB reads without an object for a row."""
        size = len(columns[0])
        types = [column.type for column in columns_of_table(table)]
        values = [[self.count] * size, *columns]
        arrays = {f"c{number}": _array(column, type_) for number, (column, type_) in enumerate(zip(values, types, strict=True))}
        self._connection.register("arrays", arrays)
        self._connection.execute(f"INSERT INTO {table} SELECT * FROM arrays")  # noqa: S608 - a name of our own
        self._connection.unregister("arrays")


def _columns(table: str, report: Report, context: Context) -> Iterator[Sequence[Value]]:
    """Yield the values of each column of a table, bounds included."""
    if table == MODULES:
        place = report.input
        values = (report.module_name, place.path, status_of(context.module), place.first_line, place.lines, place.bytes)
        yield from ([value] for value in values)
        return
    if table in _RELATIONS:
        relation = _RELATIONS[table]
        made = dict(zip((column.name for column in relation.spec.columns), relation.columns(context), strict=True))
        yield from (_part(made[column.of], column.bound) for column in spec_columns(relation.spec))
        return
    rows = [finding_row(finding) for finding in report.findings] if table == FINDINGS else table_rows(report, _OF_PASSES[table])
    yield from zip(*rows, strict=True) if rows else [()] * (len(columns_of_table(table)) - 1)


def _part(values: Sequence[Value], bound: Bound) -> Sequence[Value]:
    """Return the values, or their bounds; figures that are known exactly are both."""
    return list(map(READERS[bound], values)) if Figure in set(map(type, values)) else values


def _array(values: Sequence[Value], type_: Type) -> Any:  # noqa: ANN401 - an array of numpy, which is imported when used
    """Return values as an array in which the null ones are masked, texts as objects."""
    import numpy

    if type_ not in _ARRAYS:
        return numpy.array([value if value is None else printable_text(str(value)) for value in values], dtype=object)
    kept = values if set(map(type, values)) <= {int, bool} else [stored(plain(value), type_) for value in values]
    mask = [value is None for value in kept] if None in kept else False
    return numpy.ma.array([value or 0 for value in kept] if mask else kept, mask=mask, dtype=_ARRAYS[type_])
