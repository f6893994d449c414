"""`collect`: rows, labels, resumption, equal texts, shards, and refusals."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from hlo_inspect.cli.commands.collect import CollectionBar
from hlo_inspect.errors import InputError
from hlo_inspect.fleet import fleet_inputs as inputs
from hlo_inspect.fleet import input_texts, parts, run
from hlo_inspect.fleet.collection import Counts
from hlo_inspect.fleet.fleet_inputs import FleetInput, Shard, find_inputs
from hlo_inspect.fleet.input_texts import InputText, read_texts
from hlo_inspect.fleet.reading import InputReader, ModuleFigures
from hlo_inspect.fleet.schema import FINDINGS
from hlo_inspect.remote_files import FileVersion
from tests.calling import call_text
from tests.fleet.stores import collect, comparable, raw_rows, text_of, write_job


@pytest.fixture(params=[pytest.param("parquet", marks=pytest.mark.extras("duckdb")), "jsonl"])
def _encoding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "best_encoding", lambda: request.param)


@pytest.mark.usefixtures("_encoding")
def test_a_run_with_more_passes_reads_again_what_lacks_them(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps"), tmp_path / "store"
    noise = tmp_path / "noise.txt"
    noise.write_bytes(b"\0\1\2" * 99)
    collect(store, job, noise, "--tables", "params", status=3)
    page = call_text("collect", "-j", "1", job, noise, "--passes", "top,optimizer", "--store", store).stdout
    assert "4 inputs of the store without all of optimizer, top: read again" in page  # what cannot be read lacks no pass
    latest = max(raw_rows(store), key=lambda row: row["read_at"])
    assert {"summary", "params", "memory", "top", "optimizer"} <= set(latest["passes"])
    assert latest["kernels.count"] == 1  # the sum
    of_parameters = [row for row in raw_rows(store, "params") if row["read_at"] == latest["read_at"]]
    assert of_parameters  # tables of the run before stay
    table, _ = collect(store, job, noise, "--passes", "optimizer")
    assert (table["read"], table["equal"], table["skipped"]) == (0, 0, 5)


@pytest.mark.usefixtures("_encoding")
def test_rows_of_a_job_with_a_truncated_and_an_unreadable_file(tmp_path: Path) -> None:
    job = write_job(tmp_path / "dumps")
    truncated = job / "cut.txt"
    truncated.write_text(text_of("cut").rpartition("ROOT")[0])
    (job / "notes.txt").write_text("nothing about programs\n")
    binary = tmp_path / "noise.txt"
    binary.write_bytes(b"\0\1\2" * 99)
    store = tmp_path / "store"
    labelled = ["--label", "team=a=b", "--label-from", f"{job}/{{build}}/{{rank}}/*", "--tables", "params"]
    table, errors = collect(store, job, binary, *labelled, status=3)
    assert (table["read"], table["equal"], table["failed"], table["modules"]) == (5, 2, 1, 5)
    assert str(binary) in errors
    rows = {row["input"]: row for row in raw_rows(store)}
    assert len(rows) == 7
    path = job / "build7" / "1" / "module_0001.jit_f1.cpu_after_optimizations.txt"
    row = rows[str(path)]
    assert dict(row["labels"]) == {"team": "a=b", "build": "build7", "rank": "1"}
    assert dict(rows[str(truncated)]["labels"]) == {"team": "a=b"}
    assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert row["input_bytes"] == row["bytes"] == path.stat().st_size
    assert row["changed"].timestamp() == pytest.approx(path.stat().st_mtime, abs=1e-5)
    assert (row["stage"], row["status"], row["line"], row["schema_version"]) == ("cpu_after_optimizations", "ok", 1, 1)
    assert (row["module.name"], row["params.bytes"], row["opcode.add"], row["opcode.dot"]) == ("jit_f1", 8 + 8, 1, 0)
    assert row["memory.peak_bytes"] == 8 + 8 + 8  # without asking: two parameters and their sum
    assert row["time.step_s"] is None
    assert rows[str(truncated)]["status"] == "partial"
    assert rows[str(job / "notes.txt")]["status"] == "empty"
    assert (rows[str(binary)]["status"], rows[str(binary)]["params.bytes"]) == ("unreadable", None)
    of_parameters = {(row["module"], row["bytes"]) for row in raw_rows(store, "params")}
    assert (row["module"], 8) in of_parameters
    assert {row["module"] for row in raw_rows(store, FINDINGS)} <= {row["module"] for row in rows.values()}


def test_a_second_run_reads_what_is_new_changed_or_asked_for(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps"), tmp_path / "store"
    collect(store, job)
    before = sorted(store.rglob("*"))
    table, _ = collect(store, job)
    assert (table["read"], table["equal"], table["skipped"]) == (0, 0, 4)
    assert sorted(store.rglob("*")) == before
    first = job / "build7" / "0" / "module_0000.jit_f0.cpu_after_optimizations.txt"
    first.write_text(text_of("jit_changed"))
    (job / "build7" / "0" / "module_0009.jit_new.cpu_after_optimizations.txt").write_text(text_of("jit_new"))
    table, _ = collect(store, job)
    assert (table["read"], table["skipped"]) == (2, 3)
    (job / "build7" / "1" / "module_0000.jit_f0.cpu_after_optimizations.txt").write_bytes(b"\0\1\2" * 99)
    assert collect(store, job, status=3)[0]["failed"] == 1
    assert collect(store, job)[0]["read"] == 0
    assert collect(store, job, "--retry-failed", status=3)[0]["failed"] == 1
    assert collect(store, job, "--again", status=3)[0]["skipped"] == 0


def test_stores_are_equal_for_one_process_two_and_shards(tmp_path: Path) -> None:
    job = write_job(tmp_path / "dumps", ranks=2, modules=3)
    collect(tmp_path / "one", job, "--tables", "params")
    collect(tmp_path / "two", job, "-j", "2", "--tables", "params")
    for number in range(1, 5):
        collect(tmp_path / "shards", job, "--shard", f"{number}/4", "--tables", "params")
    for relation in ("modules", "findings", "params"):
        expected = comparable(tmp_path / "one", relation)
        assert expected
        assert comparable(tmp_path / "two", relation) == comparable(tmp_path / "shards", relation) == expected


@pytest.mark.parametrize("kept", [input_texts.KEPT_BYTES, 0])
def test_the_first_of_equal_texts_is_analyzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Eight ranks have two modules each; one text is compressed. Processes note what they analyze."""
    job, log = write_job(tmp_path / "dumps", ranks=8), tmp_path / "log"
    path = job / "build7" / "3" / "module_0001.jit_f1.cpu_after_optimizations.txt"
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    read = InputReader.read

    def noted(self: InputReader, text: InputText) -> list[ModuleFigures] | FileVersion:
        with log.open("a") as stream:
            stream.write(f"{text.digest}\n")
        return read(self, text)

    monkeypatch.setattr(input_texts, "KEPT_BYTES", kept)
    monkeypatch.setattr(InputReader, "read", noted)
    table, _ = collect(tmp_path / "store", job, "-j", "3")
    assert (table["read"], table["equal"], table["modules"]) == (2, 14, 16)
    assert len(log.read_text().splitlines()) == len(set(log.read_text().splitlines())) == 2
    assert sorted(row["params.bytes"] for row in raw_rows(tmp_path / "store")) == [12] * 8 + [16] * 8


def test_threads_read_ahead_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(text_of(f"jit_{number}"))
    files = [file for file in find_inputs([str(tmp_path)], None, Shard()) if isinstance(file, FleetInput)]
    files.insert(4, FleetInput(str(tmp_path / "gone.txt"), FileVersion(9)))
    texts = dict(read_texts(iter(files), 3))
    assert list(texts) == files
    failure = texts.pop(files[4])
    assert (type(failure), "No such file" in str(failure)) == (InputError, True)
    for file, text in texts.items():
        assert isinstance(text, InputText)
        assert text.content == Path(file.path).read_bytes()
        assert text.sha256 == hashlib.sha256(text.content).hexdigest()


def test_each_path_is_in_one_shard() -> None:
    shards = [Shard.parse(f"{number}/5") for number in range(1, 6)]
    assert all(sum(shard.holds(f"/dumps/{number}") for shard in shards) == 1 for number in range(50))


def test_a_folder_of_any_size_has_the_files_of_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight modules with three stages each, among other texts, and a folder of nine texts; batches of four."""
    for folder in ("dumps", "texts", "dumps/below"):
        (tmp_path / folder).mkdir()
    for number in range(8):
        for stage in ("before_optimizations", "cpu_after_optimizations", "cpu_after_optimizations-buffer-assignment"):
            (tmp_path / "dumps" / f"module_{number:04d}.jit_f{number}.{stage}.txt").touch()
    for number in range(9):
        for folder in ("dumps", "dumps/below", "texts"):
            (tmp_path / folder / f"{number}.txt").touch()

    def names() -> list[str]:
        files = find_inputs([str(tmp_path)], None, Shard())
        return [str(Path(file.path).relative_to(tmp_path)) for file in files if isinstance(file, FleetInput)]

    small = names()
    monkeypatch.setattr(inputs, "BATCH_FILES", 4)
    assert names() == small
    assert small == [f"dumps/module_{n:04d}.jit_f{n}.cpu_after_optimizations.txt" for n in range(8)] + [
        f"texts/{n}.txt" for n in range(9)
    ]


def test_texts_below_a_folder_of_dumps_do_not_count(tmp_path: Path) -> None:
    job = write_job(tmp_path / "dumps", ranks=1)
    sidecars = job / "build7" / "0" / "module_0000.jit_f0"
    sidecars.mkdir()
    (sidecars / "module.mlir").write_text("module @jit_f0 {}\n")
    assert collect(tmp_path / "store", job)[0]["read"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--label", "build"], 2, "--label is NAME=VALUE"),
        (["--label-from", "dumps/*"], 2, "--label-from needs a label in braces"),
        (["--tables", "parms"], 2, "did you mean 'params'"),
        (["--passes", "mem"], 2, "no pass 'mem'"),
        (["--shard", "5/4"], 2, "--shard is N/COUNT"),
        (["--profile", "abacus"], 2, "abacus"),
        (["-"], 2, "standard input"),
    ],
)
def test_wrong_options_write_nothing(tmp_path: Path, arguments: list[str], status: int, message: str) -> None:
    store = tmp_path / "store"
    job = [] if arguments == ["-"] else [write_job(tmp_path / "dumps", 1, 1)]
    done = call_text("collect", *job, *arguments, "--store", store)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert message in done.stderr
    assert not list(store.rglob("*.*s*l*"))


def test_other_directories_and_newer_stores_are_refused(tmp_path: Path) -> None:
    job = write_job(tmp_path / "dumps", 1, 1)
    done = call_text("collect", job, "--store", tmp_path / "dumps")
    assert (done.returncode, "no store" in done.stderr) == (2, True)
    store = tmp_path / "store"
    store.mkdir()
    (store / "store.json").write_text('{"schema_version": 2}')
    done = call_text("collect", job, "--store", store)
    assert (done.returncode, "store of schema 2" in done.stderr) == (2, True)


@pytest.mark.extras("duckdb")
def test_newer_stores_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"schema_version": 2}')
    done = call_text("query", tmp_path)
    assert (done.returncode, "store of schema 2" in done.stderr) == (2, True)


def test_without_the_extra_parts_are_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parts, "find_spec", lambda name: None)
    monkeypatch.setattr(run, "best_encoding", parts.best_encoding)
    collect(tmp_path / "store", write_job(tmp_path / "dumps", 1, 1))
    assert [path.suffix for path in (tmp_path / "store" / "modules").iterdir()] == [".jsonl"]
    done = call_text("query", tmp_path / "store")
    assert (done.returncode, done.stderr) == (2, "hlo-inspect: query needs the extra [fleet]: pip install duckdb\n")


def test_no_process_and_no_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    collect(tmp_path / "store", write_job(tmp_path / "dumps", 1, 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dumps", "store"]


def test_the_bar_shows_inputs_bytes_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlo_inspect.cli.commands.collect.on_terminal", lambda: True)
    with CollectionBar(Counts(read=4, bytes=100), wanted=True) as bar:
        bar.update(Counts(read=1, equal=1, skipped=1, failed=1, bytes=50))
        assert bar._bar is not None
        (task,) = bar._bar.tasks
    assert (task.description, task.completed, task.total) == ("3 of 4 inputs, 1 failed", 50, 100)


def test_the_readable_part_of_a_damaged_file_counts(tmp_path: Path) -> None:
    """The checksum at the end is wrong, far behind the first module: the damage is a row of its own."""
    whole = gzip.compress((text_of("jit_a") + "step 1 done\n" * 40_000 + text_of("jit_b", 5)).encode())
    path = tmp_path / "log.txt.gz"
    path.write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    table, errors = collect(tmp_path / "store", path, status=3)
    rows = {row["module.name"]: (row["status"], row["params.bytes"]) for row in raw_rows(tmp_path / "store")}
    assert (table["failed"], errors.count("\n")) == (1, 1)
    assert rows[None] == ("unreadable", None)
    assert rows["jit_a"][1] == 24
