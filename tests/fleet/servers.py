"""Servers of others on loopback, one for a run of the tests, each at any free port."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Serve the files of a folder and return the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class calls it so
            """Print nothing."""

        def do_GET(self) -> None:
            """Answer a request of a part, as archives need it."""
            first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
            if not first:
                super().do_GET()
                return
            content = Path(self.translate_path(self.path)).read_bytes()
            part = content[int(first) : int(last or len(content)) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def end_headers(self) -> None:
            self.send_header("Accept-Ranges", "bytes")
            super().end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(answers: Mapping[str, bytes]) -> Iterator[str]:
    """Answer requests with the bytes of their path, whatever they are, and return the address; wait for others in silence."""

    class Answer(StreamRequestHandler):
        def handle(self) -> None:
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            if path in answers:
                self.wfile.write(answers[path])
            else:
                over.wait(60)

    over = threading.Event()
    with ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()


@contextmanager
def python_process(program: str, *arguments: str) -> Iterator[str]:
    """Run a program in a process of its own and return the first line that it prints, once it is ready."""
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


S3 = """
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
time.sleep(3600)
"""
GCS = """
import sys, time
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="fleet")
server.start()
print("http://127.0.0.1:{}".format(server._api._httpd.server_port), flush=True)
time.sleep(3600)
"""
