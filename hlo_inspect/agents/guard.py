"""A guard of the files that Python opens while a tool runs.

A path of a request is checked by itself. The guard is a second wall, for what a command opens beside it: links in a folder,
XLA's files about memory. It is an audit hook (PEP 578), which no library passes by. Files of Python and of its packages stay
readable.
"""

from __future__ import annotations

import errno
import os
import site
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hlo_inspect.agents.folders import Folders, is_plain, is_within
from hlo_inspect.config_files import config_files
from hlo_inspect.configs import shipped_configs

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NETWORK = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
_LISTINGS = frozenset({"os.listdir", "os.scandir"})


class Guard:
    """Audit hook that refuses other files than those of some folders, in the thread and time of a `with` block.

    Temporary files are in a folder of its own, the only one that can be written.
    """

    def __init__(self, folders: Folders, scratch: str) -> None:
        tempfile.tempdir = scratch
        self._scratch = (Path(scratch).resolve(),)
        self._readable = (*folders.paths, *map(Path, dict.fromkeys(map(os.path.realpath, _program_folders()))))
        self._thread: int | None = None
        sys.addaudithook(self._check)

    @contextmanager
    def active(self) -> Iterator[None]:
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = None

    def _check(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._thread != threading.get_ident():
            return
        if event in _NETWORK:
            raise PermissionError(errno.EACCES, "the server opens no connections")
        if event != "open" and event not in _LISTINGS:
            return
        name = os.curdir if arguments[0] is None else arguments[0]
        if not isinstance(name, str | bytes | os.PathLike):
            return  # an open file
        path = os.fsdecode(name)
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if path == os.devnull:
            return
        if is_within(path, self._scratch if writes else (*self._readable, *self._scratch)):
            if writes or is_plain(path) or not os.path.exists(path):  # noqa: PTH110 - any text
                return
            raise PermissionError(errno.EACCES, "is a pipe or a device, which the server does not open")
        raise PermissionError(
            errno.EACCES, "the server writes no files" if writes else "is outside of the folders of the server"
        )


def _program_folders() -> Iterator[str]:
    """Yield the folders of Python, of its packages and of this one, and the configuration that holds here."""
    yield from (
        sys.prefix,
        sys.base_prefix,
        *sysconfig.get_paths().values(),
        *site.getsitepackages(),
        site.getusersitepackages(),
    )
    yield str(Path(__file__).parents[1])
    yield str(shipped_configs("hardware").parent)
    yield from map(str, config_files(Path.cwd()))
