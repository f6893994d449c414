"""`query`: questions in SQL to a store of `collect`, or to the modules of an input."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_options
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.cli.streams import reported
from hlo_inspect.errors import UsageError
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.fleet.store import Store


@click.command("query", cls=SectionedCommand)
@output_options()
@request_options("query")
@click.option("--list", "lists", is_flag=True, help="List the named queries of stores with their parameters.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="Give a value to the parameter $NAME of the query."
)
@click.argument("source", metavar="STORE|INPUT", required=False)
@click.argument("sql", metavar="[SQL|NAME]", required=False)
def query(
    source: str | None, sql: str | None, *, lists: bool, settings: tuple[str, ...], output: OutputOptions, request: Request
) -> int:
    """Ask a store, or the modules of a dump, with SQL of DuckDB; needs the extra [fleet].

    The views of a store are `modules`, `findings`, and the tables that `collect --tables` kept; docs/fleet.md has their
    columns. Names of facts need double quotes: 'SELECT input, "collectives.count" FROM modules'. Instead of SQL, NAME is one of
    the queries that --list shows. Without either, the views are listed.

    Any other input is read, and its modules are tables: `instructions`, `operands`, `computations`, `calls`, `buffers`,
    `collectives`, `kernels`, `parameters`, `findings` and `modules`. docs/sql.md describes them and has queries. The column
    `module` is the number of the module in the input. Without SQL the tables and their columns are listed.

    A query is one SELECT statement. It can read these tables and nothing else, and cannot write.
    """
    from hlo_inspect.fleet.fleet_inputs import parse_assignments
    from hlo_inspect.fleet.query_reports import queries_report
    from hlo_inspect.fleet.store import Store

    if lists:
        return deliver([queries_report()], output)
    if source is None:
        raise click.UsageError("Missing argument 'STORE|INPUT'; --list shows the named queries.")
    values = parse_assignments("--set", settings)
    store = Store(source)
    if store.is_marked():
        request.refuse_options("stores, whose modules were read by `collect`")
        return _ask_store(store, sql, values, output)
    return _ask_modules(source, sql, values, output, request)


def _ask_store(store: Store, sql: str | None, values: Mapping[str, str], output: OutputOptions) -> int:
    from hlo_inspect.fleet.database import Database
    from hlo_inspect.fleet.query_reports import find_query, query_report, views_report

    named = find_query(sql) if sql is not None and _is_name(sql) else None
    with closing(Database(store)) as database:
        if sql is None:
            report = views_report(store.root, database)
        else:
            title = named.summary.partition(". ")[0].rstrip(".") if named is not None else "Rows"
            statement = named.sql if named is not None else sql
            result = database.query(statement, values)
            report = query_report(store.root, title, result, database.notes_on_hashes(statement, result))
        return max([deliver([report], output), *map(reported, database.damaged)])


def _ask_modules(source: str, sql: str | None, values: Mapping[str, str], output: OutputOptions, request: Request) -> int:
    from hlo_inspect.fleet.module_database import ModuleDatabase
    from hlo_inspect.fleet.query_reports import query_report, tables_report

    if sql is not None and _is_name(sql):
        raise UsageError(f"{sql!r} is no SQL; named queries are for stores of `collect`, and {source} is none")
    with closing(ModuleDatabase(sql)) as database:
        if sql is not None:
            database.check(sql, values)
        request = replace(request, passes=database.passes, jobs=1)
        inspected = ReportStream((source,), request, output, every_rule=True, sink=database.add)
        for _ in inspected:
            pass
        if not database.count:
            return inspected.status
        if sql is None:
            report = tables_report(source, database)
        else:
            report = query_report(source, "Rows", database.query(sql, values), database.notes)
        return max(deliver([replace(report, headline=tuple(database.headline))], output), inspected.status)


def _is_name(sql: str) -> bool:
    """Return True for a text that can only be the name of a query."""
    return sql.replace("-", "").replace("_", "").isalnum()
