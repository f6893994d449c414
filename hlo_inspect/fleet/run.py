"""A run of `collect`: the inputs that the store lacks, by path, size, time of change and ETag, here or on a cluster."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.errors import HloInspectError, InputError
from hlo_inspect.fleet.collection import FAILED, Collection, Counts, Failure, Plan
from hlo_inspect.fleet.fleet_inputs import FleetInput, Shard, absolute, find_inputs, label_pattern, parse_assignments
from hlo_inspect.fleet.parts import best_encoding, connect, literal
from hlo_inspect.fleet.reading import ReadingOptions, prepare_reading
from hlo_inspect.fleet.schema import MODULES, check_tables, passes_of_tables, stored_tables
from hlo_inspect.fleet.store import Store
from hlo_inspect.passes import PASSES
from hlo_inspect.remote_files import FileVersion, is_address
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, number_of
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.request import Request
from hlo_inspect.version import HASHES, has_older_hashes

if TYPE_CHECKING:
    import duckdb

ALWAYS, ALSO = "summary", ("fingerprint", "memory")
"""The passes of every collection."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        request = replace(options.request, passes=passes, also=tuple(dict.fromkeys((*ALSO, *options.passes))), jobs=1)
        self._options = options
        self._asked = frozenset({*passes, *options.passes})
        self._lacking = 0
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
        self.notes: list[str] = []
        """Remarks on the store."""

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
        inputs = KnownInputs(self._store, retries_failed=self._options.retries_failed)
        self._plan = self._plan._replace(clock_shift=max(0, inputs.last_read_at + 1 - time.time_ns() // 1000))
        present = None if self._options.again else inputs
        if present is not None and present.lacks(self._asked):
            self._plan = _widened(self._plan, present.passes, self._store)
        self._collect(self._unread(present), take)
        if self._lacking:
            names = ", ".join(sorted(self._asked - {ALWAYS}))
            self.notes.append(f"{number_of(self._lacking, 'input')} of the store without all of {names}: read again")

    def _collect(self, inputs: Iterator[FleetInput], take: Callable[[Counts, list[Failure]], None]) -> None:
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

    def _unread(self, present: KnownInputs | None) -> Iterator[FleetInput]:
        """Yield the inputs that the store lacks, or lacks passes of; each path once if several arguments may have it."""
        if present is not None:
            for error in present.damaged:
                self._on_error(error)
            self.notes += [
                f"{HASHES}: the store has those of hlo-inspect {version}, which never equal those of this version; --again "
                "reads all inputs again"
                for version in sorted(filter(has_older_hashes, present.versions))
            ]
        overlap = len(self._options.inputs) > 1
        paths: set[bytes] = set()  # hashes, as of the inputs that are present: a path may be long
        for file in self._inputs(self._on_error):
            if overlap:
                path = path_hash(file.path)
                if path in paths:
                    continue
                paths.add(path)
            passes = present.passes_of(file) if present is not None else None
            if passes is not None and self._asked <= passes:
                self._skipped += 1
                continue
            self._lacking += passes is not None
            yield file


def _widened(plan: Plan, passes: Iterable[str], store: Store) -> Plan:
    """Return the plan with all passes and tables of the store: the latest reading of an input counts, and loses none."""
    request = plan.request
    also = tuple(dict.fromkeys((*request.also, *sorted(set(passes) - set(request.pass_names)))))
    tables = (*plan.tables, *(name for name in stored_tables() if name not in plan.tables and any(store.parts_of(name))))
    widened = replace(request, passes=(ALWAYS, *passes_of_tables(tables)), also=also)
    return plan._replace(request=widened, tables=tables)


class _Collected(NamedTuple):
    """The counts of a collection, and its seconds."""

    counts: Counts
    seconds: float


_COLLECTION = TableSpec("collection", "Inputs of the store", page_rows=0).with_columns(
    *(Column(name, "count", get=attrgetter(f"counts.{name}")) for name in Counts._fields if name != "bytes"),
    Column("bytes", "bytes", get=attrgetter("counts.bytes")),
    Column("seconds", "seconds"),
    Column("modules_per_s", "number", page_name="modules a second", get=lambda row: round(row.counts.modules / row.seconds, 1)),
)
TABLES = (_COLLECTION,)


def collection_report(store: str, counts: Counts, seconds: float, notes: Sequence[str] = ()) -> Report:
    """Return the closing table of a collection."""
    table = _COLLECTION.of([_Collected(counts, max(seconds, 1e-9))], title=f"{_COLLECTION.title} {store}")
    of_store = Input(store, first_line=1, lines=0, bytes=counts.bytes)
    return Report("collect", of_store, facts={}, tables=(table,), notes=tuple(notes))


class _InputReading(NamedTuple):
    """The time of a reading of an input, in microseconds, and its passes; None if it failed, when passes do not matter."""

    read_at: int
    passes: frozenset[str] | None


class KnownInputs:
    """Readings of the inputs in a store by hash, without failed ones if `retries_failed`.

    Inputs of `damaged` parts are read again.
    """

    def __init__(self, store: Store, *, retries_failed: bool) -> None:
        self._store = store
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._readings: dict[bytes, _InputReading] = {}
        self._read_at: dict[bytes, int] = {}
        """The time of the latest reading of each path: a file may be again what it was before that."""
        self.last_read_at = 0
        self.damaged: list[InputError] = []
        self.versions: set[str] = set()
        """The versions of hlo-inspect that read the inputs."""
        for path in store.parts_of(MODULES):
            try:
                rows = self._of_parquet(path) if path.endswith(".parquet") else self._of_lines(path)
            except InputError as error:
                self.damaged.append(error)
                continue
            readings: dict[tuple[int, tuple[str, ...], bool], _InputReading] = {}  # rows of a run share one
            for name, size, changed, etag, status, version, passes, read_at in rows:
                self.versions.add(str(version))
                self.last_read_at = max(self.last_read_at, read_at)
                path_key = path_hash(name)
                if self._read_at.get(path_key, 0) < read_at:
                    self._read_at[path_key] = read_at
                if retries_failed and status in FAILED:
                    continue
                key = read_at, tuple(passes or ()), status in FAILED
                reading = readings.setdefault(key, _InputReading(read_at, None if key[2] else frozenset(key[1])))
                place = _hash(name, FileVersion(size, changed, etag))
                if place not in self._readings or self._readings[place].read_at <= read_at:
                    self._readings[place] = reading

    @property
    def passes(self) -> frozenset[str]:
        """The passes of any of the inputs."""
        return frozenset(chain.from_iterable(reading.passes or () for reading in set(self._readings.values())))

    def lacks(self, passes: frozenset[str]) -> bool:
        """Return True if an input lacks one of the passes."""
        return any(reading.passes is not None and not passes <= reading.passes for reading in set(self._readings.values()))

    def passes_of(self, file: FleetInput) -> frozenset[str] | None:
        """Return the passes of this version of an input, all if it cannot be read; None if it is not the latest one."""
        path = absolute(file.path)
        reading = self._readings.get(_hash(path, file.version))
        if reading is None or reading.read_at < self._read_at.get(path_hash(path), 0):
            return None
        return frozenset(PASSES.names) if reading.passes is None else reading.passes

    def _of_parquet(self, path: str) -> list[tuple[Any, ...]]:
        """Return path, size, microseconds of the change, ETag, status, version, passes and microseconds of the reading.

        Raise InputError if the part is damaged.
        """
        if self._connection is None:
            self._connection = connect(self._store.root, threads=1)
        import duckdb

        columns = "input, input_bytes, epoch_us(changed), etag, status, tool_version, passes, coalesce(epoch_us(read_at), 0)"
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(
                f"SELECT {columns} FROM read_parquet({literal(path)})"  # noqa: S608 - columns of our own
            ).fetchall()
        except duckdb.Error as error:
            raise self._store.fault(path) from error
        return rows

    def _of_lines(self, path: str) -> list[tuple[Any, ...]]:
        """Return the same of a part of JSON lines, without DuckDB, which need not be installed."""
        lines = self._store.read(path).splitlines()
        try:
            return list(map(_input_of_line, lines))
        except (ValueError, AttributeError, TypeError, OverflowError, KeyError) as error:
            raise self._store.fault(path) from error


def path_hash(path: str) -> bytes:
    """Return the hash of a path or address."""
    return blake2b(path.encode(errors="backslashreplace"), digest_size=16).digest()


def _hash(path: str, version: FileVersion) -> bytes:
    return path_hash("\0".join(map(str, (path, *version))))


def _input_of_line(line: bytes) -> tuple[Any, ...]:
    row = json.loads(line)
    version = row["input"], row.get("input_bytes"), _microseconds(row.get("changed")), row.get("etag")
    return *version, row["status"], row.get("tool_version"), row.get("passes"), _microseconds(row.get("read_at")) or 0


def _microseconds(time: str | None) -> int | None:
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1) if time else None


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
