"""A database of DuckDB that answers single SELECT statements.

`lock` switches external access off and locks the configuration, so that a query reads nothing else and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.errors import UsageError
from hlo_inspect.fleet.parts import literal

if TYPE_CHECKING:
    import duckdb


class QueryResult(NamedTuple):
    """The rows of a query, with the names of the columns and DuckDB's types of them."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


class SqlDatabase:
    """Tables and views of a connection. Statements of a user, even for EXPLAIN, come after `lock`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def lock(self, paths: Sequence[str] = ()) -> None:
        """Allow nothing outside of the database but these files."""
        for setting in (f"allowed_paths = {list_of(paths)}", "enable_external_access = false", "lock_configuration = true"):
            self._connection.execute(f"SET {setting}")

    def query(self, sql: str, values: Mapping[str, str]) -> QueryResult:
        """Run one SELECT statement with the values of its `$name` parameters. Raise UsageError for anything else."""
        import duckdb

        try:
            return self._run(sql, values)
        except duckdb.Error as error:
            raise sql_error(error) from error

    def _run(self, sql: str, values: Mapping[str, str], prefix: str = "") -> QueryResult:
        """Run a statement of a user, with a `prefix` such as EXPLAIN. Raise UsageError or an error of DuckDB."""
        import duckdb

        if sql != sql.encode(errors="replace").decode():
            raise UsageError(f"SQL is UTF-8, which {sql!r:.60} is not")
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
            raise UsageError(f"a query is one SELECT statement; this is {kinds}")
        _check_values(statements[0].named_parameters, values)
        cursor = self._connection.execute(f"{prefix} {sql}" if prefix else statements[0], dict(values) or None)
        description = cursor.description or []
        names, types = ([str(column[index]) for column in description] for index in (0, 1))
        return QueryResult(names, types, cursor.fetchall())

    def sizes(self, relations: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return names of our own relations with their numbers of rows and columns."""
        rows = {name: self.query(f"SELECT count(*) FROM {name}", {}).rows[0][0] for name in relations}  # noqa: S608 - our own
        return [(name, rows[name], len(self.query(f"SELECT * FROM {name} LIMIT 0", {}).columns)) for name in rows]  # noqa: S608

    def close(self) -> None:
        """Release the tables and files."""
        self._connection.close()


def _check_values(needed: Collection[str], values: Mapping[str, str]) -> None:
    for name in sorted(needed):
        if name not in values:
            raise UsageError(f"the query needs a value of ${name}: --set {name}=…")
    for name in values:
        if name not in needed:
            raise UsageError(f"the query has no parameter ${name}, which --set names")


def sql_error(error: duckdb.Error) -> UsageError:
    """Return an error of a query as one line."""
    message = str(error).partition("\nLINE ")[0]  # of several lines, with the candidates for a name
    return UsageError(f"SQL: {' '.join(message.split())}")


def list_of(texts: Sequence[str]) -> str:
    """Return texts as a list of literals of SQL."""
    return f"[{', '.join(map(literal, texts))}]"
