"""Texts of inputs, read and hashed before they are sent to the processes that analyze them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.memory.sidecars import files_beside
from hlo_inspect.errors import HloInspectError, InputError, Location
from hlo_inspect.fleet.fleet_inputs import FleetInput, file_version
from hlo_inspect.hlo.input.dump_directory import AFTER, BEFORE, stage_of
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.settings.compile_settings import stablehlo_file
from hlo_inspect.remote_files import FileVersion, is_address

KEPT_BYTES = 1 << 25
"""A text up to this size is sent to the process that analyzes it; a larger one is read by both processes."""


class InputText(NamedTuple):
    """An input with the hashes of its text: `sha256` of the text, `digest` also of the files beside it that facts depend on.

    Both are None if the file is damaged. `content` is None if it is large or damaged.
    """

    file: FleetInput
    sha256: str | None = None
    digest: str | None = None
    content: bytes | None = None


def read_texts(files: Iterator[FleetInput], threads: int) -> Iterator[tuple[FleetInput, InputText | Exception]]:
    """Yield each input with its text, or the error if it cannot be read. Threads download ahead; 0 threads read here."""
    if not threads:
        yield from ((file, text_or_error(file)) for file in files)
        return
    ahead: deque[tuple[FleetInput, Future[InputText | Exception]]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for file in files:
            ahead.append((file, pool.submit(text_or_error, file)))
            if len(ahead) > threads:
                yield ahead[0][0], ahead.popleft()[1].result()
        while ahead:
            yield ahead[0][0], ahead.popleft()[1].result()
    finally:
        pool.shutdown(cancel_futures=True)


def text_or_error(file: FleetInput) -> InputText | Exception:
    """Read an input, again if it changes meanwhile. Return the error if it cannot be read."""
    try:
        for readings in range(file.readings - 1, -1, -1):
            text = _read(file._replace(readings=readings))
            now = file_version(file.path)
            if is_same(file.version, now):
                return text
            file = file._replace(version=now)
    except Exception as error:
        return error
    return InputError("changes while it is read", Location(file.path))


def is_same(version: FileVersion, now: FileVersion) -> bool:
    """Return True if a file has not changed: by its ETag, because a listing may state times less exactly."""
    if version.etag is not None and now.etag is not None:
        return version.etag == now.etag
    return version == now


def _read(file: FleetInput) -> InputText:
    text = sha256()
    pieces: list[bytes] | None = []
    size = 0
    try:
        for piece in open_source(file.path).decompressed():
            text.update(piece)
            size += len(piece)
            if pieces is not None:
                pieces.append(piece)
                if size > KEPT_BYTES:
                    pieces = None
        digest = text.copy()
        digest.update(stage_of(file.path).encode())
        for sidecar in [] if is_address(file.path) else _files_beside(file.path):
            digest.update(sidecar.read_bytes())
    except HloInspectError:  # of a damaged file, the reader takes what is readable and reports the rest
        return InputText(file)
    return InputText(file, text.hexdigest(), digest.hexdigest(), b"".join(pieces) if pieces is not None else None)


def _files_beside(path: str) -> Iterator[Path]:
    """Yield the files beside a text that its facts and findings depend on."""
    yield from files_beside(path)
    stage = stage_of(path)
    if not stage:
        return
    with suppress(OSError):
        stablehlo = stablehlo_file(Path(path))
        if stablehlo is not None:
            yield stablehlo
    if stage.endswith(AFTER):
        stem, _, end = path.rpartition(stage)
        before = Path(f"{stem}{BEFORE}{end}")
        if before.is_file():
            yield before
