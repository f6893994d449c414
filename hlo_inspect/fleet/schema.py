"""The columns of a store: `modules`, `findings` and the tables.

They are those of all passes, whichever inputs or passes came first. A family of facts with a closed list of members has a
column for each member. An open family has one map from member to value. `docs/fleet.md` documents them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.fleet.table_columns import TABLE_COLUMNS
from hlo_inspect.passes import MODULE_FACTS, OTHERS, PASSES
from hlo_inspect.report.facts import Facts, fact_names, is_family, members_of
from hlo_inspect.report.model import FactSpec
from hlo_inspect.report.table import LOWER_BOUND, Plain, Unit, Value

STORE_SCHEMA = 1
"""The version of the layout and the columns. A store of a newer one is refused."""

Type = Literal["text", "int", "float", "bool", "time", "texts", "labels", "ints", "floats"]
"""The type of a column: a scalar, a list of texts, or a map from text to a scalar (`labels`, `ints`, `floats`)."""

MODULES, FINDINGS, TABLES = "modules", "findings", "tables"

MAX_INTEGER = (1 << 63) - 1


class StoreColumn(NamedTuple):
    """A column of a store."""

    name: str
    type: Type
    meaning: str = ""


MODULE_COLUMNS = (
    StoreColumn("module", "text", "key of the row: hash of input, size, time of change, ETag and position in the input"),
    StoreColumn("input", "text", "absolute path or address of the input"),
    StoreColumn("line", "int", "first line of the module in the input"),
    StoreColumn("lines", "int", "lines of the module"),
    StoreColumn("bytes", "int", "bytes of the module's text"),
    StoreColumn("input_bytes", "int", "size of the input as it is stored, compressed or not"),
    StoreColumn("changed", "time", "time of change of the input"),
    StoreColumn("etag", "text", "ETag or checksum of an object; null for a local file"),
    StoreColumn("sha256", "text", "SHA-256 of the decompressed input"),
    StoreColumn("name", "text", "name of the module, as the fact `module.name`"),
    StoreColumn("stage", "text", "stage in the name of a dump's file"),
    StoreColumn("platform", "text", "platform that the program was compiled for"),
    StoreColumn("labels", "labels", "labels of `--label` and `--label-from`"),
    StoreColumn("tool_version", "text", "version of hlo-inspect"),
    StoreColumn("schema_version", "int", "version of this schema"),
    StoreColumn("passes", "texts", "passes that were asked for"),
    StoreColumn("status", "text", "`ok`, `partial`, `unreadable`, `lost`, or `empty`: a text of a directory without a module"),
    StoreColumn("message", "text", "the error of an unreadable or lost input"),
    StoreColumn("seconds", "float", "seconds of the analysis; null if that of an equal input is repeated"),
    StoreColumn("read_at", "time", "time when the input was read; the latest reading of an input counts"),
    StoreColumn("lower_bounds", "floats", "lower bounds by the names of their facts, which are null"),
)
_OWNER = (
    StoreColumn("module", "text", "key of the module"),
    StoreColumn("read_at", "time", "time when the input was read"),
    StoreColumn("row", "int", "position among the rows of its module, from 0"),
)
FINDING_COLUMNS = (
    *_OWNER,
    StoreColumn("rule", "text", "code of the rule"),
    StoreColumn("name", "text", "name of the rule"),
    StoreColumn("severity", "text", "`error`, `warning` or `info`"),
    StoreColumn("message", "text"),
    StoreColumn("line", "int", "line in the input"),
    StoreColumn("column", "int", "column in the input"),
    StoreColumn("subject", "text", "instruction or parameter"),
    StoreColumn("stake", "float", "saving in one step on one device"),
    StoreColumn("stake_unit", "text", "`s`, `bytes` or `flops`"),
    StoreColumn("source", "text", "line of Python"),
    StoreColumn("op_name", "text"),
    StoreColumn("label", "text", "the finding without names and numbers of the dump"),
    StoreColumn("fingerprint", "text", "hash of the label"),
)
_TYPE_OF_UNIT: Mapping[Unit, Type] = {"text": "text", "bool": "bool", "count": "int", "bytes": "int", "flops": "int"}
_MAP_OF: Mapping[Type, Type] = {"text": "labels", "int": "ints", "float": "floats", "bool": "ints"}


class _FactColumn(NamedTuple):
    """A fact of a column: a single one, a member of a closed family, or an open family, whose members are in one map."""

    name: str
    spec: FactSpec
    type: Type
    is_member: bool
    is_map: bool


@cache
def fact_columns() -> tuple[_FactColumn, ...]:
    """Return the facts of all passes about modules, in the order of their specifications; none twice."""
    columns: dict[str, _FactColumn] = {}
    for pass_ in (OTHERS.load(MODULE_FACTS), *PASSES):
        for spec in pass_.specs:
            scalar = _TYPE_OF_UNIT.get(spec.unit, "float")
            is_map = is_family(spec) and spec.members is None
            type_, names = (_MAP_OF[scalar], [spec.name]) if is_map else (scalar, fact_names([spec]))
            for name in names:
                columns.setdefault(name, _FactColumn(name, spec, type_, is_family(spec) and not is_map, is_map))
    return tuple(columns.values())


@cache
def columns_of(relation: str) -> tuple[StoreColumn, ...]:
    """Return the columns of `modules`, `findings` or a table."""
    if relation == MODULES:
        return MODULE_COLUMNS + tuple(StoreColumn(fact.name, fact.type, fact.spec.meaning) for fact in fact_columns())
    if relation == FINDINGS:
        return FINDING_COLUMNS
    return _OWNER + tuple(StoreColumn(name, type_) for name, type_ in table_columns(relation).items())


@cache
def table_columns(table: str) -> Mapping[str, Type]:
    """Return the columns of a table of a report with their types. In a store the key of the module is before them."""
    types: dict[str, Type] = {"int": "int", "float": "float", "bool": "bool", "": "text"}
    words = (word.partition(":") for word in TABLE_COLUMNS[table].columns.split())
    return {name: types[kind] for name, _, kind in words}


def check_tables(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of tables, each once. Raise UsageError for an unknown one, with the nearest names."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in TABLE_COLUMNS:
            raise UsageError(f"no table {name!r}; there are: {', '.join(TABLE_COLUMNS)}{did_you_mean(name, TABLE_COLUMNS)}")
    return chosen


def passes_of_tables(tables: Iterable[str]) -> tuple[str, ...]:
    """Return the passes that make the tables."""
    return tuple(dict.fromkeys(TABLE_COLUMNS[table].pass_name for table in tables))


def fact_values(facts: Facts, answering: Iterable[FactSpec]) -> tuple[list[Any], dict[str, float]]:
    """Return the values of `fact_columns`, and the lower bounds by the names of their facts.

    A member of a family of the `answering` specifications that does not occur is 0. An integer above 2^63 - 1 is null, with
    that number as its lower bound.
    """
    answered = {spec.name for spec in answering}
    values: list[Any] = []
    bounds = {name.removesuffix(LOWER_BOUND): float(value or 0) for name, value in facts.items() if _is_bound(name, value)}
    in_maps = _map_members(facts)
    for column in fact_columns():
        value = facts.get(column.name)
        if column.is_map:
            values.append(in_maps.get(column.name, {}) if column.spec.name in answered else None)
        elif value is None:
            is_zero = column.is_member and column.spec.name in answered and column.name not in facts
            values.append(0 if is_zero else None)
        elif _overflows(value):
            bounds[column.name] = float(MAX_INTEGER)
            values.append(None)
        else:
            values.append(stored(value, column.type))
    return values, bounds


def _is_bound(name: str, value: Value) -> bool:
    return name.endswith(LOWER_BOUND) and isinstance(value, int | float)


def _overflows(value: Value) -> bool:
    return isinstance(value, int) and value > MAX_INTEGER


def _map_members(facts: Facts) -> dict[str, dict[str, Value]]:
    """Return the members of the open families that occur, by the name of the family's column."""
    maps: dict[str, dict[str, Value]] = {}
    for name, value in facts.items():
        if not name.endswith(LOWER_BOUND):
            for family, member in _members_of_maps(name):
                maps.setdefault(family, {})[member] = None if _overflows(value) else value
    return maps


@lru_cache(maxsize=10_000)
def _members_of_maps(name: str) -> list[tuple[str, str]]:
    """Return the open families that a fact is of, each with the member; none for the fact of a column."""
    singles, families = _singles_and_maps()
    if name in singles:
        return []
    return [(family.name, member or "") for family in families for member in members_of(name, family.spec)]


@cache
def _singles_and_maps() -> tuple[frozenset[str], tuple[_FactColumn, ...]]:
    columns = fact_columns()
    return frozenset(column.name for column in columns if not column.is_map), tuple(c for c in columns if c.is_map)


def stored(value: Plain, type_: Type) -> Plain:
    """Return a value in the type of its column; None for an integer that no column holds."""
    if value is None or isinstance(value, str):
        return value
    if type_ == "float":
        return float(value)
    if type_ == "int":
        return int(value) if abs(value) <= MAX_INTEGER else None
    return str(value) if type_ == "text" else value
