"""Faults of a collection: processes and clients that are killed, full disks, damaged parts, inputs that change."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hlo_inspect.atomic_files import TEMPORARY, atomic_writer
from hlo_inspect.fleet import input_texts, parts, run
from hlo_inspect.fleet.fleet_inputs import READINGS, FleetInput
from hlo_inspect.fleet.input_texts import InputText
from hlo_inspect.fleet.reading import InputReader, ModuleFigures
from hlo_inspect.fleet.schema import FINDINGS
from hlo_inspect.remote_files import FileVersion
from tests.calling import call_text
from tests.fleet.stores import collect, raw_rows, text_of, write_job

ROOT = Path(__file__).parents[2]
read_input = InputReader.read
hash_text = input_texts._read

# Two processes collect at once, in parts of three modules.
_TWO_RUNS = """
import os, sys
from hlo_inspect.cli.main import run
from hlo_inspect.fleet import collection, run as fleet_run
collection.PART_MODULES = 3
fleet_run.best_encoding = lambda: "jsonl"
runs = [os.fork() or os._exit(run(sys.argv[1:])) for _ in range(2)]
sys.exit(max(os.waitpid(pid, 0)[1] for pid in runs))
"""

# A client that is killed while it writes its second part: the findings are there, the modules are not.
_KILLED = """
import os, signal, sys
from hlo_inspect.cli.main import run
from hlo_inspect.fleet import collection, run as fleet_run
from hlo_inspect.fleet.store import Store
collection.PART_MODULES = 3
fleet_run.best_encoding = lambda: "jsonl"
write = Store._write
def killed(self, name, data):
    if name.startswith("modules/") and name.endswith("-000001.jsonl"):
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, name, data)
Store._write = killed
run(sys.argv[1:])
"""

_WRITES = """
import sys
from hlo_inspect.atomic_files import write_whole
write_whole(sys.argv[2], b"half")
"""


def run_program(program: str, *arguments: Path | str) -> int:
    """Run a program with the arguments of `collect` in a process of its own and return its status."""
    command = [sys.executable, "-c", program, "collect", *map(str, arguments), "-q"]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, check=False
    ).returncode


@pytest.mark.parametrize("death", ["SIGKILL", "exit"])
def test_a_process_that_dies_costs_the_input_that_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str) -> None:
    """The text of another input is equal to that of the deadly one, and waits for it."""

    def read(self: InputReader, text: InputText) -> list[ModuleFigures] | FileVersion:
        modules = read_input(self, text)
        if "deadly" in text.file.path:
            os.kill(os.getpid(), signal.SIGKILL) if death == "SIGKILL" else os._exit(3)
        return modules

    monkeypatch.setattr(InputReader, "read", read)
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


def test_a_killed_client_loses_the_part_that_it_writes(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps", ranks=1, modules=8), tmp_path / "store"
    assert run_program(_KILLED, job, "--store", store) == -signal.SIGKILL
    assert (len(raw_rows(store)), len(raw_rows(store, FINDINGS))) == (3, 6)
    table, _ = collect(store, job)
    assert (table["read"], table["skipped"]) == (5, 3)
    rows = raw_rows(store)
    assert (len(rows), len({row["input"] for row in rows})) == (8, 8)
    readings = {(row["module"], row["read_at"]) for row in rows}
    assert sum((row["module"], row["read_at"]) in readings for row in raw_rows(store, FINDINGS)) == 8


def test_half_written_parts_of_killed_runs_are_removed(tmp_path: Path) -> None:
    """A part that another run still writes stays."""
    job, store = write_job(tmp_path / "dumps", ranks=1, modules=1), tmp_path / "store"
    program = f"import os, signal\nos.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n{_WRITES}"
    collect(store, job)
    assert run_program(program, store / "modules" / "killed.jsonl") == -signal.SIGKILL
    assert len(list(store.rglob(f"{TEMPORARY}*"))) == 1
    with atomic_writer(str(store / "modules" / "other.txt")) as stream:
        stream.write("whole")
        collect(store, job)
        assert len(list(store.rglob(f"{TEMPORARY}*"))) == 1
    assert (store / "modules" / "other.txt").read_text() == "whole"
    assert not list(store.rglob(f"{TEMPORARY}*"))


def test_two_runs_into_one_store(tmp_path: Path) -> None:
    """Each run writes parts of its own; the latest reading of an input counts (`test_query.py`)."""
    job, store = write_job(tmp_path / "dumps", ranks=1, modules=4), tmp_path / "store"
    assert run_program(_TWO_RUNS, job, "--store", store, "--again") == 0
    names = [path.name.partition("-") for path in store.glob("modules/*")]
    assert len({run for run, _, _ in names}) == 2
    assert sorted(number for _, _, number in names) == ["000000.jsonl"] * 2 + ["000001.jsonl"] * 2
    assert Counter(Path(row["input"]).name for row in raw_rows(store)) == {path.name: 2 for path in job.rglob("*.txt")}


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


@pytest.mark.extras("duckdb")
def test_a_full_folder_of_temporary_files_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet is made of lines in a temporary file."""
    monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(parts, "TemporaryDirectory", lambda **_: (_ for _ in ()).throw(full))
    done = call_text("collect", write_job(tmp_path / "dumps", 1, 1), "--store", tmp_path / "store")
    message = "hlo-inspect: a temporary file cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr, list(tmp_path.glob("store/modules/*"))) == (2, message, [])


@pytest.mark.parametrize("kept", [input_texts.KEPT_BYTES, 0])
def test_an_input_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """An input changes when it is read first, another one each time. A large text is read again by its process."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    monkeypatch.setattr(input_texts, "KEPT_BYTES", kept)
    for number, name in enumerate(("once", "always", "never")):
        (folder / f"{name}.txt").write_text(text_of(name, number + 1))

    def change(path: str) -> None:
        if "always" in path or ("once" in path and not Path(path).read_text().endswith("\n\n")):
            with Path(path).open("a") as stream:
                stream.write("\n")

    def read_here(file: FleetInput) -> InputText:
        text = hash_text(file)
        change(file.path)
        return text

    def read(self: InputReader, text: InputText) -> list[ModuleFigures] | FileVersion:
        change(text.file.path)
        return read_input(self, text)

    if kept:
        monkeypatch.setattr(input_texts, "_read", read_here)
    else:
        monkeypatch.setattr(InputReader, "read", read)
    table, errors = collect(tmp_path / "store", folder, status=3)
    assert (table["read"], table["failed"]) == (3, 1)
    assert errors == f"hlo-inspect: {folder}/always.txt: changes while it is read\n"
    rows = {Path(row["input"]).stem: row for row in raw_rows(tmp_path / "store")}
    assert {name: row["status"] for name, row in rows.items()} == {"once": "ok", "always": "unreadable", "never": "ok"}
    once = folder / "once.txt"
    assert rows["once"]["input_bytes"] == once.stat().st_size
    assert rows["once"]["sha256"] == hashlib.sha256(once.read_bytes()).hexdigest()
    assert (folder / "always.txt").read_text().endswith("}" + "\n" * (1 + READINGS))


def test_a_directory_that_grows_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that appears during the run is read by it or by the next."""
    job, store = write_job(tmp_path / "dumps", 1, 3), tmp_path / "store"

    def read(self: InputReader, text: InputText) -> list[ModuleFigures] | FileVersion:
        new = Path(text.file.path).parent / "module_0050.jit_new.cpu_after_optimizations.txt"
        if not new.exists():
            new.write_text(text_of("jit_new", 9))
        return read_input(self, text)

    with monkeypatch.context() as growing:
        growing.setattr(InputReader, "read", read)
        first = collect(store, job)[0]
    second = collect(store, job)[0]
    assert first["read"] + second["read"] == 4
    assert len({row["input"] for row in raw_rows(store)}) == len(raw_rows(store)) == 4


def test_a_process_out_of_memory_costs_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: InputReader, text: InputText) -> list[ModuleFigures] | FileVersion:
        if "f0" in text.file.path:
            raise MemoryError
        return read_input(self, text)

    monkeypatch.setattr(InputReader, "read", read)
    table, errors = collect(tmp_path / "store", write_job(tmp_path / "dumps", 1, 2), status=3)
    assert (table["lost"], table["modules"], "was out of memory" in errors) == (1, 1, True)
