"""Collections on Dask: the embedded cluster, and a scheduler and workers as processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlo_inspect.fleet import cluster
from hlo_inspect.fleet.inputs import FleetInput
from hlo_inspect.remote_files import FileVersion
from tests.calling import call_text
from tests.fleet.stores import collect, comparable, raw_rows, text_of, write_job

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]

# Python runs this at the start of each process. A child that reads `deadly` ends itself; one that reads `killer` for the first
# time ends the worker.
_SITE = """
import os, signal, sys
if any("spawn_main" in word for word in sys.orig_argv):
    from hlo_inspect.fleet.reading import InputReader
    read_once = InputReader._read_once
    def read(self, file, version):
        if "deadly" in file.path:
            os._exit(7)
        mark = os.path.join(os.path.dirname(file.path), "killed")
        if "killer" in file.path and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
        return read_once(self, file, version)
    InputReader._read_once = read
"""
_CLIENT = """
import sys
from hlo_inspect.fleet import cluster
from hlo_inspect.cli.main import run
cluster.CHUNK_INPUTS = 3
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make inputs called `deadly` and `killer` end processes."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start Python with these arguments."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_worker(scheduler: Path) -> subprocess.Popen[str]:
    """Start a worker with one thread."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0")
    folder = ("--local-directory", scheduler.parent)
    return start("-m", "distributed.cli.dask_worker", "--scheduler-file", scheduler, *options, *folder)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Return a list of processes that end with the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("site")
def test_the_embedded_cluster_makes_the_store_of_one_process(tmp_path: Path) -> None:
    job = write_job(tmp_path / "dumps", 2, 3)
    options = ("--tables", "params", "-j", "1", "--label", "a=b")
    collect(tmp_path / "one", job, *options)
    (tmp_path / "more").mkdir()
    deadly = tmp_path / "more" / "deadly.txt"
    deadly.write_text(text_of("jit_deadly", 9))
    table, errors = collect(tmp_path / "cluster", deadly, job, *options, "--cluster", "local", status=3)
    assert (table["read"], table["equal"], table["lost"]) == (3 + 1, 3, 1)
    assert errors == f"hlo-inspect: {deadly}: the process that worked on it ended with status 7\n"
    for relation in ("findings", "params"):
        assert comparable(tmp_path / "cluster", relation) == comparable(tmp_path / "one", relation)
    lost = comparable(tmp_path / "cluster") - comparable(tmp_path / "one")
    assert lost.total() == 1
    assert not comparable(tmp_path / "one") - comparable(tmp_path / "cluster")
    assert not cluster._COLLECTIONS


@pytest.mark.usefixtures("site")
def test_a_worker_that_is_killed_and_one_that_comes_later(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    folder, file = tmp_path / "dumps", tmp_path / "scheduler.json"
    folder.mkdir()
    for number in range(8):
        name = {1: "deadly", 4: "killer"}.get(number, "good")
        (folder / f"{number}_{name}.txt").write_text(text_of(f"jit_{number}", number + 1))
    scheduler = ("--scheduler-file", file, "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
    processes.append(start("-m", "distributed.cli.dask_scheduler", *scheduler))
    while not file.exists():
        time.sleep(0.01)
    worker = start_worker(file)
    processes.append(worker)
    import json

    address = json.loads(file.read_text())["address"]
    client = start("-c", _CLIENT, "collect", folder, "--store", tmp_path / "store", "--cluster", address, "--format", "csv")
    processes.append(client)
    worker.wait()
    processes.append(start_worker(file))
    output, errors = client.communicate()
    assert (client.returncode, errors.count("\n")) == (3, 1), errors
    assert output.splitlines()[1].startswith("8,0,0,1,1,7,")
    rows = {Path(row["input"]).stem: (row["status"], row["params.bytes"]) for row in raw_rows(tmp_path / "store")}
    assert len(raw_rows(tmp_path / "store")) == 8
    assert rows.pop("1_deadly") == ("lost", None)
    assert sorted(rows.values()) == [("ok", 4 * (number + 1) + 8) for number in (0, 2, 3, 4, 5, 6, 7)]


def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.2)
    job = write_job(tmp_path / "dumps", 1, 1)
    done = call_text("collect", job, "--store", tmp_path / "store", "--cluster", "tcp://127.0.0.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "tcp://127.0.0.1:1: the cluster does not answer within" in done.stderr
    done = call_text("collect", job, "--store", tmp_path / "store", "--cluster", "somewhere:else")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)
    done = call_text("collect", job, "--store", tmp_path / "store", "--cluster", "local")
    assert (done.returncode, "pip install 'dask[distributed]'" in done.stderr) == (2, True)


def test_chunks_by_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CHUNK_INPUTS", 3)
    monkeypatch.setattr(cluster, "CHUNK_BYTES", 10)
    inputs = [FleetInput(str(size), FileVersion(size)) for size in (1, 1, 1, 1, 9, 1, 99, 1)]
    sizes = [[file.version.size for file in chunk] for chunk in cluster.chunked(inputs)]
    assert sizes == [[1, 1, 1], [1, 9], [1], [99], [1]]
