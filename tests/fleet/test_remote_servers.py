"""Servers of remote files that answer wrongly, slowly, elsewhere or not at all."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from hlo_inspect.remote_servers import limits_of
from tests.calling import call_text
from tests.fleet.servers import answering
from tests.fleet.stores import text_of

pytestmark = pytest.mark.extras("fsspec", "aiohttp")
TEXT = text_of("jit_f").encode()
PADDED = b"\n" * (12 << 20) + TEXT


def page(content: bytes, *headers: str, length: int | None = None) -> bytes:
    size = len(content) if length is None else length
    return "\r\n".join(["HTTP/1.1 200 OK", "Connection: close", f"Content-Length: {size}", *headers, "\r\n"]).encode() + content


def redirect(address: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {address}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 500 \x1b[31mEVIL\x1b[0m\r\nContent-Length: 0\r\n\r\n", "cannot be read: the server answers 500"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "cannot be read: the server answers 503"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "cannot be read: the server answers 404 (not found)"),
        (b"\x00\xff\x1b[31mgarbage\r\n\r\n", "cannot be read: the server's answer breaks HTTP"),
        (page(TEXT, length=-5), "cannot be read: the server's answer breaks HTTP"),
        (b"", "cannot be read: the server ends the connection without an answer"),
        (page(TEXT, length=10**18), "cannot be read: the server ends the connection before the end of the page"),
        (redirect("/page"), "cannot be read: the server redirects more than ten times"),
        (redirect("file:///etc/passwd"), "cannot be read: the server redirects to an address that is no web page"),
    ],
)
def test_what_a_web_server_answers_is_said(answer: bytes, message: str) -> None:
    with answering({"/page": answer}) as address:
        done = call_text("list", f"{address}/page")
        assert (done.returncode, done.stdout, done.stderr) == (3, "", f"hlo-inspect: {address}/page: {message}\n")


def test_no_connection_is_said() -> None:
    with answering({}) as address:
        pass
    done = call_text("list", f"{address}/page")
    assert (done.returncode, done.stderr) == (3, f"hlo-inspect: {address}/page: cannot be read: Connection refused\n")


@pytest.mark.parametrize("configured", [False, True])
def test_a_silent_server_meets_the_limit(configured: bool, tmp_path: Path) -> None:
    """It is silent before its answer, or inside of the page."""
    config = tmp_path / "hlo-inspect.toml"
    config.write_text("remote-timeout = 1\n")
    options = ("--config", config) if configured else ("--remote-timeout", "1")
    silence = "the server sends nothing for 1 s; --remote-timeout sets the limit"
    begin = time.monotonic()
    with answering({}) as address:
        done = call_text("list", f"{address}/page", *options)
    assert (done.returncode, done.stderr) == (3, f"hlo-inspect: {address}/page: cannot be read: {silence}\n")
    assert time.monotonic() - begin < 20  # and not the usual 30 s


def test_limits_of_object_stores_keep_the_configuration() -> None:
    """Names of options are those of s3fs (botocore), adlfs and gcsfs."""
    with answering({}) as address:
        call_text("list", f"{address}/page", "--remote-timeout", "1")
    waits = {"connect_timeout": 1, "read_timeout": 1}
    assert limits_of("s3", {}) == {"config_kwargs": waits}
    configured = {"config_kwargs": {"signature_version": "s3", "read_timeout": 99}, "anon": True}
    assert limits_of("s3", configured) == {"config_kwargs": {"signature_version": "s3", **waits}}
    assert limits_of("az", {}) == {"connection_timeout": 1, "read_timeout": 1}
    timeout = limits_of("gs", {})["requests_timeout"]
    assert (timeout.total, timeout.sock_connect, timeout.sock_read) == (None, 1, 1)
    web = limits_of("https", {"client_kwargs": {"trust_env": True, "headers": {"Authorization": "Bearer x"}}})["client_kwargs"]
    assert (web["trust_env"], web["headers"]["Authorization"], web["timeout"].sock_read) == (True, "Bearer x", 1)
    assert limits_of("memory", {}) == {}


@pytest.mark.parametrize("headers", [(), ("Content-Encoding: gzip",)])
def test_a_compressed_page_has_the_limits_of_a_file(
    headers: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    packed = gzip.compress(PADDED)
    (tmp_path / "page").write_bytes(packed)
    with answering({"/page": page(packed, *headers)}) as address:
        done = call_text("params", f"{address}/page", "--format", "json")
    for printed in (done, call_text("params", tmp_path / "page", "--format", "json")):
        assert any("decompression makes 12,5" in note for note in json.loads(printed.stdout)["notes"])
    assert caplog.records == []  # of a read behind the end


def test_a_redirect_to_another_host_is_told() -> None:
    def notes(page_address: str) -> list[str]:
        return list(json.loads(call_text("params", page_address, "--format", "json").stdout)["notes"])

    with answering({"/own": redirect("/page"), "/page": page(TEXT)}) as other:
        with answering({"/page": redirect(f"{other}/page")}) as first:
            redirected = notes(f"{first}/page")
        own = notes(f"{other}/own")
    hosts = [address.removeprefix("http://") for address in (first, other)]
    assert [note for note in redirected if note not in own] == [f"{hosts[0]} redirects to {hosts[1]}, which sends this page"]
    assert [note for note in own if note not in redirected] == []
