"""Inputs to the parts of a store: child processes read, this one writes.

    with Collection(store, plan, jobs=4) as collection:
        for counts in collection.collect(inputs): ...

A child that dies costs the input that it had. An equal text waits for the process that analyzes it, and repeats its figures.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from hlo_inspect.errors import InputError, Location, UsageError, internal_error_text
from hlo_inspect.fleet.analyses import Analyses
from hlo_inspect.fleet.inputs import FleetInput, absolute, label_pattern
from hlo_inspect.fleet.parts import Encoding, StoreRow
from hlo_inspect.fleet.reading import ModuleFigures, Reading, ReadingOptions, failed_reading, start_reading
from hlo_inspect.fleet.schema import FINDINGS, MODULES, STORE_SCHEMA
from hlo_inspect.fleet.store import Store
from hlo_inspect.hlo.input.dump_directory import stage_of
from hlo_inspect.inspection.jobs import Jobs, LostProcessError
from hlo_inspect.request import Request
from hlo_inspect.version import __version__

PART_MODULES, PART_ROWS, PART_SECONDS = 2000, 100_000, 60.0
"""The most modules, rows of findings and tables, and seconds of work of a part."""
FAILED = frozenset({"unreadable", "lost"})


class Counts(NamedTuple):
    """Counts of inputs: `read`, `equal` to another, `skipped`, `failed`, `lost`; of modules, and of the bytes of the inputs."""

    read: int = 0
    equal: int = 0
    skipped: int = 0
    failed: int = 0
    lost: int = 0
    modules: int = 0
    bytes: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sum of both."""
        return Counts(*map(sum, zip(self, other, strict=True)))


class Failure(NamedTuple):
    """An input or module that cannot be read, and why."""

    path: str
    message: str


class Plan(NamedTuple):
    """Plan of a run: request, tables, labels of all inputs and patterns of paths for others, form of parts, and name."""

    request: Request
    tables: tuple[str, ...]
    labels: Mapping[str, str]
    label_patterns: tuple[str, ...]
    encoding: Encoding
    run: str


class Collection:
    """Writer of a run into a store. It writes a part whenever it has enough rows, or one for each `begin_part`."""

    def __init__(
        self, store: Store, plan: Plan, *, jobs: int, has_threads: bool = False, analyses: Analyses | None = None
    ) -> None:
        """`analyses` are those of the run in this process, if other threads collect for it too."""
        self._store = store
        self._plan = plan
        self._part = ""
        self._parts = 0
        self._patterns = [label_pattern(text) for text in plan.label_patterns]
        self._analyses = analyses or Analyses()
        self._analyses.open()
        options = ReadingOptions(plan.request, plan.tables, self._analyses.claims)
        self._jobs: Jobs[FleetInput, Reading] = Jobs(jobs, partial(start_reading, options), has_threads=has_threads)
        self._rows: dict[str, list[StoreRow]] = {}
        self._written_at = time.monotonic()
        self._waiting: dict[str, list[tuple[FleetInput, Reading]]] = {}
        self._forced: deque[FleetInput] = deque()
        self._in_flight = 0
        self.counts = Counts()
        self.failures: deque[Failure] = deque()
        """Failures that the caller has not taken yet."""

    def __enter__(self) -> Collection:
        self._jobs.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None or not issubclass(kind, UsageError):  # which says that nothing can be written
            self.flush()

    def close(self) -> None:
        """End the child processes."""
        self._jobs.__exit__()
        self._analyses.close()

    def collect(self, inputs: Iterable[FleetInput]) -> Generator[Counts, None, None]:
        """Read the inputs and yield the counts after each."""
        for file, readings, failure in self._jobs.as_completed(self._feed(iter(inputs))):
            self._in_flight -= 1
            if isinstance(failure, UsageError):
                raise failure
            if failure is None:
                self._take(file, readings[0])
            else:
                for digest in self._analyses.release_claims_of(file.path):
                    self._forced += [waiting for waiting, _ in self._waiting.pop(digest, [])]
                message = str(failure) if isinstance(failure, LostProcessError) else internal_error_text(failure)
                out_of_memory = "the process that worked on it was out of memory"
                error = InputError(out_of_memory if isinstance(failure, MemoryError) else message, Location(file.path))
                lost = failed_reading(file.version, error, "lost")
                self._add(file, lost, lost.modules)
            self._flush_if_full()
            yield self.counts

    def begin_part(self, name: str) -> None:
        """Forget what is not written, and give the part that `flush` writes next a name. All counts begin anew."""
        self._part = name
        self._rows = {}
        self.counts = Counts()
        self.failures.clear()

    def flush(self) -> None:
        """Write what is collected so far as a part."""
        if self._rows:
            name = f"{self._plan.run}-{self._part or f'{self._parts:06d}'}"
            rows, self._rows = self._rows, {}
            self._store.write(name, rows, self._plan.encoding)
            self._parts += 1
        self._written_at = time.monotonic()

    def _feed(self, inputs: Iterator[FleetInput]) -> Iterator[FleetInput | None]:
        """Yield inputs to read: forced ones first. While equal texts wait for others, there is nothing to begin."""
        while True:
            following = self._forced.popleft() if self._forced else next(inputs, None)
            if following is not None:
                self._in_flight += 1
                yield following
            elif self._in_flight:
                yield None
            elif self._waiting:
                self._settle_waiting()
            else:
                return

    def _settle_waiting(self) -> None:
        """Take the analyses that another thread made meanwhile. Begin those that it has not finished, or dropped."""
        waiting, self._waiting = self._waiting, {}
        for digest, inputs in waiting.items():
            modules = self._analyses.get(digest)
            for file, reading in inputs:
                if modules is None:
                    self._forced.append(file._replace(is_forced=True))
                else:
                    self._add(file, reading, modules, is_equal=True)

    def _take(self, file: FleetInput, reading: Reading) -> None:
        digest = reading.digest
        if digest is None or not reading.is_equal:
            self._add(file, reading, reading.modules)
            if digest is not None:
                self._analyses.keep(digest, reading.modules)
                for equal_file, equal in self._waiting.pop(digest, []):
                    self._add(equal_file, equal, reading.modules, is_equal=True)
        elif (modules := self._analyses.get(digest)) is not None:
            self._add(file, reading, modules, is_equal=True)
        else:
            self._waiting.setdefault(digest, []).append((file, reading))

    def _add(self, file: FleetInput, reading: Reading, modules: list[ModuleFigures], *, is_equal: bool = False) -> None:
        """Add the rows of an input."""
        read_at = time.time_ns() // 1000
        for number, module in enumerate(modules):
            key = _key(file, reading, number)
            seconds = None if is_equal else module.seconds
            row = (key, *self._about(file, reading, module), seconds, read_at, module.bounds, *module.facts)
            self._rows.setdefault(MODULES, []).append(row)
            for relation, rows in ((FINDINGS, module.findings), *(module.tables or {}).items()):
                self._rows.setdefault(relation, []).extend(
                    (key, read_at, row_number, *cells) for row_number, cells in enumerate(rows)
                )
        self._count(file, reading, modules, is_equal=is_equal)

    def _about(self, file: FleetInput, reading: Reading, module: ModuleFigures) -> tuple[object, ...]:
        """Return the columns from `input` to `message`."""
        path, version, request = absolute(file.path), reading.version, self._plan.request
        place = (path, module.line, module.lines, module.bytes, version.size, version.changed, version.etag)
        program = (reading.sha256, module.name, stage_of(path) or None, module.platform, self._labels(path))
        made_by = (__version__, STORE_SCHEMA, [*request.pass_names, *request.also])
        return (*place, *program, *made_by, module.status, module.message)

    def _labels(self, path: str) -> dict[str, str]:
        """Return the labels of an input: those of all inputs, and those that patterns find in its path."""
        labels = dict(self._plan.labels)
        for pattern in self._patterns:
            match = pattern.fullmatch(path)
            labels |= match.groupdict() if match is not None else {}
        return labels

    def _count(self, file: FleetInput, reading: Reading, modules: list[ModuleFigures], *, is_equal: bool) -> None:
        failed = [module for module in modules if module.status in FAILED]
        self.failures += [Failure(file.path, module.message or "") for module in failed]
        is_lost = any(module.status == "lost" for module in failed)
        good = sum(module.status in {"ok", "partial"} for module in modules)
        size = reading.version.size or 0
        done = Counts(not is_equal, is_equal, 0, bool(failed), is_lost, good, size)
        self.counts = self.counts.plus(Counts(*map(int, done)))

    def _flush_if_full(self) -> None:
        if self._part:  # a chunk of a cluster is one part
            return
        rows = sum(map(len, self._rows.values()))
        is_due = time.monotonic() - self._written_at >= PART_SECONDS
        if rows >= PART_ROWS or len(self._rows.get(MODULES, ())) >= PART_MODULES or (is_due and rows):
            self.flush()


def _key(file: FleetInput, reading: Reading, number: int) -> str:
    """Return the key of a module: equal for all runs that read the same version of an input."""
    version = reading.version
    parts = (absolute(file.path), version.size, version.changed, version.etag, number)
    return blake2b("\0".join(map(str, parts)).encode(errors="surrogatepass"), digest_size=16).hexdigest()
