"""A store in DuckDB: `modules`, `findings` and each table as views of the latest reading of each input.

The database reads the parts through Arrow. External access is then switched off and the configuration locked, so that a query
reads nothing else and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.fleet.parts import arrow_schema, damaged, require_fleet, table_of_lines
from hlo_inspect.fleet.schema import FINDINGS, MODULES, columns_of
from hlo_inspect.fleet.store import Store
from hlo_inspect.fleet.table_columns import TABLE_COLUMNS
from hlo_inspect.remote_files import is_address, remote_file_system

if TYPE_CHECKING:
    import duckdb

_PRIVATE = "parts"
"""Schema of the relations with all readings."""


class QueryResult(NamedTuple):
    """The rows of a query, with the names of the columns and DuckDB's types of them."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


class Database:
    """Database of a store. `damaged` has the errors of parts that cannot be read; the others answer."""

    def __init__(self, store: Store) -> None:
        require_fleet("query")
        import duckdb

        store.check()
        self._store = store
        self.damaged: list[InputError] = []
        self._filled = {MODULES, FINDINGS}
        extensions: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=extensions)
        self._connection.execute(f"CREATE SCHEMA {_PRIVATE}")
        for relation in (MODULES, FINDINGS, *TABLE_COLUMNS):
            self._add(relation)
        self._make_views()
        for setting in ("temp_directory = ''", "enable_external_access = false", "lock_configuration = true"):
            self._connection.execute(f"SET {setting}")

    def query(self, sql: str, values: Mapping[str, str]) -> QueryResult:
        """Run one SELECT statement with the values of its `$name` parameters. Raise UsageError for anything else."""
        import duckdb

        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
                raise UsageError(f"a query is one SELECT statement; this is {kinds}")
            self._check_values(statements[0].named_parameters, values)
            cursor = self._connection.execute(statements[0], dict(values) or None)
            description = cursor.description or []
            names, types = ([str(column[index]) for column in description] for index in (0, 1))
            return QueryResult(names, types, cursor.fetchall())
        except duckdb.Error as error:
            message = str(error).partition("\nLINE ")[0]  # of several lines, with the candidates for a name
            raise UsageError(f"SQL: {' '.join(message.split())}") from error

    def relations(self) -> list[tuple[str, int, int]]:
        """Return the views with their numbers of rows and columns; no table without parts."""
        names = [relation for relation in (MODULES, FINDINGS, *TABLE_COLUMNS) if relation in self._filled]
        counts = [self.query(f"SELECT count(*) FROM {name}", {}).rows[0][0] for name in names]  # noqa: S608 - names of our own
        return [(name, count, len(columns_of(name))) for name, count in zip(names, counts, strict=True)]

    def close(self) -> None:
        """Release the files of the store."""
        self._connection.close()

    @staticmethod
    def _check_values(needed: Sequence[str] | set[str], values: Mapping[str, str]) -> None:
        for name in sorted(needed):
            if name not in values:
                raise UsageError(f"the query needs a value of ${name}: --set {name}=…")
        for name in values:
            if name not in needed:
                raise UsageError(f"the query has no parameter ${name}, which --set names")

    def _add(self, relation: str) -> None:
        """Make all readings of a relation known to DuckDB."""
        import pyarrow
        from pyarrow import dataset

        schema = arrow_schema(relation)
        fragments, tables = [], []
        for path in self._store.parts_of(relation):
            try:
                if path.endswith(".parquet"):
                    fragments.append(self._fragment(path))
                else:
                    tables.append(table_of_lines(relation, self._store.read(path), path))
            except InputError as error:
                self.damaged.append(error)
        if fragments or tables:
            self._filled.add(relation)
        sources = []  # a source without parts would cost each query: `modules` has hundreds of columns
        if fragments:
            form = dataset.ParquetFileFormat()
            self._connection.register(f"{relation}_of_parquet", dataset.FileSystemDataset(fragments, schema, form))
            sources.append(f"SELECT * FROM {relation}_of_parquet")  # noqa: S608 - our own names
        if tables or not fragments:
            self._connection.register(f"{relation}_of_lines", pyarrow.concat_tables(tables or [schema.empty_table()]))
            sources.append(f"SELECT * FROM {relation}_of_lines")  # noqa: S608 - our own names
        self._connection.execute(f"CREATE VIEW {_PRIVATE}.{relation} AS {' UNION ALL '.join(sources)}")

    @staticmethod
    def _fragment(path: str) -> Any:  # noqa: ANN401 - a fragment of Arrow
        """Return a Parquet part whose footer is whole. Raise InputError for another."""
        import pyarrow
        from pyarrow import dataset, fs

        if is_address(path):
            remote, inner = remote_file_system(path)
            files = fs.PyFileSystem(fs.FSSpecHandler(remote))
        else:
            files, inner = fs.LocalFileSystem(), path
        fragment = dataset.ParquetFileFormat().make_fragment(inner, files)
        try:
            fragment.ensure_complete_metadata()
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(path) from error
        return fragment

    def _make_views(self) -> None:
        """Make the views: of each input the rows of its latest reading."""
        execute = self._connection.execute
        last = "read_at = max(read_at) OVER (PARTITION BY input)"
        kept = f"SELECT DISTINCT module, read_at FROM {_PRIVATE}.modules QUALIFY {last} AND status <> 'empty'"  # noqa: S608 - our own
        execute(f"CREATE TABLE {_PRIVATE}.latest AS {kept}")
        latest = f"(SELECT module, read_at FROM {_PRIVATE}.latest)"  # noqa: S608 - as above
        for relation in (MODULES, FINDINGS, *TABLE_COLUMNS):
            rows = f"{_PRIVATE}.{relation} SEMI JOIN {latest} USING (module, read_at)"
            execute(f"CREATE VIEW {relation} AS SELECT * FROM {rows}")  # noqa: S608 - as above
