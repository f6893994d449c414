"""`query`: questions to a store of `collect`, in SQL."""

from __future__ import annotations

from contextlib import closing

import click

from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_option
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.streams import reported
from hlo_inspect.remote_servers import limit_waits


@click.command("query", cls=SectionedCommand)
@output_options()
@click.option("--list", "lists", is_flag=True, help="List the named queries with their parameters.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="Give a value to the parameter $NAME of the query."
)
@request_option("remote_timeout")
@click.argument("store", metavar="STORE", required=False)
@click.argument("sql", metavar="[SQL|NAME]", required=False)
def query(
    store: str | None,
    sql: str | None,
    *,
    lists: bool,
    settings: tuple[str, ...],
    remote_timeout: int,
    output: OutputOptions,
) -> int:
    """Ask a store with SQL of DuckDB; needs the extra [fleet].

    The views are `modules`, `findings`, and the tables that `collect --tables` kept; docs/fleet.md has their columns. Names of
    facts need double quotes: 'SELECT input, "collectives.count" FROM modules'. Instead of SQL, NAME is one of the queries that
    --list shows. Without either, the views are listed.

    A query is one SELECT statement. It can read the store and nothing else, and cannot write.
    """
    from hlo_inspect.fleet.database import Database
    from hlo_inspect.fleet.fleet_inputs import parse_assignments
    from hlo_inspect.fleet.query_reports import find_query, queries_report, query_report, views_report
    from hlo_inspect.fleet.store import Store

    limit_waits(remote_timeout)
    if lists:
        return deliver([queries_report()], output)
    if store is None:
        raise click.UsageError("Missing argument 'STORE'; --list shows the named queries.")
    values = parse_assignments("--set", settings)
    named = find_query(sql) if sql is not None and sql.replace("-", "").replace("_", "").isalnum() else None
    with closing(Database(Store(store))) as database:
        if sql is None:
            report = views_report(store, database)
        else:
            title = named.summary.partition(". ")[0].rstrip(".") if named is not None else "Rows"
            statement = named.sql if named is not None else sql
            result = database.query(statement, values)
            report = query_report(store, title, result, database.notes_on_hashes(statement, result))
        return max([deliver([report], output), *map(reported, database.damaged)])
