"""Files at remote addresses (`s3://`, `gs://`, `az://`, `https://`, `zip://…::…`), through fsspec.

No listing is kept between two calls. All errors of the libraries become OSError with one line, or MissingExtraError if a
package is missing.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, cast

from hlo_inspect.errors import MissingExtraError, UsageError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_listings import listing_pages
from hlo_inspect.remote_servers import WEB, limits_of, redirect_note, words_of

_ADDRESS = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]*+(?:://|::)", re.ASCII)
_MAGIC = lazy_pattern(r"[*?\[]")
BLOCK_BYTES = 1 << 22
"""Bytes that are requested at a time."""

_EXTRAS = {
    "s3": ("s3", "s3fs"),
    "s3a": ("s3", "s3fs"),
    "gs": ("gcs", "gcsfs"),
    "gcs": ("gcs", "gcsfs"),
    "az": ("azure", "adlfs"),
    "abfs": ("azure", "adlfs"),
    "abfss": ("azure", "adlfs"),
    "http": ("remote", "fsspec aiohttp"),
    "https": ("remote", "fsspec aiohttp"),
}
_REPLACES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})
"""Protocols whose objects are replaced in one step: readers see the old object or the new one."""

_ETAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "CRC")
_TIMES = ("LastModified", "updated", "last_modified", "mtime", "created")


class FileVersion(NamedTuple):
    """Size, time of change in microseconds since 1970, and ETag or checksum of a file; None if unknown."""

    size: int | None = None
    changed: int | None = None
    etag: str | None = None


class RemoteEntry(NamedTuple):
    """A file or folder of a remote listing."""

    address: str
    version: FileVersion
    is_folder: bool


class _FileSystem(NamedTuple):
    """A file system of fsspec, and the path of an address in it."""

    files: Any
    path: str
    protocol: str
    rest: str

    def address(self, path: str) -> str:
        """Return the address of another path."""
        return f"{self.protocol}://{path.removeprefix(f'{self.protocol}://')}{self.rest}"


def is_address(text: str) -> bool:
    """Return True for a remote address, as opposed to a path or a text."""
    return _ADDRESS.match(text) is not None


def inner_path(address: str) -> str:
    """Return a path without the archive that it is in: `zip://dumps/0.txt` of `zip://dumps/0.txt::s3://bucket/dumps.zip`."""
    inner, separator, _ = address.partition("::")
    return inner if separator and "://" in inner else address


def open_remote(address: str) -> IO[bytes]:
    """Open an object for reading as a stream."""
    with _translated(address):
        system = _file_system(address)
        # a web server need not answer requests of a part: a page is one stream
        opened = system.files.open(system.path, "rb", block_size=0 if system.protocol in WEB else BLOCK_BYTES)
    return cast("IO[bytes]", io.BufferedReader(_RemoteStream(system, opened, address)))


def remote_version(address: str) -> FileVersion:
    """Return size, time of change and ETag of an object."""
    with _translated(address):
        system = _file_system(address)
        return _version(system.files.info(system.path))


def is_remote_directory(address: str) -> bool:
    """Return True if objects are below the address, and none has it. Addresses of web pages are files."""
    with _translated(address):
        system = _file_system(address)
        if system.protocol in WEB:
            return False
        return not system.path or bool(system.files.isdir(system.path))


def matching_addresses(pattern: str) -> list[str]:
    """Return the addresses that match a pattern, by name; the address itself if it is no pattern."""
    protocol, _, path = pattern.partition("://")
    if protocol in WEB or not _MAGIC.search(path.partition("::")[0]):
        return [pattern]
    with _translated(pattern):
        system = _file_system(pattern)
        return [system.address(path) for path in sorted(system.files.glob(system.path))]


def remote_entries(address: str) -> Iterator[RemoteEntry]:
    """Yield the files and folders directly below an address, by name, a page of the listing at a time."""
    with _translated(address):
        system = _file_system(address)
        for page in listing_pages(system.files, system.protocol, system.path):
            for entry in sorted(page, key=lambda entry: str(entry["name"])):
                is_folder = entry["type"] == "directory"
                if is_folder or not entry["name"].endswith("/"):
                    yield RemoteEntry(system.address(entry["name"]), _version(entry), is_folder)


def remote_files_below(address: str) -> Iterator[str]:
    """Yield the addresses of the files below an address, folder by folder."""
    folders = [address]
    while folders:
        entries = list(remote_entries(folders.pop()))
        folders += [entry.address for entry in reversed(entries) if entry.is_folder]
        yield from (entry.address for entry in entries if not entry.is_folder)


def remote_file_system(address: str) -> tuple[Any, str]:
    """Return the file system of fsspec for an address, and the path in it."""
    with _translated(address):
        system = _file_system(address)
        return system.files, system.path


def write_remote(address: str, data: bytes) -> None:
    """Write an object whole. Raise UsageError if the file system cannot replace one in one step."""
    check_replaces(address)
    with _translated(address):
        system = _file_system(address)
        system.files.pipe_file(system.path, data)


def check_replaces(address: str) -> None:
    """Raise UsageError unless the file system of an address can replace a file in one step."""
    protocol = address.partition("://")[0]
    if protocol not in _REPLACES:
        message = f"{address}: {protocol}:// cannot replace a file in one step; write to s3://, gs://, az:// or a local path"
        raise UsageError(message)


def _file_system(address: str) -> _FileSystem:
    protocol = address.partition("://")[0].partition("::")[0]
    import logging  # commands on local files need none of it

    logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # it prints the traceback of an error otherwise
    try:
        import fsspec
    except ImportError as error:
        raise _missing(protocol) from error
    # no listing may outlive the call: a directory grows, and a run has to see what is there
    protocols = [name for part in address.split("::") for name, separator, _ in [part.partition("://")] if separator]
    fresh: dict[str, Any] = {name: {"use_listings_cache": False} for name in protocols[1:]}
    for name in protocols:
        try:
            fsspec.get_filesystem_class(name)
        except ImportError as error:
            raise _missing(name) from error
        except ValueError as error:
            raise OSError(errno.EPROTONOSUPPORT, f"no file system is known for {name}://") from error
    limits = {name: limits_of(name, fsspec.config.conf.get(name, {})) for name in protocols}
    fresh = {name: {**options, **limits[name]} for name, options in fresh.items()}
    files, path = fsspec.url_to_fs(address, use_listings_cache=False, **limits.get(protocol, {}), **fresh)
    return _FileSystem(files, path, protocol, address.removeprefix(inner_path(address)))


def _missing(protocol: str) -> MissingExtraError:
    extra, packages = _EXTRAS.get(protocol, ("remote", "fsspec aiohttp"))
    return MissingExtraError(f"{protocol}:// needs the extra [{extra}]: pip install {packages}")


@contextmanager
def _translated(address: str) -> Iterator[None]:
    """Raise OSError with one line for any error of the libraries: each protocol has its own."""
    try:
        yield
    except (MissingExtraError, UsageError, MemoryError):
        raise
    except FileNotFoundError as error:
        if address.partition("://")[0] not in WEB:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
        cause = error.__cause__  # fsspec says of any failure that the page is not found
        if isinstance(cause, Exception) and getattr(cause, "status", None) != 404:
            raise OSError(errno.EIO, words_of(cause)) from error
        raise FileNotFoundError(errno.ENOENT, "the server answers 404 (not found)") from error
    except Exception as error:
        raise OSError(getattr(error, "errno", None) or errno.EIO, words_of(error)) from error


def _version(entry: Mapping[str, Any]) -> FileVersion:
    """Return the version of an object from its entry in a listing. Each file system calls things by other names."""
    etag = next((str(entry[name]).strip('"') for name in _ETAGS if entry.get(name)), None)
    size = entry.get("size")
    return FileVersion(int(size) if size is not None else None, _microseconds(entry), etag)


def _microseconds(entry: Mapping[str, Any]) -> int | None:
    from datetime import datetime

    for name in _TIMES:
        value = entry.get(name)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            return int(value.timestamp() * 1_000_000)
        if isinstance(value, int | float):
            return int(value * 1_000_000)
    return None


class _RemoteStream(io.RawIOBase):
    """A raw stream over a file of fsspec, whose errors are OSError."""

    def __init__(self, system: _FileSystem, opened: Any, address: str) -> None:  # noqa: ANN401 - fsspec has no types
        self._system = system  # an archive closes its files with itself
        self._opened = opened
        self._address = address
        self.note = redirect_note(opened)
        self._position = 0
        self._has_ended = False  # aiohttp tells a log of a read behind the end
        read: Callable[[int], bytes] = opened.read
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - anything with a buffer
        if self._has_ended:
            return 0
        with _translated(self._address):
            data = self._read(len(buffer))
        self._has_ended = not data
        self._position += len(data)
        buffer[: len(data)] = data
        return len(data)

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._opened.close()
        super().close()
