"""The columns of a store: `modules`, `findings` and the tables.

They are those of all passes, whichever inputs or passes came first. A family of facts with a closed list of members has a
column for each member. An open family has one map from member to value. `docs/fleet.md` documents them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.passes import MODULE_FACTS, OTHERS, PASSES, PassTable, pass_tables
from hlo_inspect.report.facts import Facts, exact_name, fact_names, is_family, members_of
from hlo_inspect.report.model import FactSpec
from hlo_inspect.report.table import LOWER_BOUND, UPPER_BOUND, Bound, Plain, Unit, Value
from hlo_inspect.report.table_spec import TableSpec

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
    StoreColumn("upper_bounds", "floats", "upper bounds by the names of their facts, which are null"),
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
    return _OWNER + tuple(StoreColumn(column.name, column.type) for column in table_columns(relation))


class TableColumn(NamedTuple):
    """A column of a table in a store: the values of the column `of` of a report, or a bound of them."""

    name: str
    type: Type
    of: str
    bound: Bound = ""


@cache
def stored_tables() -> Mapping[str, PassTable]:
    """Return the tables that a store can keep, by name."""
    return {name: table for name, table in pass_tables().items() if table.spec.in_store}


@cache
def table_columns(table: str) -> tuple[TableColumn, ...]:
    """Return all columns that a table of a report can have. In a store the key of the module is before them."""
    return spec_columns(stored_tables()[table].spec)


def spec_columns(spec: TableSpec) -> tuple[TableColumn, ...]:
    """Return all columns that a table can have, each followed by its bounds."""
    columns: list[TableColumn] = []
    for column in spec.columns:
        type_: Type = _TYPE_OF_UNIT.get(column.unit, "int" if column.unit == "number" and not column.real else "float")
        columns.append(TableColumn(column.name, type_, column.name))
        if column.bounded:
            columns.append(TableColumn(f"{column.name}_lower_bound", type_, column.name, "lower"))
            columns.append(TableColumn(f"{column.name}_upper_bound", type_, column.name, "upper"))
    return tuple(columns)


def check_tables(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of tables, each once. Raise UsageError for an unknown one, with the nearest names."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in stored_tables():
            raise UsageError(f"no table {name!r}; there are: {', '.join(stored_tables())}{did_you_mean(name, stored_tables())}")
    return chosen


def passes_of_tables(tables: Iterable[str]) -> tuple[str, ...]:
    """Return the passes that make the tables."""
    return tuple(dict.fromkeys(stored_tables()[table].pass_name for table in tables))


class FactValues(NamedTuple):
    """The values of `fact_columns`, and the bounds by the names of their facts."""

    values: list[Any]
    lower_bounds: dict[str, float]
    upper_bounds: dict[str, float]


def fact_values(facts: Facts, answering: Iterable[FactSpec]) -> FactValues:
    """Return the values of the facts for a row of `modules`.

    A member of a family of the `answering` specifications that does not occur is 0. An integer above 2^63 - 1 is null, with
    that number as its lower bound.
    """
    answered = {spec.name for spec in answering}
    values: list[Any] = []
    bounds, limits = _bounds(facts, LOWER_BOUND), _bounds(facts, UPPER_BOUND)
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
    return FactValues(values, bounds, limits)


def _bounds(facts: Facts, suffix: str) -> dict[str, float]:
    named = ((name, value) for name, value in facts.items() if name.endswith(suffix) and isinstance(value, int | float))
    return {name.removesuffix(suffix): float(value) for name, value in named}


def _overflows(value: Value) -> bool:
    return isinstance(value, int) and value > MAX_INTEGER


def _map_members(facts: Facts) -> dict[str, dict[str, Value]]:
    """Return the members of the open families that occur, by the name of the family's column."""
    maps: dict[str, dict[str, Value]] = {}
    for name, value in facts.items():
        if exact_name(name) == name:
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
