"""The named queries: SQL files in `configs/queries`, with their documentation in comments at the beginning."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hlo_inspect.configs import shipped_configs
from hlo_inspect.errors import UsageError, did_you_mean


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
