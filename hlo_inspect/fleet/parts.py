"""Parts of a store as bytes: Parquet with the extra `[fleet]`, JSON lines without it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from hlo_inspect.errors import InputError, Location, MissingExtraError
from hlo_inspect.fleet.schema import StoreColumn, Type, columns_of

if TYPE_CHECKING:
    import pyarrow

Encoding = Literal["parquet", "jsonl"]
StoreRow = Sequence[Any]
"""A row of a part: maps are dicts, times are microseconds since 1970 in UTC."""

_JSON = json.JSONEncoder(separators=(",", ":")).encode
_MAPS = frozenset({"labels", "ints", "floats"})


def best_encoding() -> Encoding:
    """Return Parquet if pyarrow is installed, else JSON lines."""
    return "parquet" if find_spec("pyarrow") is not None else "jsonl"


def encode(relation: str, rows: Iterable[StoreRow], encoding: Encoding) -> bytes:
    """Return a part with these rows of `modules`, `findings` or a table."""
    columns = columns_of(relation)
    if encoding == "jsonl":
        return "".join(_json_line(columns, row) for row in rows).encode()
    import pyarrow
    from pyarrow import parquet

    values = zip(*rows, strict=True)
    schema = arrow_schema(relation)
    arrays = [
        pyarrow.array([_arrow_value(value, column.type) for value in cells], field.type)
        for column, field, cells in zip(columns, schema, values, strict=True)
    ]
    stream = BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), stream, compression="zstd")
    return stream.getvalue()


def decode(relation: str, data: bytes, name: str, wanted: Sequence[str] | None = None) -> Iterator[list[Any]]:
    """Yield the rows of a part, with the `wanted` columns or all. Raise InputError if it is damaged."""
    if name.endswith(".jsonl"):
        yield from _rows_of_lines(relation, data, name, wanted)
        return
    table = read_parquet(data, name, wanted or [column.name for column in columns_of(relation)])
    yield from (list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


def read_parquet(data: bytes, name: str, wanted: Sequence[str]) -> pyarrow.Table:
    """Read columns of a Parquet part. Raise InputError if it is damaged, MissingExtraError without pyarrow."""
    require_fleet("reading Parquet")
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(BytesIO(data)).read(columns=list(wanted))
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(name) from error
    return table.select(list(wanted))


def table_of_lines(relation: str, data: bytes, name: str) -> pyarrow.Table:
    """Return the rows of a part of JSON lines as a table of Arrow."""
    import pyarrow

    rows = list(_rows_of_lines(relation, data, name, None))
    cells: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(columns_of(relation))
    schema = arrow_schema(relation)
    arrays = [
        pyarrow.array([_arrow_value(value, column.type) for value in values], field.type)
        for column, field, values in zip(columns_of(relation), schema, cells, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def arrow_schema(relation: str) -> pyarrow.Schema:
    """Return the schema of `modules`, `findings` or a table in types of Arrow."""
    import pyarrow

    text = pyarrow.string()
    types: dict[Type, Any] = {
        "text": text,
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "time": pyarrow.timestamp("us", "UTC"),
        "texts": pyarrow.list_(text),
        "labels": pyarrow.map_(text, text),
        "ints": pyarrow.map_(text, pyarrow.int64()),
        "floats": pyarrow.map_(text, pyarrow.float64()),
    }
    return pyarrow.schema([(column.name, types[column.type]) for column in columns_of(relation)])


def require_fleet(purpose: str) -> None:
    """Raise MissingExtraError, which begins with `purpose`, unless pyarrow and DuckDB are installed."""
    missing = [name for name in ("pyarrow", "duckdb") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{purpose} needs the extra [fleet]: pip install {' '.join(missing)}")


def damaged(name: str) -> InputError:
    """Return the error of a part that is truncated or no part."""
    return InputError("is a damaged part of the store; remove it and collect its inputs again", Location(name))


def _arrow_value(value: Any, type_: Type) -> Any:  # noqa: ANN401 - a value of any column
    return sorted(value.items()) if value is not None and type_ in _MAPS else value


def _json_line(columns: Sequence[StoreColumn], row: StoreRow) -> str:
    cells = zip(columns, row, strict=True)
    return _JSON({column.name: _json_value(value, column.type) for column, value in cells if value is not None}) + "\n"


def _json_value(value: Any, type_: Type) -> Any:  # noqa: ANN401 - a value of any column
    if type_ == "time":
        return datetime.fromtimestamp(value / 1_000_000, UTC).isoformat(timespec="microseconds")
    if type_ == "float" and value - value != 0:  # JSON has neither infinity nor NaN
        return str(value)
    return value


def _rows_of_lines(relation: str, data: bytes, name: str, wanted: Sequence[str] | None) -> Iterator[list[Any]]:
    columns = [column for column in columns_of(relation) if wanted is None or column.name in wanted]
    if data and not data.endswith(b"\n"):
        raise damaged(name)
    for line in data.splitlines():
        try:
            fields = json.loads(line)
            yield [_read_value(fields.get(column.name), column.type) for column in columns]
        except (ValueError, AttributeError, TypeError, OverflowError) as error:
            raise damaged(name) from error


def _read_value(value: Any, type_: Type) -> Any:  # noqa: ANN401 - a value of any column
    if value is None:
        return None
    if type_ == "time":
        return datetime.fromisoformat(value)
    return float(value) if type_ == "float" else value
