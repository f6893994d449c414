"""Collections on Dask: the embedded cluster, and a scheduler, workers and clients as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hlo_inspect.fleet import cluster
from hlo_inspect.fleet.collection import Analyses, Collection, Plan
from hlo_inspect.fleet.fleet_inputs import FleetInput, Shard, find_inputs
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import FileVersion
from hlo_inspect.request import Request
from tests.calling import call_text
from tests.fleet.stores import collect, comparable, raw_rows, text_of, write_job

ROOT = Path(__file__).parents[2]
needs_dask = pytest.mark.extras("distributed")

# Python runs this at the start of each process. A child that reads an input notes the process that it works for. `deadly` ends
# the child. `meet_a` and `meet_b` wait for each other, then end their workers, the first time. `gate` waits for a file `open`.
_SITE = """
import os, signal, sys, time
if any("spawn_main" in word for word in sys.orig_argv):
    from hlo_inspect.fleet.reading import InputReader
    read_input = InputReader.read
    def wait_for(*paths):
        while not all(map(os.path.exists, paths)):
            time.sleep(0.005)
    def read(self, text):
        folder, _, name = text.file.path.rpartition("/")
        log = f"{folder}.log/{name}"
        is_first = not os.path.exists(log)
        with open(log, "a") as stream:
            stream.write(f"{os.getppid()}\\n")
        if "deadly" in name:
            os._exit(7)
        if "meet" in name and is_first:
            wait_for(f"{folder}.log/1_meet_a.txt", f"{folder}.log/3_meet_b.txt")
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
        if "gate" in name:
            wait_for(f"{folder}.log/open")
        return read_input(self, text)
    InputReader.read = read
"""

# A process that imports Dask once and forks all others: each line of its input is the role, the folder and the words of one.
_NURSERY = """
import asyncio, json, os, signal, sys
from pathlib import Path
from distributed import Scheduler, Worker
from hlo_inspect.cli.main import run
from hlo_inspect.fleet import cluster, run as fleet_run
from hlo_inspect.fleet.reading import ReadingOptions, prepare_reading
from hlo_inspect.request import Request
cluster.CHUNK_INPUTS = 2
fleet_run.best_encoding = lambda: "jsonl"
prepare_reading(ReadingOptions(Request(("summary", "params", "fingerprint")), ()))

async def serve(server, folder):
    async with server as started:
        (folder / "new").write_text(started.address)
        (folder / "new").rename(folder / "address")
        await started.finished()

async def scheduler(folder):
    await serve(Scheduler(host="127.0.0.1", port=0, dashboard=False), folder)

async def worker(folder, address):
    await serve(Worker(address, nthreads=1, memory_limit=0, local_directory=str(folder)), folder)

def client(folder, *words):
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    status = run(list(words))
    sys.stdout.flush()
    (folder / "status").write_text(str(status if not cluster._IDLE else 99))

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    role, folder, *words = json.loads(line)
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if role in ("client", "impatient"):
            cluster.PATIENCE_S = 60 if role == "client" else 0.2
            client(Path(folder), *words)
        else:
            asyncio.run(globals()[role](Path(folder), *words))
        os._exit(0)
    print(pid, flush=True)
"""


class Nursery:
    """A process that forks the others. All end with it."""

    def __init__(self, folder: Path) -> None:
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(_SITE)
        self._folder = folder
        self._pids: list[int] = []
        environment = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}"}
        command = [sys.executable, "-c", _NURSERY]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def start(self, role: str, *words: str | Path) -> tuple[int, Path]:
        """Start a process; return its id and its folder."""
        folder = self._folder / str(len(self._pids))
        folder.mkdir()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([role, *map(str, (folder, *words))]) + "\n")
        self._process.stdin.flush()
        self._pids.append(int(self._process.stdout.readline()))
        return self._pids[-1], folder

    def serve(self, role: str, *words: str) -> str:
        """Start a scheduler or a worker, and return its address when it is ready."""
        _, folder = self.start(role, *words)
        wait_until((folder / "address").exists)
        return (folder / "address").read_text()

    def collect(self, address: str, store: Path, *words: str | Path) -> tuple[int, Path]:
        """Start a client that collects on a cluster."""
        return self.start("client", "collect", *words, "--store", store, "--cluster", address, "-j", "1", "--format", "csv")

    def end(self, pids: list[int] | None = None) -> None:
        """Kill processes, by default all."""
        for pid in self._pids if pids is None else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if pids is None:
            self._process.kill()
            self._process.communicate()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; fail if it does not hold within a minute, as if a process hangs."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    """Return True if a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def result(client: tuple[int, Path]) -> tuple[int, str, str]:
    """Return status, last line of the output, and errors of a client when it has ended."""
    pid, folder = client
    wait_until(lambda: is_gone(pid))
    output = (folder / "output").read_text().splitlines()
    return int((folder / "status").read_text()), output[-1] if output else "", (folder / "errors").read_text()


def write_dumps(folder: Path, *names: str) -> Path:
    """Write different modules of these names, and make the folder of the notes about their reading."""
    folder.mkdir()
    Path(f"{folder}.log").mkdir()
    for number, name in enumerate(names):
        (folder / f"{number}_{name}.txt").write_text(text_of(f"jit_{number}", number + 1))
    return folder


def readers(folder: Path, name: str) -> list[int]:
    """Return the processes whose children read an input."""
    return [int(line) for line in Path(f"{folder}.log", f"{name}.txt").read_text().split()]


def has_readers(folder: Path, name: str) -> bool:
    """Return True if a child has begun an input, and has noted its process."""
    return Path(f"{folder}.log", f"{name}.txt").exists() and bool(readers(folder, name))


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Return the process that forks the others."""
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.end()


@pytest.fixture(scope="module")
def scheduler(nursery: Nursery) -> str:
    """Return the address of a scheduler without workers."""
    return nursery.serve("scheduler")


@needs_dask
def test_the_embedded_cluster_makes_the_store_of_one_process(tmp_path: Path, nursery: Nursery) -> None:
    job = write_job(tmp_path / "dumps", 2, 3)
    for rank in range(2):
        Path(f"{job}/build7/{rank}.log").mkdir()
    options = ("--tables", "params", "--label", "a=b")
    deadly = write_dumps(tmp_path / "more", "deadly") / "0_deadly.txt"
    client = nursery.collect("local", tmp_path / "cluster", deadly, job, *options)
    collect(tmp_path / "one", job, *options)
    status, table, errors = result(client)
    assert (status, errors) == (3, f"hlo-inspect: {deadly}: the process that worked on it ended with status 7\n")
    assert table.startswith("4,3,0,1,1,6,")
    for relation in ("findings", "params"):
        assert comparable(tmp_path / "cluster", relation) == comparable(tmp_path / "one", relation)
    lost = comparable(tmp_path / "cluster") - comparable(tmp_path / "one")
    assert lost.total() == 1
    assert not comparable(tmp_path / "one") - comparable(tmp_path / "cluster")


@needs_dask
def test_two_workers_that_are_killed_and_one_that_comes_later(tmp_path: Path, nursery: Nursery, scheduler: str) -> None:
    """Both work at once: each has begun its first chunk before the other one dies. The third does everything again."""
    dumps = write_dumps(tmp_path / "dumps", "good", "meet_a", "good", "meet_b", "deadly", "good", "good")
    for _ in range(2):
        nursery.serve("worker", scheduler)
    client = nursery.collect(scheduler, tmp_path / "store", dumps)
    wait_until(lambda: all(has_readers(dumps, name) for name in ("1_meet_a", "3_meet_b")))
    first = {*readers(dumps, "1_meet_a"), *readers(dumps, "3_meet_b")}
    assert len(first) == 2
    wait_until(lambda: all(map(is_gone, first)))
    nursery.serve("worker", scheduler)
    status, table, errors = result(client)
    assert (status, errors.count("\n")) == (3, 1), errors
    assert table.startswith("7,0,0,1,1,6,")
    assert first.isdisjoint({readers(dumps, name)[-1] for name in ("0_good", "1_meet_a", "2_good", "3_meet_b", "6_good")})
    rows = raw_rows(tmp_path / "store")
    by_name = {Path(row["input"]).stem: (row["status"], row["params.bytes"]) for row in rows}
    assert (len(rows), by_name.pop("4_deadly")) == (7, ("lost", None))
    assert sorted(by_name.values()) == [("ok", 4 * (number + 1) + 8) for number in (0, 1, 2, 3, 5, 6)]
    nursery.end(readers(dumps, "6_good"))


@needs_dask
def test_an_interruption_cancels_what_has_not_begun(tmp_path: Path, nursery: Nursery, scheduler: str) -> None:
    """The chunk that a worker has is written; the next run reads the rest, once."""
    dumps = write_dumps(tmp_path / "dumps", "gate", "good", "good", "good", "good")
    nursery.serve("worker", scheduler)
    client = nursery.collect(scheduler, tmp_path / "store", dumps)
    wait_until(Path(f"{dumps}.log", "0_gate.txt").exists)
    os.kill(client[0], signal.SIGINT)
    assert result(client)[0] == 128 + signal.SIGINT
    Path(f"{dumps}.log", "open").touch()
    wait_until(lambda: any(Store(str(tmp_path / "store")).parts_of("modules")))
    assert result(nursery.collect(scheduler, tmp_path / "store", dumps))[1].startswith("3,0,2,0,0,3,")
    assert [row["status"] for row in raw_rows(tmp_path / "store")] == ["ok"] * 5
    assert [len(readers(dumps, path.stem)) for path in sorted(dumps.iterdir())] == [1] * 5


@needs_dask
@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("tcp://127.0.0.1:1", 3, "tcp://127.0.0.1:1: the cluster does not answer within"),
        ("somewhere:else", 2, "--cluster is tcp://HOST:PORT or local"),
    ],
)
def test_a_cluster_that_does_not_answer(tmp_path: Path, nursery: Nursery, address: str, status: int, message: str) -> None:
    words = ("collect", write_job(tmp_path / "dumps", 1, 1), "--store", tmp_path / "store", "--cluster", address)
    code, _, errors = result(nursery.start("impatient", *words))
    assert (code, errors.count("\n"), message in errors) == (status, 1, True)


def test_a_cluster_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)
    done = call_text("collect", write_job(tmp_path / "dumps", 1, 1), "--store", tmp_path / "store", "--cluster", "local")
    assert (done.returncode, "pip install 'dask[distributed]'" in done.stderr) == (2, True)


def test_threads_of_a_worker_analyze_input_texts_once(tmp_path: Path) -> None:
    """The second of two collections that share their analyses reads equal texts only."""
    job = write_job(tmp_path / "dumps", 2, 3)
    plan = Plan(Request(("params",)), (), {}, (), "jsonl", "run")
    store, analyses = Store(str(tmp_path / "store")), Analyses()
    files = [file for file in find_inputs([str(job)], None, Shard()) if isinstance(file, FleetInput)]
    with (
        Collection(store, plan, jobs=1, analyses=analyses) as first,
        Collection(store, plan, jobs=1, analyses=analyses) as second,
    ):
        for number, (collection, part) in enumerate(((first, files[:3]), (second, files[3:]))):
            collection.begin_part(str(number))
            collection.collect(part)
        assert (first.counts.read, second.counts.read, second.counts.equal) == (3, 0, 3)
    rows = raw_rows(tmp_path / "store")
    assert sorted(row["params.bytes"] for row in rows) == [12, 12, 16, 16, 20, 20]


def test_chunks_by_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CHUNK_INPUTS", 3)
    monkeypatch.setattr(cluster, "CHUNK_BYTES", 10)
    inputs = [FleetInput(str(size), FileVersion(size)) for size in (1, 1, 1, 1, 9, 1, 99, 1)]
    sizes = [[file.version.size for file in chunk] for chunk in cluster.chunked(inputs)]
    assert sizes == [[1, 1, 1], [1, 1, 1], [9], [99]]
    monkeypatch.setattr(cluster, "SORTED_INPUTS", 5)
    sizes = [[file.version.size for file in chunk] for chunk in cluster.chunked(inputs)]
    assert sizes == [[1, 1, 1], [1, 9], [1, 1], [99]]
