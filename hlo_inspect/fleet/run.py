"""A run of `collect`: the inputs that the store lacks, on this machine or on a cluster."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hlo_inspect.errors import HloInspectError
from hlo_inspect.fleet.collection import Collection, Counts, Failure, Plan
from hlo_inspect.fleet.inputs import FleetInput, Shard, find_inputs, label_pattern, parse_assignments
from hlo_inspect.fleet.parts import best_encoding
from hlo_inspect.fleet.reading import ReadingOptions, prepare_reading
from hlo_inspect.fleet.resumption import KnownInputs, path_hash
from hlo_inspect.fleet.schema import check_tables, passes_of_tables
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import is_address
from hlo_inspect.request import Request

ALWAYS, ALSO = "summary", "fingerprint"
"""The passes of every collection."""


class CollectOptions(NamedTuple):
    """Options of a run, as the command line has them. `jobs` is the number of processes; `cluster` an address or `local`."""

    inputs: tuple[str, ...]
    store: str
    request: Request
    jobs: int = 1
    tables: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_patterns: tuple[str, ...] = ()
    shard: str | None = None
    cluster: str | None = None
    again: bool = False
    retries_failed: bool = False


class CollectRun:
    """A run with checked options. Raise UsageError for options that make no sense, before anything is written."""

    def __init__(self, options: CollectOptions, on_error: Callable[[HloInspectError], None]) -> None:
        tables = check_tables(options.tables)
        passes = (ALWAYS, *passes_of_tables(tables))
        request = replace(options.request, passes=passes, also=(ALSO, *options.passes), jobs=1)
        self._options = options
        self._on_error = on_error
        self._shard = Shard.parse(options.shard) if options.shard is not None else Shard()
        for text in options.label_patterns:
            label_pattern(text)
        run = secrets.token_hex(6)
        self._plan = Plan(
            request, tables, parse_assignments("--label", options.labels), options.label_patterns, best_encoding(), run
        )
        prepare_reading(ReadingOptions(request, tables))
        self._store = Store(options.store)
        self._counts = Counts()
        self._skipped = 0

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return self._counts._replace(skipped=self._skipped)

    def collect(self, on_step: Callable[[list[Failure]], None]) -> None:
        """Read the inputs; after each tell what failed since the last one. `counts` has the counts so far."""

        def take(counts: Counts, failures: list[Failure]) -> None:
            self._counts = counts
            on_step(failures)

        self._store.create()
        inputs = self._unread()
        if self._options.cluster is not None:
            from hlo_inspect.fleet.cluster import collect_on_cluster

            for counts, failures in collect_on_cluster(
                self._options.cluster, self._options.jobs, self._store, self._plan, inputs
            ):
                take(counts, failures)
            return
        jobs, has_threads = self._options.jobs, self._is_remote()
        with Collection(self._store, self._plan, jobs=jobs, has_threads=has_threads, on_added=take) as collection:
            collection.collect(inputs)

    def totals(self) -> Counts | None:
        """Return number and bytes of local inputs, None if one is remote. Listing a bucket twice is not worth a bar."""
        if self._is_remote():
            return None
        sizes = [file.version.size or 0 for file in self._inputs(lambda _: None)]
        return Counts(read=len(sizes), bytes=sum(sizes))

    def _is_remote(self) -> bool:
        return any(map(is_address, (*self._options.inputs, self._options.store)))

    def _inputs(self, on_error: Callable[[HloInspectError], None]) -> Iterator[FleetInput]:
        for item in find_inputs(self._options.inputs, self._options.request.stage, self._shard):
            if isinstance(item, HloInspectError):
                on_error(item)
            else:
                yield item

    def _unread(self) -> Iterator[FleetInput]:
        """Yield the inputs that the store lacks, each path once if several arguments may have it."""
        present = None if self._options.again else KnownInputs(self._store, retries_failed=self._options.retries_failed)
        for error in present.damaged if present is not None else ():
            self._on_error(error)
        overlap = len(self._options.inputs) > 1
        paths: set[bytes] = set()  # hashes, as of the inputs that are present: a path may be long
        for file in self._inputs(self._on_error):
            if overlap:
                path = path_hash(file.path)
                if path in paths:
                    continue
                paths.add(path)
            if present is not None and present.holds(file):
                self._skipped += 1
            else:
                yield file


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
