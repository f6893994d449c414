"""Small dumps, and the rows of stores as the tests read them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hlo_inspect.fleet.parts import connect, literal
from hlo_inspect.fleet.schema import MODULES, columns_of
from hlo_inspect.fleet.store import Store
from tests.calling import call_text

TIMES = frozenset({"seconds", "read_at"})
"""Columns that differ from run to run."""


def text_of(name: str, size: int = 4) -> str:
    """Return a module that adds a parameter of `size` floats to itself. Another one of 2 floats is unused."""
    array = f"f32[{size}]{{0}}"
    return (
        f"HloModule {name}, is_scheduled=true, entry_computation_layout={{({array}, f32[2]{{0}})->{array}}}\n\n"
        f"ENTRY %main (p: f32[{size}], q: f32[2]) -> f32[{size}] {{\n"
        f"  %p = {array} parameter(0)\n"
        f"  %q = f32[2]{{0}} parameter(1)\n"
        f"  ROOT %sum = {array} add({array} %p, {array} %p)\n}}\n"
    )


def write_job(folder: Path, ranks: int = 2, modules: int = 2) -> Path:
    """Write the dumps of a job below `folder`: equal on all ranks, module n with n + 1 floats."""
    for rank in range(ranks):
        directory = folder / "build7" / str(rank)
        directory.mkdir(parents=True)
        for number in range(modules):
            name = f"module_{number:04d}.jit_f{number}.cpu_after_optimizations.txt"
            (directory / name).write_text(text_of(f"jit_f{number}", number + 1))
    return folder


def collect(store: Path | str, *arguments: Path | str, status: int = 0) -> tuple[dict[str, int], str]:
    """Run `collect` with one process; return the closing table and the text on standard error."""
    done = call_text("collect", "-j", "1", *arguments, "--store", store, "--format", "csv")
    assert done.returncode == status, done.stderr
    names, values = (line.split(",") for line in done.stdout.splitlines())
    return dict(zip(names, (int(float(value)) for value in values), strict=True)), done.stderr


def raw_rows(store: Path | str, relation: str = MODULES) -> list[dict[str, Any]]:
    """Return all rows of the parts of a relation."""
    opened = Store(str(store))
    return [row for path in opened.parts_of(relation) for row in _rows_of(opened, path, relation)]


def _rows_of(store: Store, path: str, relation: str) -> Iterator[dict[str, Any]]:
    types = {column.name: column.type for column in columns_of(relation)}
    if path.endswith(".parquet"):
        with closing(connect(store.root)) as connection:
            cursor = connection.execute(f"SELECT * FROM read_parquet({literal(path)})")  # noqa: S608 - a path of the test
            names = [column[0] for column in cursor.description or []]
            assert names == [name for name in types if name in names]  # a part of an older version lacks some
            yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
        return
    for line in store.read(path).splitlines():
        row = dict.fromkeys(types) | json.loads(line)
        yield {
            name: datetime.fromisoformat(row[name]) if type_ == "time" and row[name] else row[name]
            for name, type_ in types.items()
        }


def comparable(store: Path | str, relation: str = MODULES) -> Counter[str]:
    """Return the rows of a relation as a multiset, without seconds and times."""
    return Counter(
        str([(name, _plain(value)) for name, value in row.items() if name not in TIMES]) for row in raw_rows(store, relation)
    )


def _plain(value: object) -> object:
    """Return a value as both encodings have it: maps as sorted pairs, times as texts."""
    if isinstance(value, dict):
        return sorted(value.items())
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def ask(store: Path | str, sql: str, *arguments: str) -> list[str]:
    """Return the lines of the answer of `query`, without the heading."""
    done = call_text("query", store, sql, "--format", "csv", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1:]
