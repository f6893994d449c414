"""Inputs to the parts of a store: child processes analyze, this one lists, hashes and writes.

    with Collection(store, plan, jobs=4) as collection:
        collection.collect(inputs)

A child that dies costs the input that it had. Of equal texts one is analyzed, and the others repeat its figures.
"""

from __future__ import annotations

import pickle
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple

from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError, internal_error_text
from hlo_inspect.fleet.fleet_inputs import FleetInput, absolute, label_pattern
from hlo_inspect.fleet.input_texts import InputText, read_texts, text_or_error
from hlo_inspect.fleet.parts import Encoding, StoreRow
from hlo_inspect.fleet.reading import ModuleFigures, ReadingOptions, failed_figures, start_reading
from hlo_inspect.fleet.schema import FINDINGS, MODULES, STORE_SCHEMA
from hlo_inspect.fleet.store import Store
from hlo_inspect.hlo.input.dump_directory import stage_of
from hlo_inspect.inspection.jobs import Jobs, LostProcessError
from hlo_inspect.remote_files import FileVersion
from hlo_inspect.request import Request
from hlo_inspect.version import __version__

PART_MODULES, PART_ROWS, PART_SECONDS = 2000, 100_000, 60.0
"""The most modules, rows of findings and tables, and seconds of work of a part."""
CACHE_BYTES = 1 << 26
"""Bytes of packed analyses that are kept for equal texts: a small module takes 400, and 13,000 as objects."""
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
    """Plan of a run: request, tables, labels of all inputs and patterns of paths for others, form of parts, and name.

    `clock_shift` is the microseconds that the clock is behind the readings of the store: a later reading has a later time.
    """

    request: Request
    tables: tuple[str, ...]
    labels: Mapping[str, str]
    label_patterns: tuple[str, ...]
    encoding: Encoding
    run: str
    clock_shift: int = 0


class Analyses:
    """Analyses by digest. Threads of a process that collect for one run share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes = 0
        self._by_digest: OrderedDict[str, bytes] = OrderedDict()

    def get(self, digest: str | None) -> list[ModuleFigures] | None:
        """Return the analysis of a text, None if there is none yet or no longer."""
        packed = self._by_digest.get(digest or "")
        if packed is None:
            return None
        modules: list[ModuleFigures] = pickle.loads(zlib.decompress(packed))  # noqa: S301 - packed by `keep`
        return modules

    def keep(self, digest: str, modules: list[ModuleFigures]) -> None:
        """Keep an analysis for equal texts; drop the oldest ones above `CACHE_BYTES`, which are then analyzed again."""
        packed = zlib.compress(pickle.dumps(modules), 1)
        with self._lock:
            self._bytes += len(packed) - len(self._by_digest.get(digest, b""))
            self._by_digest[digest] = packed
            while self._bytes > CACHE_BYTES and len(self._by_digest) > 1:
                _, oldest = self._by_digest.popitem(last=False)
                self._bytes -= len(oldest)


class Collection:
    """Writer of a run into a store. It writes a part whenever it has enough rows, or one for each `begin_part`."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        *,
        jobs: int,
        has_threads: bool = False,
        analyses: Analyses | None = None,
        on_added: Callable[[Counts, list[Failure]], None] | None = None,
    ) -> None:
        """`analyses` are those of other threads that collect for the run too; `on_added` gets the counts and new failures."""
        self._store = store
        self._plan = plan
        self._part = ""
        self._parts = 0
        self._patterns = [label_pattern(text) for text in plan.label_patterns]
        self._analyses = analyses or Analyses()
        self._on_added = on_added
        options = ReadingOptions(plan.request, plan.tables)
        self._jobs: Jobs[InputText, list[ModuleFigures] | FileVersion] = Jobs(
            jobs, partial(start_reading, options), has_threads=has_threads
        )
        self._threads = 2 * jobs if has_threads else 0
        self._rows: dict[str, list[StoreRow]] = {}
        self._written_at = time.monotonic()
        self.counts = Counts()
        self.failures: list[Failure] = []
        """Failures that `on_added` has not got."""

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

    def collect(self, inputs: Iterable[FleetInput]) -> None:
        """Read the inputs and add their rows."""
        self._equal: dict[str, list[InputText]] = {}  # the other texts of each digest that is analyzed now
        self._again: deque[FleetInput] = deque()
        self._in_flight = 0
        texts = read_texts(iter(inputs), self._threads)
        for text, results, failure in self._jobs.as_completed(self._to_analyze(texts)):
            self._in_flight -= 1
            equal = self._equal.pop(text.digest or "", [])
            result = results[0] if failure is None else failure
            if isinstance(result, list):
                self._add(text, result)
                if text.digest is not None:
                    self._analyses.keep(text.digest, result)
                for other in equal:
                    self._add(other, result, is_equal=True)
                continue
            if isinstance(result, FileVersion):
                self._again.append(text.file._replace(version=result))
            else:
                self._add_failed(text.file, result)
            self._again += [other.file for other in equal]

    def begin_part(self, name: str) -> None:
        """Forget what is not written, and give the part that `flush` writes next a name. All counts begin anew."""
        self._part = name
        self._rows = {}
        self.counts = Counts()
        self.failures = []

    def flush(self) -> None:
        """Write what is collected so far as a part."""
        if self._rows:
            name = f"{self._plan.run}-{self._part or f'{self._parts:06d}'}"
            rows, self._rows = self._rows, {}
            self._store.write(name, rows, self._plan.encoding)
            self._parts += 1
        self._written_at = time.monotonic()

    def _to_analyze(self, texts: Iterator[tuple[FleetInput, InputText | Exception]]) -> Iterator[InputText | None]:
        """Yield the texts to analyze, the first of those that are equal. None says that others may follow results."""
        while True:
            if self._again:
                file = self._again.popleft()
                text = text_or_error(file)
            elif (following := next(texts, None)) is not None:
                file, text = following
            elif self._in_flight:
                yield None
                continue
            else:
                return
            if isinstance(text, Exception):
                self._add_failed(file, text)
            elif (modules := self._analyses.get(text.digest)) is not None:
                self._add(text, modules, is_equal=True)
            elif text.digest in self._equal:
                self._equal[text.digest].append(text._replace(content=None))
            else:
                if text.digest is not None:
                    self._equal[text.digest] = []
                self._in_flight += 1
                yield text

    def _add_failed(self, file: FleetInput, failure: Exception) -> None:
        """Add the row of an input that cannot be read, or that cost the process that worked on it. Raise a UsageError."""
        if isinstance(failure, UsageError):
            raise failure
        if isinstance(failure, HloInspectError):
            self._add(InputText(file), [failed_figures(failure, "unreadable")])
            return
        message = str(failure) if isinstance(failure, LostProcessError) else internal_error_text(failure)
        if isinstance(failure, MemoryError):
            message = "the process that worked on it was out of memory"
        self._add(InputText(file), [failed_figures(InputError(message, Location(file.path)), "lost")])

    def _add(self, text: InputText, modules: list[ModuleFigures], *, is_equal: bool = False) -> None:
        """Add the rows of an input, and write a part if there are enough rows."""
        read_at = time.time_ns() // 1000 + self._plan.clock_shift
        for number, module in enumerate(modules):
            key = _key(text.file, number)
            seconds = None if is_equal else module.seconds
            values, lower_bounds, upper_bounds = module.facts
            row = (key, *self._about(text, module), seconds, read_at, lower_bounds, upper_bounds, *values)
            self._rows.setdefault(MODULES, []).append(row)
            for relation, rows in ((FINDINGS, module.findings), *(module.tables or {}).items()):
                self._rows.setdefault(relation, []).extend(
                    (key, read_at, row_number, *cells) for row_number, cells in enumerate(rows)
                )
        self._count(text.file, modules, is_equal=is_equal)
        # a chunk of a cluster is one part
        if not self._part and self._is_full():
            self.flush()
        if self._on_added is not None:
            failures, self.failures = self.failures, []
            self._on_added(self.counts, failures)

    def _about(self, text: InputText, module: ModuleFigures) -> tuple[object, ...]:
        """Return the columns from `input` to `message`."""
        path, version, request = absolute(text.file.path), text.file.version, self._plan.request
        place = (path, module.line, module.lines, module.bytes, version.size, version.changed, version.etag)
        program = (text.sha256, module.name, stage_of(path) or None, module.platform, self._labels(path))
        made_by = (__version__, STORE_SCHEMA, [*request.pass_names, *request.also])
        return (*place, *program, *made_by, module.status, module.message)

    def _labels(self, path: str) -> dict[str, str]:
        """Return the labels of an input: those of all inputs, and those that patterns find in its path."""
        labels = dict(self._plan.labels)
        for pattern in self._patterns:
            match = pattern.fullmatch(path)
            labels |= match.groupdict() if match is not None else {}
        return labels

    def _count(self, file: FleetInput, modules: list[ModuleFigures], *, is_equal: bool) -> None:
        failed = [module for module in modules if module.status in FAILED]
        self.failures += [Failure(file.path, module.message or "") for module in failed]
        is_lost = any(module.status == "lost" for module in failed)
        good = sum(module.status in {"ok", "partial"} for module in modules)
        size = file.version.size or 0
        done = Counts(not is_equal, is_equal, 0, bool(failed), is_lost, good, size)
        self.counts = self.counts.plus(Counts(*map(int, done)))

    def _is_full(self) -> bool:
        rows = sum(map(len, self._rows.values()))
        is_due = time.monotonic() - self._written_at >= PART_SECONDS
        return rows >= PART_ROWS or len(self._rows.get(MODULES, ())) >= PART_MODULES or (is_due and rows > 0)


def _key(file: FleetInput, number: int) -> str:
    """Return the key of a module: equal for all runs that read the same version of an input."""
    version = file.version
    parts = (absolute(file.path), version.size, version.changed, version.etag, number)
    return blake2b("\0".join(map(str, parts)).encode(errors="surrogatepass"), digest_size=16).hexdigest()
