"""Parts of a store as bytes: JSON lines, which DuckDB turns into Parquet if the extra `[fleet]` is installed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from hlo_inspect.errors import MissingExtraError, UsageError
from hlo_inspect.fleet.schema import StoreColumn, Type, columns_of
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import is_address, remote_file_system

if TYPE_CHECKING:
    import duckdb

Encoding = Literal["parquet", "jsonl"]
StoreRow = Sequence[Any]
"""A row of a part: maps are dicts, times are microseconds since 1970 in UTC."""

LONGEST_LINE = 1 << 26
"""Bytes of the longest JSON line that `query` reads. DuckDB reserves two of them for a thread, and fills what lines need."""
_LEAST_BUFFER = 1 << 20

_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_TYPES: Mapping[Type, str] = {
    "text": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "time": "TIMESTAMPTZ",
    "texts": "VARCHAR[]",
    "labels": "MAP(VARCHAR, VARCHAR)",
    "ints": "MAP(VARCHAR, BIGINT)",
    "floats": "MAP(VARCHAR, DOUBLE)",
}


def best_encoding() -> Encoding:
    """Return Parquet if DuckDB is installed, else JSON lines."""
    return "parquet" if find_spec("duckdb") is not None else "jsonl"


def encode(relation: str, rows: Iterable[StoreRow], encoding: Encoding) -> bytes:
    """Return a part with these rows of `modules`, `findings` or a table. Raise UsageError if the disk is full."""
    lines = _json_lines(columns_of(relation), rows)
    if encoding == "jsonl":
        return b"".join(lines)
    import duckdb

    try:
        with TemporaryDirectory(prefix="hlo-inspect-") as folder, closing(connect(threads=1)) as connection:
            source, part = Path(folder, "part.jsonl"), Path(folder, "part.parquet")
            with source.open("wb") as stream:
                longest = max(map(stream.write, lines))
            selected = f"SELECT * FROM {line_source(relation, str(source), longest)}"  # noqa: S608 - names of our own
            connection.execute(f"COPY ({selected}) TO {literal(str(part))} (FORMAT parquet, COMPRESSION zstd)")
            return part.read_bytes()
    except (OSError, duckdb.IOException) as error:
        raise UsageError(f"a temporary file cannot be written: {getattr(error, 'strerror', None) or error}") from error


def connect(root: str = "", **config: int) -> duckdb.DuckDBPyConnection:
    """Return an empty database in memory that reads files of a store."""
    require_fleet("Parquet")
    import duckdb

    fixed = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "temp_directory": ""}
    connection = duckdb.connect(":memory:", config={**fixed, **config})
    if is_address(root):
        connection.register_filesystem(remote_file_system(root)[0])
    return connection


def line_source(relation: str, path: str, longest: int = LONGEST_LINE) -> str:
    """Return the function of SQL that reads a part of JSON lines of at most `longest` bytes."""
    columns = ", ".join(f"{literal(column.name)}: {literal(_TYPES[column.type])}" for column in columns_of(relation))
    options = f"format='newline_delimited', maximum_object_size={max(longest + 1, _LEAST_BUFFER)}"
    return f"read_json({literal(path)}, columns={{{columns}}}, {options})"


def column_definitions(columns: Iterable[StoreColumn]) -> str:
    """Return names and types of columns in SQL."""
    return ", ".join(f'"{column.name}" {_TYPES[column.type]}' for column in columns)


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def require_fleet(purpose: str) -> None:
    """Raise MissingExtraError, which begins with `purpose`, unless DuckDB is installed."""
    if find_spec("duckdb") is None:
        raise MissingExtraError(f"{purpose} needs the extra [fleet]: pip install duckdb")


def _json_lines(columns: Sequence[StoreColumn], rows: Iterable[StoreRow]) -> Iterator[bytes]:
    names = [column.name for column in columns]
    times = [column.name for column in columns if column.type == "time"]
    maps = [column.name for column in columns if column.type in {"labels", "ints", "floats"}]
    for row in rows:
        fields = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for name in times:
            if name in fields:
                time = datetime.fromtimestamp(fields[name] / 1_000_000, UTC)
                fields[name] = time.isoformat(timespec="microseconds")
        for name in maps:
            if name in fields:
                fields[name] = dict(sorted(fields[name].items()))
        try:
            line = _JSON(fields)
        except ValueError:
            line = _JSON(plain(fields))
        try:
            yield line.encode() + b"\n"
        except UnicodeEncodeError:  # a byte of a path that is no UTF-8 becomes text, as in `path_hash`
            yield _SURROGATE.sub(lambda match: f"\\\\u{ord(match[0]):04x}", line).encode() + b"\n"


def printable_text(text: str) -> str:
    """Return a text without halves of surrogates, which DuckDB refuses; each becomes its number."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def plain(value: Any) -> Any:  # noqa: ANN401 - a value of any column, or all fields
    """Return a value as JSON has it: text for infinity, NaN and other types."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
