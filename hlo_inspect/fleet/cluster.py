"""A collection on a Dask cluster: chunks of inputs, which the workers read and write into the store. Counts come back.

Each thread of a worker keeps a `Collection` with one child process for all of its chunks; they share their analyses. A chunk is
one part with the chunk's number, so a chunk that runs again, because its worker left, replaces what it wrote before.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from typing import Any

from hlo_inspect.errors import InputError, Location, MissingExtraError, UsageError
from hlo_inspect.fleet.collection import Analyses, Collection, Counts, Failure, Plan
from hlo_inspect.fleet.fleet_inputs import FleetInput
from hlo_inspect.fleet.store import Store

CHUNK_INPUTS, CHUNK_BYTES = 256, 1 << 26
"""The most inputs and bytes of a chunk."""
SORTED_INPUTS = 1 << 14
"""Inputs that are sorted by size, so that equal texts, which are analyzed once in a chunk, come together."""
PATIENCE_S = 10
"""Seconds until a cluster counts as one that does not answer."""
LOCAL = "local"
_AHEAD = 2
"""Chunks for each thread of the cluster that wait for it."""

Result = tuple[Counts, list[Failure]]


def collect_on_cluster(address: str, threads: int, store: Store, plan: Plan, inputs: Iterable[FleetInput]) -> Iterator[Result]:
    """Read the inputs on a cluster; yield counts and new failures after each chunk. Raise InputError if it does not answer."""
    with _connected(address, threads) as client:
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        chunks = enumerate(chunked(inputs))
        sent: dict[Any, list[FleetInput]] = {}
        done = as_completed()
        counts = Counts()
        try:
            while True:
                room = _AHEAD * max(2, sum(client.nthreads().values())) - len(sent)
                for number, chunk in islice(chunks, max(room, 0)):
                    future = client.submit(collect_chunk, store.root, plan, number, chunk, pure=False)
                    sent[future] = chunk
                    done.add(future)
                if not sent:
                    break
                future = next(done)
                chunk = sent.pop(future)
                try:
                    of_chunk, failures = future.result()
                except KilledWorker:
                    of_chunk = Counts(failed=len(chunk), lost=len(chunk))
                    failures = [Failure(file.path, "its worker ended again and again; the next run reads it") for file in chunk]
                counts = counts.plus(of_chunk)
                yield counts, failures
        finally:
            client.cancel(list(sent))
            with suppress(Exception):  # the collection is over: a worker that left has nothing to close
                client.run(close_collections, plan.run)


def chunked(inputs: Iterable[FleetInput]) -> Iterator[list[FleetInput]]:
    """Yield the inputs in chunks of at most `CHUNK_INPUTS` inputs and, unless one alone is larger, `CHUNK_BYTES` bytes."""
    left = iter(inputs)
    while window := sorted(islice(left, SORTED_INPUTS), key=_size):
        chunk: list[FleetInput] = []
        for file in window:
            if chunk and (len(chunk) >= CHUNK_INPUTS or sum(map(_size, chunk)) + _size(file) > CHUNK_BYTES):
                yield chunk
                chunk = []
            chunk.append(file)
        yield chunk


def _size(file: FleetInput) -> int:
    return file.version.size or 0


@contextmanager
def _connected(address: str, threads: int) -> Iterator[Any]:
    """Connect to a cluster, or start one in this process for `local`."""
    if find_spec("distributed") is None:
        raise MissingExtraError("--cluster needs the extra [cluster]: pip install 'dask[distributed]'")
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its errors are raised too
    with ExitStack() as stack:
        if address == LOCAL:
            cluster = LocalCluster(
                n_workers=1, threads_per_worker=threads, processes=False, dashboard_address=None, memory_limit=0
            )
            stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = Client(address, timeout=PATIENCE_S)
        except ValueError as error:
            raise UsageError(f"--cluster is tcp://HOST:PORT or local, not {address!r}") from error
        except OSError as error:
            message = f"the cluster does not answer within {PATIENCE_S} s; `dask scheduler` starts one"
            raise InputError(message, Location(address)) from error
        yield stack.enter_context(client)


_IDLE: dict[tuple[str, int], Collection] = {}
"""Collections of this worker that wait for their next chunk, by run and thread."""
_ANALYSES: dict[str, Analyses] = {}
"""Analyses of the runs of this worker."""
_ENDED: set[str] = set()
"""Runs that are over, for this worker."""
_LOCK = threading.Lock()


def collect_chunk(root: str, plan: Plan, number: int, inputs: Sequence[FleetInput]) -> Result:
    """Read a chunk and write it as one part, also if the run ends meanwhile. This runs in a worker."""
    key = plan.run, threading.get_ident()
    with _LOCK:
        collection = _IDLE.pop(key, None)
        analyses = _ANALYSES.get(plan.run) or _ANALYSES.setdefault(plan.run, Analyses())
    if collection is None:
        process = multiprocessing.current_process()
        if process.daemon:  # such processes may not have children; this one's end with their pipes
            process.daemon = False
        collection = Collection(Store(root), plan, jobs=1, has_threads=True, analyses=analyses)
    try:
        collection.begin_part(f"{number:06d}")
        collection.collect(inputs)
        collection.flush()
        return collection.counts, collection.failures
    finally:
        with _LOCK:
            if plan.run in _ENDED:
                collection.close()
            else:
                _IDLE[key] = collection


def close_collections(run: str) -> None:
    """End the child processes of a run, those of a chunk with the chunk. This runs in a worker."""
    with _LOCK:
        _ENDED.add(run)
        _ANALYSES.pop(run, None)
        for key in [key for key in _IDLE if key[0] == run]:
            _IDLE.pop(key).close()
