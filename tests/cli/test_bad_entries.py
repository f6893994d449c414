"""Entries of a directory that cannot be read: the command names each of them, and answers for the others."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.calling import call_text

TEXT = "HloModule {0}\n\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}}\n"
LOOP = "Too many levels of symbolic links"
DUMP, OTHER = (f"module_000{number}.f.after_optimizations.txt" for number in (1, 2))
NAME = os.fsdecode(b"\xff.txt")
"""A name that is no UTF-8."""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Make a dump directory with a module and a link to itself, each named as another module."""
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / DUMP).write_text(TEXT.format("f"))
    (folder / OTHER).symlink_to(OTHER)
    return folder


def modules(done: CompletedProcess[str]) -> list[str]:
    return [json.loads(line)["facts"]["module.name"] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("command", ["summary", "lint", "collectives"])
def test_a_link_to_itself(dump: Path, command: str) -> None:
    done = call_text(command, dump, "--format", "jsonl")
    assert (done.returncode, modules(done)) == (3, ["f"])
    assert done.stderr == f"hlo-inspect: {dump / OTHER}: cannot be read: {LOOP}\n"


def test_a_page_and_normal_texts_beside_a_link_to_itself(dump: Path) -> None:
    done = call_text("report", dump, "-o", "page.html", folder=dump.parent)
    assert (done.returncode, done.stderr.count(LOOP)) == (3, 1)
    assert (dump.parent / "page.html").stat().st_size > 10_000
    done = call_text("normalize", dump)
    assert (done.returncode, done.stderr.count(LOOP), done.stdout.count("ENTRY")) == (3, 1, 1)


def test_two_links_of_any_name_are_counted(dump: Path) -> None:
    (dump / "loop").symlink_to("loop")
    done = call_text("list", dump, "--format", "tsv")
    assert (done.returncode, [line.split("\t")[0] for line in done.stdout.splitlines()[1:]]) == (3, ["f"])
    assert done.stderr == f"hlo-inspect: {dump / 'loop'}: cannot be read: {LOOP}; 1 more of this directory cannot be read\n"


def test_the_history_of_passes_beside_a_link_to_itself(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        (tmp_path / f"module_0001.f.000{number}.p.after_{name}.txt").write_text(TEXT.format("f"))
    broken = tmp_path / "module_0002.g.0000.p.after_a.txt"
    broken.symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    done = call_text("history", tmp_path)
    assert (done.returncode, LOOP in done.stderr) == (3, True)
    assert done.stdout.startswith("f in ")


@pytest.mark.parametrize("command", ["history", "ranks", "recompiles", "list"])
def test_a_name_that_is_too_long_is_no_fault_of_standard_output(tmp_path: Path, command: str) -> None:
    done = call_text(command, "a" * 300, folder=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("hlo-inspect: aaaa")
    assert "File name too long" in done.stderr


def test_a_long_name_of_an_instruction(tmp_path: Path) -> None:
    path, name = tmp_path / "m.txt", "y" * 300
    path.write_text(TEXT.format("f, is_scheduled=true").replace(" y ", f" {name} "))
    done = call_text("memory", path, name)
    assert (done.returncode, "yyyy" in done.stdout) == (0, True)


@pytest.mark.extras("duckdb")
def test_a_collection_beside_entries_that_cannot_be_read(dump: Path, tmp_path: Path) -> None:
    """The inputs are there after the first run: the next one reads none again."""
    store = tmp_path / "store"
    (dump / "loop").symlink_to("loop")
    (dump / "others").mkdir()
    (dump / "others" / NAME).write_text(TEXT.format("g"))
    arguments = ("collect", dump, dump / "others", "--store", store, "--label-from", f"{dump}/others/{{name}}.txt")
    for read, skipped in ((2, 0), (0, 2)):
        done = call_text(*arguments, "--format", "csv")
        assert done.returncode == 3
        assert done.stderr.splitlines() == [f"hlo-inspect: {dump / name}: cannot be read: {LOOP}" for name in ("loop", OTHER)]
        (row,) = csv.DictReader(done.stdout.splitlines())
        assert (row["read"], row["skipped"]) == (str(read), str(skipped))
    query = 'SELECT "module.name", input, labels FROM modules ORDER BY 1'
    rows = call_text("query", store, query, "--format", "tsv").stdout.splitlines()[1:]
    assert [row.split("\t")[:2] for row in rows] == [["f", str(dump / DUMP)], ["g", f"{dump}/others/\\udcff.txt"]]
    assert "udcff" in rows[1].split("\t")[2]


def test_a_collection_beside_a_named_pipe(dump: Path, tmp_path: Path) -> None:
    pipe = dump / "module_0003.f.after_optimizations.txt"
    os.mkfifo(pipe)
    (dump / OTHER).unlink()
    done = call_text("collect", dump, "--store", tmp_path / "store", "--format", "csv")
    assert (done.returncode, next(csv.DictReader(done.stdout.splitlines()))["read"]) == (3, "1")
    assert done.stderr == f"hlo-inspect: {pipe}: is a named pipe: name it itself to read what is written to it\n"


@pytest.mark.extras("duckdb")
def test_a_part_of_a_store_that_is_a_link_to_itself(dump: Path, tmp_path: Path) -> None:
    store, link = tmp_path / "store", tmp_path / "store" / "modules" / "a.parquet"
    (dump / OTHER).unlink()
    assert call_text("collect", dump, "--store", store).returncode == 0
    link.symlink_to(link.name)
    done = call_text("query", store, 'SELECT "module.name" FROM modules', "--format", "csv")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (3, ["f"])
    assert done.stderr == f"hlo-inspect: {link}: cannot be read: {LOOP}\n"
    assert call_text("collect", dump, "--store", store).returncode == 3


@pytest.mark.extras("duckdb")
def test_a_query_that_is_no_utf_8(dump: Path, tmp_path: Path) -> None:
    (dump / OTHER).unlink()
    assert call_text("collect", dump, "--store", tmp_path / "store").returncode == 0
    done = call_text("query", tmp_path / "store", f"SELECT '{os.fsdecode(bytes([255]))}'")
    assert (done.returncode, done.stderr) == (2, "hlo-inspect: SQL is UTF-8, which \"SELECT '\\udcff'\" is not\n")


@pytest.mark.extras("duckdb")
def test_duckdb_without_memory(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    def fail(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Failed to allocate block")

    (dump / OTHER).unlink()
    assert call_text("collect", dump, "--store", tmp_path / "store").returncode == 0
    monkeypatch.setattr("hlo_inspect.fleet.database.connect", fail)
    done = call_text("query", tmp_path / "store", "SELECT 1")
    assert (done.returncode, done.stderr.startswith("hlo-inspect: out of memory; ")) == (3, True)


def test_a_label_that_is_no_utf_8(dump: Path, tmp_path: Path) -> None:
    done = call_text("collect", dump, "--store", tmp_path / "store", "--label", f"a={NAME}")
    assert (done.returncode, done.stderr) == (2, "hlo-inspect: --label is UTF-8, which 'a=\\udcff.txt' is not\n")


@pytest.mark.parametrize(("second", "deviates"), [("whole", False), ("another", True), ("missing", False)])
def test_a_rank_with_a_link_to_itself_is_compared(tmp_path: Path, second: str, deviates: bool) -> None:
    """A module that such a rank lacks may be behind the link, and is no deviation."""
    for rank in range(3):
        (tmp_path / f"{rank}").mkdir()
        for name, file in (("f", DUMP), ("g", OTHER)):
            (tmp_path / f"{rank}" / file.replace(".f.", f".{name}.")).write_text(TEXT.format(name))
    path = tmp_path / "2" / OTHER.replace(".f.", ".g.")
    if second == "another":
        path.write_text(TEXT.format("g").replace("negate", "abs"))
    elif second == "missing":
        path.unlink()
    (tmp_path / "2" / "loop").symlink_to("loop")
    done = call_text("ranks", str(tmp_path / "{rank}"))
    assert (done.returncode, done.stderr) == (3, f"hlo-inspect: {tmp_path / '2' / 'loop'}: cannot be read: {LOOP}\n")
    first = done.stdout.partition("\n")[0]
    assert ("no rank deviates" in first or "all ranks run the same programs" in first) != deviates, first


def test_a_name_with_a_line_end_is_one_line(tmp_path: Path) -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n"
    (tmp_path / "a\nb.txt").write_text(text)
    (tmp_path / "c.txt").write_text(text)
    done = call_text("list", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 modules" in done.stdout
    assert "a\\nb.txt\n" in done.stdout
