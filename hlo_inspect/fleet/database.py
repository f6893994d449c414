"""A store in DuckDB: `modules`, `findings` and each table as views of the latest reading of each input.

External access is switched off but for the parts and the configuration locked, so that a query reads nothing else and writes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.fleet.parts import column_definitions, connect, line_source, literal, require_fleet
from hlo_inspect.fleet.schema import FINDINGS, MODULES, stored_tables
from hlo_inspect.fleet.store import Store
from hlo_inspect.version import HASHES, has_older_hashes

if TYPE_CHECKING:
    import duckdb

_HASH_FACTS = "fingerprint."
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
        store.check()
        require_fleet("query")
        self._store = store
        self.damaged: list[InputError] = []
        self._groups: dict[str, list[list[str]]] = {}
        """The parts of Parquet of each relation, in groups of equal columns."""
        self._filled = {MODULES, FINDINGS}
        self._connection = connect(store.root)
        self._connection.execute(f"CREATE SCHEMA {_PRIVATE}")
        self._connection.execute("SET parquet_metadata_cache = true")  # footers of hundreds of columns, read for each query
        for relation in (MODULES, FINDINGS, *stored_tables()):
            self._add(relation)
        self._make_whole_views()
        parts = [path for groups in self._groups.values() for paths in groups for path in paths]
        allowed = f"allowed_paths = {_list_of(parts)}"
        for setting in (allowed, "enable_external_access = false", "lock_configuration = true"):
            self._connection.execute(f"SET {setting}")

    def query(self, sql: str, values: Mapping[str, str]) -> QueryResult:
        """Run one SELECT statement with the values of its `$name` parameters. Raise UsageError for anything else."""
        import duckdb

        if sql != sql.encode(errors="replace").decode():
            raise UsageError(f"SQL is UTF-8, which {sql!r:.60} is not")
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
            if _may_be_damage(error) and self._leave_damaged_out():
                return self.query(sql, values)
            message = str(error).partition("\nLINE ")[0]  # of several lines, with the candidates for a name
            raise UsageError(f"SQL: {' '.join(message.split())}") from error

    def notes_on_hashes(self, sql: str, result: QueryResult) -> list[str]:
        """Say which hashes of programs are of older versions, if a query asks for any."""
        if _HASH_FACTS not in sql and not any(name.startswith(_HASH_FACTS) for name in result.columns):
            return []
        counted = 'SELECT tool_version, count("fingerprint.program") FROM modules GROUP BY ALL ORDER BY 1'
        rows = [(str(version), int(count)) for version, count in self.query(counted, {}).rows]
        return [
            f"{HASHES}: {count:,} of {sum(all_ for _, all_ in rows):,} modules have those of hlo-inspect {version}, which "
            "never equal those of this version; `collect --again` reads the inputs again"
            for version, count in rows
            if count and has_older_hashes(version)
        ]

    def relations(self) -> list[tuple[str, int, int]]:
        """Return the views with their numbers of rows and columns; no table without parts."""
        names = [relation for relation in (MODULES, FINDINGS, *stored_tables()) if relation in self._filled]
        counts = [self.query(f"SELECT count(*) FROM {name}", {}).rows[0][0] for name in names]  # noqa: S608 - names of our own
        widths = [len(self.query(f"SELECT * FROM {name} LIMIT 0", {}).columns) for name in names]  # noqa: S608 - as above
        return list(zip(names, counts, widths, strict=True))

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
        """Find the parts of a relation, and read its lines into memory."""
        lines = f"{_PRIVATE}.lines_of_{relation}"  # which has all columns, also those that no part has
        has_key = "CHECK (module IS NOT NULL AND read_at IS NOT NULL)"  # else the line is of another schema
        self._connection.execute(f"CREATE TABLE {lines} ({column_definitions(relation)}, {has_key})")
        groups: dict[int, list[str]] = {}  # by columns, of which parts of another version lack some or have more
        for path in self._store.parts_of(relation):
            if path.endswith(".parquet"):
                columns = "hash(list((name, type, converted_type, num_children)))"
                answer = self._answer(path, f"SELECT {columns} FROM parquet_schema({literal(path)})")  # noqa: S608 - our own
                if answer:
                    groups.setdefault(answer[0][0], []).append(path)
            else:
                answer = self._answer(path, f"INSERT INTO {lines} SELECT * FROM {line_source(relation, path)}")  # noqa: S608
            if answer:
                self._filled.add(relation)
        self._groups[relation] = [paths for paths in groups.values() if self._fits(lines, paths)]

    def _fits(self, lines: str, paths: Sequence[str]) -> bool:
        """Return True if parts of equal columns have the keys of rows and no column of another type; else keep their errors."""
        part = f"(DESCRIBE SELECT * FROM read_parquet({literal(paths[0])})) AS part"  # noqa: S608 - our own
        fits = "count_if(own.column_type <> part.column_type) = 0 AND count_if(column_name IN ('module', 'read_at')) = 2"
        both = f"(DESCRIBE {lines}) AS own JOIN {part} USING (column_name)"
        if self._connection.execute(f"SELECT {fits} FROM {both}").fetchall() == [(True,)]:  # noqa: S608 - our own
            return True
        self.damaged += map(self._store.fault, paths)
        return False

    def _answer(self, path: str, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement about one part. If that part is damaged, keep its error and return no rows."""
        import duckdb

        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        except duckdb.Error:
            self.damaged.append(self._store.fault(path))
            return []
        return rows

    def _leave_damaged_out(self) -> bool:
        """Leave out the parts whose rows cannot be read, and keep their errors. Return False if there are none."""
        before = len(self.damaged)
        rows = "SELECT bit_xor(hash(part)) FROM read_parquet({}) AS part"
        for relation, groups in self._groups.items():
            whole = [[path for path in paths if self._answer(path, rows.format(literal(path)))] for paths in groups]
            self._groups[relation] = [paths for paths in whole if paths]
        if len(self.damaged) > before:
            self._make_views()
        return len(self.damaged) > before

    def _make_whole_views(self) -> None:
        """Make the views, without the parts of `modules` whose keys cannot be read."""
        import duckdb

        try:
            self._make_views()
        except duckdb.Error:
            if not self._leave_damaged_out():
                raise

    def _make_views(self) -> None:
        """Make the views: all readings of a relation, and of each input the rows of its latest reading."""
        execute = self._connection.execute
        for relation, groups in self._groups.items():
            sources = [f"{_PRIVATE}.lines_of_{relation}", *(f"read_parquet({_list_of(paths)})" for paths in groups)]
            rows = " UNION ALL BY NAME ".join(f"SELECT * FROM {source}" for source in sources)  # noqa: S608 - our own names
            execute(f"CREATE OR REPLACE VIEW {_PRIVATE}.{relation} AS {rows}")
        last = "read_at = max(read_at) OVER (PARTITION BY input)"
        kept = f"SELECT DISTINCT module, read_at FROM {_PRIVATE}.modules QUALIFY {last} AND status <> 'empty'"  # noqa: S608 - our own
        execute(f"CREATE OR REPLACE TABLE {_PRIVATE}.latest AS {kept}")
        latest = f"(SELECT module, read_at FROM {_PRIVATE}.latest)"  # noqa: S608 - as above
        for relation in (MODULES, FINDINGS, *stored_tables()):
            rows = f"{_PRIVATE}.{relation} SEMI JOIN {latest} USING (module, read_at)"
            execute(f"CREATE OR REPLACE VIEW {relation} AS SELECT * FROM {rows}")  # noqa: S608 - as above


def _list_of(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"


def _may_be_damage(error: duckdb.Error) -> bool:
    """Return True for the errors that damaged pages of a part cause. A few errors of a query have these types too."""
    import duckdb

    return type(error) is duckdb.Error or isinstance(error, duckdb.IOException | duckdb.InvalidInputException)
