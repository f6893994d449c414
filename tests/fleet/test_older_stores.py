"""Stores of the version before, and parts with fewer or more columns than those of today."""

from __future__ import annotations

import json
import tarfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hlo_inspect.fleet import run
from hlo_inspect.fleet.fleet_inputs import FleetInput
from hlo_inspect.fleet.parts import connect, literal
from hlo_inspect.fleet.run import KnownInputs
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import FileVersion
from tests.calling import call_text
from tests.fleet.stores import ask, collect, raw_rows, text_of, write_job

pytestmark = pytest.mark.extras("duckdb")
DATA = Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return the store of version 1.0.0, which wrote Parquet with pyarrow."""
    with tarfile.open(DATA / "stores" / "1.0.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def test_a_store_of_the_version_before_answers_as_it_is(old: Path) -> None:
    """The figures of `expected.json` are XLA's. Parts are Parquet and lines; `scan_fsdp` was read twice."""
    sql = (
        """SELECT input, labels['build'], labels['team'], status, "params.bytes", "custom_calls.target.<target>" FROM modules"""
    )
    rows = {
        "cpu_scan_fsdp.after.txt": ("one", "", "ok", EXPECTED["cpu/scan_fsdp.after.txt"]),
        "cpu_sgd_unused.after.txt": ("one", "vision", "ok", EXPECTED["cpu/sgd_unused.after.txt"]),
        "handmade_custom_calls.txt": ("one", "vision", "ok", None),
        "noise.txt": ("one", "vision", "unreadable", None),
        "cpu_bf16_master.after.txt": ("two", "", "ok", EXPECTED["cpu/bf16_master.after.txt"]),
        "handmade_control_flow.txt": ("two", "", "ok", None),
    }
    answers = {Path(line.partition(",")[0]).name: line.split(",", 5)[1:] for line in ask(old, sql)}
    assert {name: tuple(words[:3]) for name, words in answers.items()} == {name: row[:3] for name, row in rows.items()}
    for name, (*_, figures) in rows.items():
        if figures is not None:
            assert int(answers[name][3]) == figures["facts"]["params.bytes"]
    assert '""__cublas$lt$matmul"": 1' in answers["handmade_custom_calls.txt"][4]
    assert ask(old, "SELECT lower_bounds['cost.executed_bytes_accessed'] FROM modules WHERE cardinality(lower_bounds) > 0") == [
        "453.0"
    ]
    assert ask(old, "SELECT rule, name FROM findings") == ["HI102,unused-parameter"]
    views = call_text("query", old, "--format", "csv").stdout.splitlines()[1:]
    assert [line.rpartition(",")[0] for line in views[:3]] == ["modules,6", "findings,1", "params,18"]
    assert {line.partition(",")[0] for line in views[3:]} == {"collectives", "cost_by_phase"}


def test_inputs_of_the_version_before_are_not_read_again(old: Path) -> None:
    rows = raw_rows(old)
    assert len(rows) == 7
    files = {}
    for row in rows:
        changed = int((row["changed"] - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000 + 0.5)
        files[Path(row["input"]).name] = FleetInput(row["input"], FileVersion(row["input_bytes"], changed, row["etag"]))
    present = KnownInputs(Store(str(old)), retries_failed=False)
    assert all(present.passes_of(file) is not None for file in files.values())
    assert not present.lacks(frozenset({"summary"}))
    present = KnownInputs(Store(str(old)), retries_failed=True)
    assert [name for name, file in files.items() if present.passes_of(file) is None] == ["noise.txt"]


@pytest.mark.parametrize("encoding", ["parquet", "jsonl"])
def test_a_store_of_the_version_before_grows(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(run, "best_encoding", lambda: encoding)
    collect(old, write_job(tmp_path / "dumps", 1, 2))
    names = ask(old, """SELECT "module.name" FROM modules WHERE status = 'ok' ORDER BY 1""")
    assert names == ["control_flow", "custom_calls", "jit_f0", "jit_f1", *["jit_step"] * 3]


def test_readers_see_the_types_of_the_version_before(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    collect(tmp_path / "new", write_job(tmp_path / "dumps", 1, 1), "--tables", "params")
    for relation in ("modules", "findings", "tables/params"):
        types = []
        for store in (old, tmp_path / "new"):
            (part,) = (store / relation).glob("*.parquet")
            with closing(connect()) as connection:
                described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({literal(str(part))})").fetchall()  # noqa: S608
            types.append({name: type_ for name, type_, *_ in described})
        before, now = types
        common = before.keys() & now.keys()
        assert len(common) > 12
        assert {name: before[name] for name in common} == {name: now[name] for name in common}


def test_parts_with_fewer_and_more_columns_answer_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part lacks columns, another one has columns that this version does not know, and the last one is of JSON lines."""
    monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    job, store = write_job(tmp_path / "dumps", 1, 3), tmp_path / "store"
    first, second, third = sorted(job.rglob("*.txt"))
    for dump in (first, second):
        collect(store, dump, "--tables", "params")
        for relation in ("modules", "tables/params"):
            (part,) = (store / relation).glob("*.parquet")
            part.rename(part.with_suffix(f".{dump.stem[:11]}"))
    without = 'SELECT * EXCLUDE ("params.bytes", lower_bounds, upper_bounds)'
    with_bounds = "SELECT * REPLACE (MAP {'params.bytes': 99.0::DOUBLE} AS upper_bounds), 1 AS later"
    with_cells = "SELECT *, 7::BIGINT AS later_bytes"
    for name, modules, cells in (
        ("module_0000", without, "SELECT * EXCLUDE (bytes)"),
        ("module_0001", with_bounds, with_cells),
    ):
        for relation, columns in (("modules", modules), ("tables/params", cells)):
            (part,) = (store / relation).glob(f"*.{name}")
            with closing(connect()) as connection:
                target = literal(str(part.with_suffix(".parquet")))
                connection.execute(f"COPY ({columns} FROM read_parquet({literal(str(part))})) TO {target}")
            part.unlink()
    monkeypatch.setattr(run, "best_encoding", lambda: "jsonl")
    collect(store, third, "--tables", "params")
    answers = ask(
        store, 'SELECT "module.name", "params.bytes", lower_bounds, upper_bounds, "opcode.add" FROM modules ORDER BY 1'
    )
    assert answers == ["jit_f0,,,,1", 'jit_f1,16,{},"{""params.bytes"": 99.0}",1', "jit_f2,20,{},{},1"]
    # of f1 and f2, p has 8 and 12 bytes, and q 8
    assert ask(store, "SELECT number, bytes, later_bytes FROM params ORDER BY ALL") == [
        "0,8,7",
        "0,12,",
        "0,,",
        "1,8,7",
        "1,8,",
        "1,,",
    ]
    assert collect(store, job)[0]["skipped"] == 3


@pytest.mark.parametrize("encoding", ["parquet", "jsonl"])
def test_a_path_that_is_no_utf_8_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(run, "best_encoding", lambda: encoding)
    (tmp_path / "dumps").mkdir()
    path = tmp_path / "dumps" / "a\udcff.txt"
    try:
        path.write_text(text_of("jit_f"))
    except OSError:
        pytest.skip("this file system keeps text only")
    store = tmp_path / "store"
    assert collect(store, tmp_path / "dumps")[0]["read"] == 1
    assert ask(store, "SELECT input FROM modules") == [str(tmp_path / "dumps" / "a\\udcff.txt")]
    assert collect(store, tmp_path / "dumps")[0]["skipped"] == 1


def test_hashes_of_the_version_before_are_told(old: Path, tmp_path: Path) -> None:
    """Five of its modules have hashes. A query without hashes says nothing of them."""
    start = "hashes of programs: 5 of 5 modules have those of hlo-inspect 1.0.0"
    hashes = """SELECT name, "fingerprint.program" FROM modules"""
    assert [note for note in notes_of("query", old, hashes) if note.startswith(start)]
    assert [note for note in notes_of("query", old, "near-duplicates") if note.startswith(start)]
    assert notes_of("query", old, "SELECT name FROM modules") == []
    new = tmp_path / "new"
    job = write_job(tmp_path / "dumps", 1, 1)
    assert notes_of("collect", job, "--store", new) == []
    assert notes_of("query", new, hashes) == []
    (note,) = notes_of("collect", job, "--store", old)
    assert "the store has those of hlo-inspect 1.0.0" in note
    assert [note for note in notes_of("query", old, hashes) if "5 of 6 modules" in note]


def notes_of(*arguments: str | Path) -> list[str]:
    notes: list[str] = json.loads(call_text(*arguments, "--format", "json").stdout)["notes"]
    return notes
