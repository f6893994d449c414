"""`collect`: facts of many modules into a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hlo_inspect.cli.options import (
    OutputOptions,
    SectionedCommand,
    comma_separated,
    inputs_argument,
    output_options,
    request_options,
)
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import on_terminal
from hlo_inspect.cli.streams import UNREADABLE, reported, tell
from hlo_inspect.errors import printable
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from rich.progress import Progress

    from hlo_inspect.fleet.collection import Counts, Failure

_SHOWN_FAILURES = 20
"""Failures that are printed; the store has all of them."""


@click.command("collect", cls=SectionedCommand)
@output_options()
@request_options("collect")
@click.option("--store", metavar="STORE", required=True, help="Write to this directory, local or remote.")
@click.option(
    "--tables", metavar="NAME,…", callback=comma_separated, help="Keep the rows of these tables, as collectives,params."
)
@click.option("--passes", metavar="NAME,…", callback=comma_separated, help="Add the facts of these passes, as time,optimizer.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="Label all inputs, for example build=123.")
@click.option(
    "--label-from",
    "label_patterns",
    metavar="PATTERN",
    multiple=True,
    help="Take labels from paths, for example 'dumps/{build}/{rank}/*'.",
)
@click.option(
    "--shard", metavar="N/COUNT", help="Read the inputs whose paths hash to N of COUNT, for job arrays: 1/64 to 64/64."
)
@click.option(
    "--cluster", metavar="ADDRESS|local", help="Read on a Dask cluster, as tcp://HOST:8786; needs the extra [cluster]."
)
@click.option("--retry-failed", "retries_failed", is_flag=True, help="Read again the inputs that failed before.")
@click.option("--again", is_flag=True, help="Read all inputs again, also those that the store has.")
@inputs_argument()
def collect(*, output: OutputOptions, request: Request, **options: Any) -> int:  # noqa: ANN401 - those of a run
    """Read any number of inputs and keep their facts in a store, which `query` answers from.

    STORE gets parts of Parquet with the extra [fleet], else of JSON lines. An input of the same path, size and time of change
    is not read again unless it lacks a pass of --passes or --tables. Equal texts are analyzed once. A process that dies costs
    the input that it had.

    -j is the number of processes, by default that of the cores that this process may use. With `--cluster local` it is the
    number of threads.
    """
    from hlo_inspect.fleet.run import CollectOptions, CollectRun, available_cores, collection_report

    is_default = click.get_current_context().get_parameter_source("jobs") is ParameterSource.DEFAULT
    jobs = available_cores() if is_default else request.jobs
    run_options = CollectOptions(request=request, jobs=jobs, **options)
    refuse_to_overwrite(output.output, run_options.inputs)
    statuses = [0]
    run = CollectRun(run_options, lambda error: statuses.append(reported(error)))
    begin = time.monotonic()
    shown = 0
    with CollectionBar(run.totals() if not output.quiet and on_terminal() else None, wanted=not output.quiet) as bar:

        def show(failures: list[Failure]) -> None:
            nonlocal shown
            for failure in failures:
                shown += 1
                if shown <= _SHOWN_FAILURES:
                    bar.tell(f"hlo-inspect: {printable(failure.path)}: {printable(failure.message)}")
            bar.update(run.counts)

        run.collect(show)
    if shown > _SHOWN_FAILURES:
        tell(f"hlo-inspect: {shown - _SHOWN_FAILURES:,} more; the store has them with status and message")
    statuses.append(UNREADABLE if run.counts.failed else 0)
    report = collection_report(run_options.store, run.counts, time.monotonic() - begin, run.notes)
    return max(deliver([report], output), *statuses)


class CollectionBar:
    """Progress bar of a collection, on a terminal: inputs, bytes and failures."""

    def __init__(self, totals: Counts | None, *, wanted: bool) -> None:
        self._totals = totals
        self._bar: Progress | None = None
        if wanted and on_terminal():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                DownloadColumn(),
                TimeElapsedColumn(),
            )
            # without its thread: processes are forked beside it
            self._bar = Progress(
                *columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False
            )
            self._task = self._bar.add_task("0 inputs", total=totals.bytes if totals is not None else None)
        self._shown_at = 0.0

    def __enter__(self) -> CollectionBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, counts: Counts) -> None:
        """Show the counts, ten times a second at most."""
        if self._bar is None or time.monotonic() - self._shown_at < 0.1:
            return
        self._shown_at = time.monotonic()
        done = counts.read + counts.equal + counts.skipped
        inputs = f"{done:,} of {self._totals.read:,} inputs" if self._totals is not None else f"{done:,} inputs"
        words = f"{inputs}, {counts.failed:,} failed" if counts.failed else inputs
        self._bar.update(self._task, description=words, completed=counts.bytes, refresh=True)

    def tell(self, message: str) -> None:
        """Print a message above the bar."""
        if self._bar is not None:
            self._bar.stop()
        tell(message)
        if self._bar is not None:
            self._bar.start()
