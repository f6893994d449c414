"""Faults of a collection: processes and clients that are killed, full disks, damaged parts, inputs that change."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from hlo_inspect.fleet.inputs import FleetInput, file_version
from hlo_inspect.fleet.reading import READINGS, InputReader, Reading, ReadingOptions
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import FileVersion
from hlo_inspect.request import Request
from tests.calling import call_text
from tests.fleet.stores import ask, collect, raw_rows, text_of, write_job

ROOT = Path(__file__).parents[2]
read_once = InputReader._read_once

# a collection whose parts have three modules
_SMALL_PARTS = """
import sys
from hlo_inspect.fleet import collection
from hlo_inspect.cli.main import run
collection.PART_MODULES = 3
sys.exit(run(sys.argv[1:]))
"""


def start(*arguments: Path | str) -> subprocess.Popen[str]:
    """Start `collect` with small parts in a process of its own."""
    command = [sys.executable, "-c", _SMALL_PARTS, "collect", *map(str, arguments), "--format", "csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def latest_inputs(store: Path) -> Counter[str]:
    """Return how often each input is in the view `modules`."""
    return Counter(line.rpartition("/")[2] for line in ask(store, "SELECT input FROM modules"))


@pytest.mark.parametrize("death", ["SIGKILL", "exit"])
def test_a_process_that_dies_costs_the_input_that_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str) -> None:
    """The text of another input is equal to that of the deadly one, and waits for it."""

    def read(self: InputReader, file: FleetInput, version: FileVersion) -> Reading:
        reading = read_once(self, file, version)
        if "deadly" in file.path:
            os.kill(os.getpid(), signal.SIGKILL) if death == "SIGKILL" else os._exit(3)
        return reading

    monkeypatch.setattr(InputReader, "_read_once", read)
    folder = tmp_path / "dumps"
    folder.mkdir()
    for name, size in (("deadly", 5), ("equal", 5), ("f1", 1), ("f2", 2), ("f3", 3)):
        (folder / f"{name}.txt").write_text(text_of("jit_f", size))
    table, errors = collect(tmp_path / "store", folder, "-j", "2", status=3)
    status = -signal.SIGKILL if death == "SIGKILL" else 3
    message = f"the process that worked on it ended with status {status}"
    assert errors == f"hlo-inspect: {folder}/deadly.txt: {message}\n"
    assert (table["lost"], table["failed"], table["modules"]) == (1, 1, 4)
    rows = {
        Path(row["input"]).stem: (row["status"], row["message"], row["params.bytes"]) for row in raw_rows(tmp_path / "store")
    }
    assert rows.pop("deadly") == ("lost", message, None)
    assert rows == {name: ("ok", None, 4 * size + 8) for name, size in (("equal", 5), ("f1", 1), ("f2", 2), ("f3", 3))}


def test_a_killed_client_loses_no_part_and_the_next_run_reads_the_rest(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps", ranks=2, modules=12), tmp_path / "store"
    client = start(job, "--store", store, "-j", "1")
    while client.poll() is None and not list(Store(str(store)).parts_of("modules")):
        time.sleep(0.01)
    client.kill()
    client.communicate()
    before = {row["input"] for row in raw_rows(store)}
    assert before
    table, _ = collect(store, job)
    assert table["read"] + table["equal"] == 24 - len(before)
    assert set(Counter(row["input"] for row in raw_rows(store)).values()) == {1}
    assert len(raw_rows(store)) == 24


def test_two_runs_into_one_store(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps", ranks=2, modules=5), tmp_path / "store"
    runs = [start(job, "--store", store, "-j", "1") for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    for run in runs:
        run.communicate()
    assert len({path.name.partition("-")[0] for path in store.glob("modules/*")}) == 2
    names = {path.name: 2 for path in job.rglob("*.txt")}
    assert latest_inputs(store) == names
    assert ask(store, "SELECT count(*) = count(DISTINCT (module, row)) FROM findings") == ["true"]


def test_a_full_disk_ends_the_run_and_the_next_one_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, store = write_job(tmp_path / "dumps", 1, 3), tmp_path / "store"
    collect(store, job / "build7" / "0" / "module_0000.jit_f0.cpu_after_optimizations.txt")
    before = sorted(store.rglob("*"))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        done = call_text("collect", job, "--store", store)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be written: No space left on device" in done.stderr
    assert sorted(store.rglob("*")) == before
    assert collect(store, job)[0]["read"] == 2


@pytest.mark.parametrize("encoding", ["parquet", "jsonl"])
def test_a_truncated_part_is_named_and_its_inputs_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr("hlo_inspect.fleet.run.best_encoding", lambda: encoding)
    job, store = write_job(tmp_path / "dumps", 1, 2), tmp_path / "store"
    collect(store, job)
    (part,) = store.glob("modules/*")
    part.write_bytes(part.read_bytes()[:-20])
    message = f"hlo-inspect: {part}: is a damaged part of the store; remove it and collect its inputs again\n"
    done = call_text("query", store, "SELECT count(*) FROM modules", "--format", "csv")
    assert (done.returncode, done.stdout.splitlines()[1], done.stderr) == (3, "0", message)
    table, errors = collect(store, job, status=3)
    assert (table["read"], errors) == (2, message)
    part.unlink()
    assert latest_inputs(store) == dict.fromkeys((path.name for path in job.rglob("*.txt")), 1)


def test_an_input_that_changes_is_read_again(tmp_path: Path) -> None:
    """It changes during the first reading; another one changes during each."""
    claims = tmp_path / "claims"
    claims.mkdir()
    reader = InputReader(ReadingOptions(Request(passes=("params",)), (), str(claims)))
    path = tmp_path / "dump.txt"
    path.write_text(text_of("first", 1))
    changes = 1

    def read(file: FleetInput, version: FileVersion) -> Reading:
        nonlocal changes
        reading = read_once(reader, file, version)
        if changes:
            changes -= 1
            path.write_text(path.read_text() + "\n")
        return reading

    reader._read_once = read  # type: ignore[method-assign]
    reading = reader.read(FleetInput(str(path), file_version(str(path))))
    assert reading.version == file_version(str(path))
    assert [module.status for module in reading.modules] == ["ok"]
    changes = READINGS
    reading = reader.read(FleetInput(str(path), file_version(str(path))))
    assert [(module.status, module.message) for module in reading.modules] == [("unreadable", "changes while it is read")]


def test_a_directory_that_grows_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that appears during the run is read by it or by the next."""
    job, store = write_job(tmp_path / "dumps", 1, 3), tmp_path / "store"

    def read(self: InputReader, file: FleetInput, version: FileVersion) -> Reading:
        new = Path(file.path).parent / "module_0050.jit_new.cpu_after_optimizations.txt"
        if not new.exists():
            new.write_text(text_of("jit_new", 9))
        return read_once(self, file, version)

    with monkeypatch.context() as growing:
        growing.setattr(InputReader, "_read_once", read)
        first = collect(store, job, "-j", "1")[0]
    second = collect(store, job)[0]
    assert first["read"] + second["read"] == 4
    assert set(latest_inputs(store).values()) == {1}
    assert len(raw_rows(store)) == 4


def test_a_process_out_of_memory_costs_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: InputReader, file: FleetInput, version: FileVersion) -> Reading:
        if "f0" in file.path:
            raise MemoryError
        return read_once(self, file, version)

    monkeypatch.setattr(InputReader, "_read_once", read)
    table, errors = collect(tmp_path / "store", write_job(tmp_path / "dumps", 1, 2), "-j", "1", status=3)
    assert (table["lost"], table["modules"], "was out of memory" in errors) == (1, 1, True)
