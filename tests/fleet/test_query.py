"""`query`: views, formats, named queries, and all that a query may not do."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from shlex import split

import pytest

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.fleet import run
from hlo_inspect.fleet.database import Database
from hlo_inspect.fleet.fleet_inputs import parse_assignments
from hlo_inspect.fleet.query_reports import find_query, named_queries, query_report
from hlo_inspect.fleet.store import Store
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.layout import make_grid
from tests.calling import call_text
from tests.fleet.stores import ask, collect, raw_rows, text_of, write_job

pytestmark = pytest.mark.extras("duckdb")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of two builds: build b has another `jit_f0`, and `jit_only`."""
    folder = tmp_path_factory.mktemp("fleet")
    for build, sizes in (("a", {"jit_f0": 4, "jit_f1": 8}), ("b", {"jit_f0": 6, "jit_f1": 8, "jit_only": 3})):
        directory = folder / "dumps" / build
        directory.mkdir(parents=True)
        for name, size in sizes.items():
            (directory / f"{name}.txt").write_text(text_of(name, size))
    options = ("--label-from", f"{folder}/dumps/{{build}}/*", "--tables", "cost_by_phase", "--passes", "memory")
    collect(folder / "store", folder / "dumps", *options)
    return folder / "store"


@pytest.fixture(scope="module")
def database(store: Path) -> Iterator[Database]:
    """Return the database of that store."""
    with closing(Database(Store(str(store)))) as opened:
        yield opened


def test_views_and_their_rows(store: Path) -> None:
    lines = call_text("query", store, "--format", "csv").stdout.splitlines()
    assert [line.rpartition(",")[0] for line in lines[1:3]] == ["modules,5", "findings,5"]
    assert ask(store, "findings-by-rule-and-label", "--set", "label=build")[1].startswith("HI102,unused-parameter,info,a,2,2,")
    # p and q of f0 in build a have 4 and 2 floats
    assert ask(store, """SELECT "params.bytes" FROM modules WHERE "module.name" = 'jit_f0' AND labels['build'] = 'a'""") == [
        "24"
    ]


COLUMNS = '"module.name" AS name, "params.bytes" AS bytes, labels, changed IS NULL AS odd, 1.5 AS half'
NAMES_AND_BYTES = f"SELECT {COLUMNS} FROM modules ORDER BY 1, 2"  # noqa: S608 - a text of the test


@pytest.mark.parametrize("form", FORMATS)
def test_each_format(database: Database, form: str) -> None:
    stream = StringIO()
    FORMATS[form]([query_report("store", "Rows", database.query(NAMES_AND_BYTES, {}))], stream, RenderOptions())
    assert "jit_only" in stream.getvalue().replace("\\", "")


def test_the_types_of_columns(store: Path) -> None:
    done = call_text("query", store, NAMES_AND_BYTES, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    (table,) = json.loads(done.stdout)["tables"]
    assert [column["unit"] for column in table["columns"]] == ["text", "bytes", "text", "bool", "number"]
    assert table["rows"][0] == ["jit_f0", 24, '{"build": "a"}', False, 1.5]


ANSWERS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    # names of these programs and the figures of their parameters: f32[n] and f32[2], of which nothing is donated
    "changed-programs": ((), ["jit_f0,2,2"]),
    "compiles-of-function": (("name=jit_f1",), ["false,3,40", "true,3,40"]),
    "findings-by-rule-and-label": (
        ("label=build",),
        ["HI102,unused-parameter,info,b,3,3,24.0,bytes", "HI102,unused-parameter,info,a,2,2,16.0,bytes"],
    ),
    "largest-recompute": ((), []),
    "memory-peak-by-label": (("label=build",), ["a,72,jit_f1,2", "b,72,jit_f1,3"]),
    "most-bytes-not-donated": (
        (),
        ["jit_f1,40,40,8", "jit_f1,40,40,8", "jit_f0,32,32,8", "jit_f0,24,24,8", "jit_only,20,20,8"],
    ),
    "near-duplicates": ((), []),
    "only-this-label": (("label=build", "value=b"), ["jit_f0", "jit_only"]),
}
"""Named query -> values of its parameters, and its rows without paths, hashes and times."""


@pytest.mark.parametrize("name", ANSWERS)
def test_named_queries(database: Database, name: str) -> None:
    settings, expected = ANSWERS[name]
    table = query_report("store", name, database.query(find_query(name).sql, parse_assignments("--set", settings))).tables[0]
    rows = [[str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row] for row in table.rows]
    shown = [",".join(cell for cell in row if "/" not in cell and "+00:00" not in cell and len(cell) != 32) for row in rows]
    if name == "only-this-label":
        shown = [row.partition(",")[0] for row in shown]
    assert shown == expected


def test_each_named_query_has_a_test_and_a_docstring() -> None:
    queries = named_queries()
    assert [query.name for query in queries] == sorted(ANSWERS)
    for query in queries:
        assert query.summary.endswith(".")
        assert sorted(query.parameters) == sorted(setting.partition("=")[0] for setting in ANSWERS[query.name][0])
    listed = call_text("query", "--list").stdout
    assert all(query.name in listed for query in queries)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "DROP VIEW modules",
        "CREATE TABLE copy AS SELECT * FROM modules",
        "COPY modules TO 'rows.csv'",
        "EXPORT DATABASE 'folder'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "SELECT * FROM read_text('dump.txt')",
        "SELECT * FROM 'dump.txt'",
        "SELECT * FROM glob('*')",
        "SELECT * FROM sniff_csv('dump.txt')",
        "SELECT * FROM named_queries",
        "SELECT nothing FROM modules",
        "SELEC 1",
        "",
    ],
)
def test_a_query_is_one_select_that_reads_the_views(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    (tmp_path / "dump.txt").write_text("secret\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refusal:
        database.query(sql, {})
    assert "\n" not in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == ["dump.txt"]


@pytest.mark.parametrize("sql", ["DROP VIEW modules", "no-such-query", "only-this-label"])
def test_a_refusal_is_one_line(store: Path, sql: str) -> None:
    done = call_text("query", store, sql)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_other_directories_are_inputs_and_no_stores(tmp_path: Path) -> None:
    done = call_text("query", tmp_path, "SELECT 1")
    assert (done.returncode, "is a directory without XLA dumps" in done.stderr) == (3, True)
    with pytest.raises(InputError, match="is no store: `hlo-inspect collect` writes one"):
        Database(Store(str(tmp_path)))


def test_options_of_modules_do_not_apply_to_stores(store: Path) -> None:
    done = call_text("query", store, "SELECT 1", "--module", "jit_f0", "--mesh", "data=2")
    message = "hlo-inspect: --module, --mesh do not apply to stores, whose modules were read by `collect`\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_lines_and_parquet_of_one_store_answer_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path / "dumps", 1, 2)
    first, second = sorted(job.rglob("*.txt"))
    collect(tmp_path / "store", first)
    monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    collect(tmp_path / "store", second)
    sql = 'SELECT "module.name", labels, "custom_calls.target.<target>", lower_bounds, passes FROM modules ORDER BY 1'
    assert ask(tmp_path / "store", sql) == [
        f'jit_f{n},{{}},{{}},{{}},"[""summary"", ""fingerprint"", ""memory""]"' for n in range(2)
    ]


@pytest.mark.parametrize("encoding", ["parquet", "jsonl"])
def test_a_truncated_part_is_named_and_its_inputs_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(run, "best_encoding", lambda: encoding)
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
    inputs = [line.rpartition("/")[2] for line in ask(store, "SELECT input FROM modules ORDER BY 1")]
    assert inputs == sorted(path.name for path in job.rglob("*.txt"))


def test_the_latest_reading_of_an_input_counts(tmp_path: Path) -> None:
    job, store = write_job(tmp_path / "dumps", 1, 2), tmp_path / "store"
    for _ in range(2):
        collect(store, job, "--again")
    assert len(raw_rows(store)) == 4
    assert ask(store, "SELECT count(*), count(DISTINCT input) FROM modules") == ["2,2"]
    assert ask(store, "SELECT count(*), count(DISTINCT module) FROM findings") == ["2,2"]


@pytest.mark.parametrize("again", [(), ("--again",)])
def test_the_latest_reading_is_that_of_the_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: tuple[str, ...]
) -> None:
    """A clock that was a day ahead counts no reading twice, and a file that is again what it was is read again."""
    file, store, now = tmp_path / "module.txt", tmp_path / "store", time.time_ns
    file.write_text(text_of("jit_f", 4))
    first = file.stat()
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time_ns", lambda: now() + 86_400 * 10**9)
        collect(store, file)
    for size in (8, 16):
        file.write_text(text_of("jit_f", size))
        collect(store, file, *again)
        assert ask(store, 'SELECT "params.bytes" FROM modules') == [str(4 * size + 8)]
    file.write_text(text_of("jit_f", 4))
    os.utime(file, ns=(first.st_atime_ns, first.st_mtime_ns))
    assert collect(store, file, *again)[0]["read"] == 1
    assert ask(store, 'SELECT "params.bytes" FROM modules') == ["24"]


def test_the_page_goes_from_dumps_to_a_query(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"```bash\n(pip install '.\[fleet\]'.*?)```", (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert block.count("\n") <= 10
    commands = re.split(r"\n(?=hlo-inspect)", block.replace("\\\n", ""))[1:]
    assert len(commands) == 6
    answers = []
    for command in commands:
        words = [str(tmp_path / "store") if word == "store" else word for word in split(command)[1:]]
        done = call_text(*words, folder=ROOT)
        assert (done.returncode, done.stderr) == (0, ""), command
        answers.append(done.stdout)
    assert "all-gather" in answers[-1]


@pytest.fixture
def two_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Make a store with two parts of one module each; return it and its second part of `modules`."""
    store, job = tmp_path / "store", write_job(tmp_path / "dumps", 1, 2)
    monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    parts: list[Path] = []
    for file in sorted(job.rglob("*.txt")):
        collect(store, file)
        parts += [path for path in store.glob("modules/*") if path not in parts]
    return store, parts[1]


def assert_left_out(store: Path, part: Path, sql: str, *rows: str) -> None:
    done = call_text("query", store, sql, "--format", "csv")
    message = f"hlo-inspect: {part}: is a damaged part of the store; remove it and collect its inputs again\n"
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (3, [*rows], message)


@pytest.mark.parametrize("columns", ['"module.name"', '"module.name", input', "count(*)", "DISTINCT read_at IS NULL"])
def test_a_part_with_damaged_pages_is_named_and_the_others_answer(two_parts: tuple[Path, Path], columns: str) -> None:
    store, part = two_parts
    sql = f"SELECT {columns} FROM modules ORDER BY 1"  # noqa: S608 - names of the store
    data = part.read_bytes()
    part.unlink()
    expected = ask(store, sql)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    part.write_bytes(b"PAR1" + bytes(len(data) - footer - 4) + data[-footer:])
    assert_left_out(store, part, sql, *expected)


@pytest.mark.parametrize(
    "columns", ["1 AS x", "module, read_at::VARCHAR AS read_at, input, status FROM {0}", "* EXCLUDE (module) FROM {0}"]
)
def test_a_part_of_another_schema_is_named(two_parts: tuple[Path, Path], columns: str, tmp_path: Path) -> None:
    import duckdb

    store, part = two_parts
    other = tmp_path / "other.parquet"
    duckdb.execute(f"COPY (SELECT {columns.format(f'read_parquet({str(part)!r})')}) TO '{other}'")
    part.unlink()
    expected = ask(store, "SELECT input FROM modules")
    other.rename(part)
    assert_left_out(store, part, "SELECT input FROM modules", *expected)


def test_a_part_of_lines_of_another_schema_is_named(two_parts: tuple[Path, Path]) -> None:
    store, part = two_parts
    part.unlink()
    lines = part.with_suffix(".jsonl")
    lines.write_text('{"x":1}\n', encoding="utf-8")
    assert_left_out(store, lines, "SELECT count(*) FROM modules", "1")
    assert "damaged part" in collect(store, *(store.parent / "dumps").rglob("*0001*.txt"), status=3)[1]


def test_an_error_of_a_query_names_no_part(two_parts: tuple[Path, Path]) -> None:
    """DuckDB raises it when it runs the query, as it does for damaged pages."""
    store, _ = two_parts
    done = call_text("query", store, "SELECT regexp_matches(input, '(') FROM modules")
    assert (done.returncode, done.stderr.count("\n"), "damaged" in done.stderr) == (2, 1, False)


def test_a_column_of_nulls_keeps_its_name(database: Database) -> None:
    result = database.query("SELECT input, NULL AS nothing, 1 AS one FROM modules", {})
    grid = make_grid(query_report("store", "Rows", result).table("rows"), 80)
    assert grid.header[1:] == ("nothing", "one")
