"""Remote inputs and stores: object stores of others on loopback, web pages, archives, and what is refused."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest

from hlo_inspect import remote_files, remote_listings
from hlo_inspect.fleet import fleet_inputs as inputs
from hlo_inspect.fleet import run
from hlo_inspect.fleet.fleet_inputs import FleetInput, Shard, find_inputs
from hlo_inspect.hlo.input import source
from tests.calling import call_text
from tests.fleet.servers import GCS, S3, python_process, web_server
from tests.fleet.stores import ask, collect, raw_rows, text_of, write_job

pytestmark = pytest.mark.extras("fsspec")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("s3", marks=pytest.mark.extras("s3fs", "moto", "duckdb")),
        pytest.param("gs", marks=pytest.mark.extras("gcsfs", "gcp_storage_emulator")),
    ],
)
def bucket(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the address of a bucket in a server of that protocol."""
    with python_process({"s3": S3, "gs": GCS}[request.param]) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("STORAGE_EMULATOR_HOST", address)
        import fsspec

        files = fsspec.filesystem(request.param, skip_instance_cache=True)
        if request.param == "s3":
            files.mkdir("fleet")
        for name, size in (
            ("0/module_0001.jit_f.cpu_after_optimizations", 4),
            ("1/module_0001.jit_f.cpu_after_optimizations", 4),
        ):
            files.pipe_file(f"fleet/dumps/{name}.txt", text_of("jit_f", size).encode())
        files.pipe_file(
            "fleet/dumps/1/module_0002.jit_g.cpu_after_optimizations.txt.gz", gzip.compress(text_of("jit_g").encode())
        )
        yield f"{request.param}://fleet"


def test_every_command_reads_objects_folders_and_patterns(bucket: str) -> None:
    page = f"{bucket}/dumps/1/module_0002.jit_g.cpu_after_optimizations.txt.gz"
    report = json.loads(call_text("params", page, "--format", "json").stdout)
    assert (report["input"]["path"], report["facts"]["params.bytes"]) == (page, 16 + 8)
    for argument in (f"{bucket}/dumps", f"{bucket}/dumps/*/module_*"):
        done = call_text("list", argument, "--format", "csv")
        assert (done.returncode, done.stdout.count("cpu_after_optimizations,")) == (0, 3)
    done = call_text("diff", f"{bucket}/dumps/0", f"{bucket}/dumps/1")
    assert (done.returncode, "jit_g" in done.stdout) == (0, True)
    for missing in (f"{bucket}/nothing.txt", f"{bucket}/nothing/*"):
        done = call_text("summary", missing)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)


def test_a_large_folder_is_listed_in_pages_and_batches(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page has one object."""
    whole = [file for file in find_inputs([f"{bucket}/dumps"], None, Shard()) if isinstance(file, FleetInput)]
    monkeypatch.setattr(remote_listings, "PAGE_OBJECTS", 1)
    monkeypatch.setattr(inputs, "BATCH_FILES", 1)
    assert list(find_inputs([f"{bucket}/dumps"], None, Shard())) == whole
    assert len(whole) == 3


def test_a_compressed_object_is_downloaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local file is decompressed to its end first, which would be a second download."""
    import fsspec

    fsspec.filesystem("memory").pipe_file("/once/jit_g.txt.gz", gzip.compress(text_of("jit_g").encode()))
    opened: list[str] = []
    open_remote = remote_files.open_remote

    def counting(address: str) -> IO[bytes]:
        opened.append(address)
        return open_remote(address)

    monkeypatch.setattr(source, "open_remote", counting)
    done = call_text("params", "memory://once/jit_g.txt.gz")
    assert (done.returncode, "jit_g" in done.stdout) == (0, True)
    assert len(opened) == 1


def test_a_store_and_a_report_in_a_bucket(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of S3 become Parquet, which DuckDB reads from there; local files become lines in GCS."""
    store, is_s3 = f"{bucket}/store", bucket.startswith("s3")
    if is_s3:
        monkeypatch.setattr(run, "best_encoding", lambda: "parquet")
    dumps = f"{bucket}/dumps" if is_s3 else str(write_job(tmp_path / "dumps", 1, 1))
    table, _ = collect(store, dumps, "--label-from", f"{bucket}/dumps/{{rank}}/*")
    assert (table["read"], table["equal"]) == ((2, 1) if is_s3 else (1, 0))
    assert collect(store, dumps)[0]["skipped"] == table["modules"]
    if is_s3:
        sql = """SELECT labels['rank'], "module.name", etag IS NOT NULL AND changed IS NOT NULL FROM modules ORDER BY 1, 2"""
        assert ask(store, sql) == ["0,jit_f,true", "1,jit_f,true", "1,jit_g,true"]
    else:
        assert [row["module.name"] for row in raw_rows(store)] == ["jit_f0"]
        listed = list(find_inputs([f"{bucket}/dumps"], None, Shard()))
        assert len(listed) == 3
        assert all(isinstance(file, FleetInput) and file.version.etag and file.version.changed for file in listed)
    done = call_text("params", f"{bucket}/dumps/0", "--format", "json", "-o", f"{bucket}/report.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert call_text("diff", f"{bucket}/report.json", f"{bucket}/dumps/0").returncode == 0


@pytest.mark.extras("aiohttp")
def test_web_pages_and_archives(tmp_path: Path) -> None:
    (tmp_path / "dump.txt.gz").write_bytes(gzip.compress(text_of("jit_f").encode()))
    with zipfile.ZipFile(tmp_path / "dumps.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(2):
            archive.writestr(f"dumps/{number}.txt", text_of(f"jit_{number}"))
    with web_server(tmp_path) as address:
        assert (
            json.loads(call_text("params", f"{address}/dump.txt.gz", "--format", "json").stdout)["facts"]["params.bytes"] == 24
        )
        for archive_address in (f"zip://dumps/*.txt::{tmp_path}/dumps.zip", f"zip://dumps::{address}/dumps.zip"):
            done = call_text("list", archive_address, "--format", "csv")
            assert (done.returncode, done.stderr) == (0, "")
            assert {line.partition(",")[0] for line in done.stdout.splitlines()[1:]} == {"jit_0", "jit_1"}
        done = call_text("summary", f"{address}/nothing.txt")
        assert (done.returncode, done.stderr) == (
            3,
            f"hlo-inspect: {address}/nothing.txt: cannot be read: the server answers 404 (not found)\n",
        )
    table, _ = collect(tmp_path / "store", f"zip://dumps::{tmp_path}/dumps.zip")
    assert table["modules"] == 2


def test_a_bomb_in_an_archive_meets_the_limit_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dump.txt", b"HloModule m" + b" " * (1 << 23))
    done = call_text("summary", f"zip://dump.txt::{tmp_path}/bomb.zip")
    assert (done.returncode, "a line is longer than 1 MiB" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("module", "address", "command"),
    [
        ("fsspec", "s3://bucket/dump.txt", "pip install s3fs"),
        ("s3fs", "s3://bucket/*", "pip install s3fs"),
        ("gcsfs", "gs://bucket/dumps", "pip install gcsfs"),
        ("adlfs", "az://container/dump.txt", "pip install adlfs"),
        ("aiohttp", "https://127.0.0.1/dump.txt", "pip install fsspec aiohttp"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, module: str, address: str, command: str) -> None:
    from fsspec.registry import _registry

    for name in ("s3", "gs", "az", "https"):
        _registry.pop(name, None)
    monkeypatch.setitem(sys.modules, module, None)
    for name in [name for name in sys.modules if name.startswith("fsspec.implementations.http")]:
        monkeypatch.delitem(sys.modules, name)
    done = call_text("summary", address)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert command in done.stderr
    assert "needs the extra [" in done.stderr


def test_unknown_protocols_and_those_that_cannot_replace_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(text_of("jit_f"))
    done = call_text("summary", "abc://x/dump.txt")
    assert (done.returncode, done.stderr) == (
        3,
        "hlo-inspect: abc://x/dump.txt: cannot be read: no file system is known for abc://\n",
    )
    for command, option in (("summary", "-o"), ("collect", "--store")):
        done = call_text(command, path, option, "ftp://host/page")
        assert (done.returncode, done.stderr.count("\n"), "cannot replace a file in one step" in done.stderr) == (2, 1, True)


@pytest.mark.extras("s3fs")
def test_refused_credentials_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from s3fs import S3FileSystem

    monkeypatch.setattr(S3FileSystem, "retries", 1)

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815 - the name of the base class

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    done = call_text("summary", "s3://bucket/dump.txt")
    server.shutdown()
    server.server_close()
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "cannot be read" in done.stderr


def test_a_listing_is_not_kept(tmp_path: Path) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe_file("/growing/one.txt", text_of("jit_one").encode())
    assert call_text("list", "memory://growing", "--format", "csv").stdout.count("jit_") == 1
    files.pipe_file("/growing/two.txt", text_of("jit_two").encode())
    assert call_text("list", "memory://growing", "--format", "csv").stdout.count("jit_") == 2
    files.rm("/growing", recursive=True)


@pytest.mark.parametrize("command", ["ranks", "recompiles", "history"])
def test_commands_of_directories_read_no_address(command: str) -> None:
    done = call_text(command, "s3://bucket/dumps")
    message = f"hlo-inspect: s3://bucket/dumps: {command} reads local directories only; copy the dump to this machine\n"
    assert (done.returncode, done.stderr) == (2, message)
