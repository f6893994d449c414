"""Versions of a compiler, each in an environment of its own: of pip in a cache folder, or those of the user's list.

Only the compiler's process runs there. It needs this package and nothing else that the environment lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hlo_inspect.compiler.targets import GPU, TPU, Target
from hlo_inspect.errors import Location, UsageError, did_you_mean, reading

_PYTHONS = range(11, 16)
"""Minor versions of Python 3 whose wheels are looked for."""


class Installation(NamedTuple):
    """A Python with a compiler. `packages` is a folder that stands before the Python's own packages; empty for none."""

    python: str
    packages: str = ""

    @property
    def path(self) -> list[str]:
        """Folders of packages beside the Python's own, with that of this package last."""
        return [*filter(None, [self.packages]), str(Path(__file__).parents[2])]


class Version(NamedTuple):
    """A version of a compiler. `install` brings it, and raises UsageError if it cannot. `package` is empty in a list."""

    name: str
    install: Callable[[], Installation]
    package: str = ""

    @property
    def label(self) -> str:
        """The version as people write it: `jaxlib 0.10.2`."""
        return f"{self.package} {self.name}".strip()


def listed_versions(path: str, span: str) -> list[Version]:
    """Return the part A..B of the user's list. A line is a name and an environment or its Python.

    Raise InputError if the list cannot be read, UsageError if it has no such names or a line names no Python.
    """
    with reading(path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    pythons: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, place = [*line.split(maxsplit=1), "", ""][:2]
        if not name or name.startswith("#"):
            continue
        python = Path(place.strip()).expanduser()
        python = python / "bin/python" if python.is_dir() else python
        if name in pythons or not (python.is_file() and os.access(python, os.X_OK)):
            fault = f"{name} stands there twice" if name in pythons else f"no Python at {place.strip()!r}"
            raise UsageError(f"{fault}; write a line as: 0.10.1 /path/to/environment", Location(path, number))
        pythons[name] = str(python.absolute())
    names = _between(list(pythons), span, path)
    return [Version(name, lambda name=name: Installation(pythons[name])) for name in names]  # type: ignore[misc]  # lambda


def pip_versions(target: Target, span: str) -> list[Version]:
    """Return the versions A..B that pip lists for this Python or another: of libtpu for a TPU, else of jaxlib.

    Raise UsageError if pip lists none, or not these two.
    """
    if target.platform == GPU:
        raise UsageError("pip brings jaxlib for cpu and libtpu for TPUs; for GPUs name environments with --versions-from")
    package = "libtpu" if target.platform == TPU else "jaxlib"
    with ThreadPoolExecutor() as threads:
        listed = dict(zip(_PYTHONS, threads.map(lambda minor: _index(package, minor), _PYTHONS), strict=True))
    names = sorted({name for names in listed.values() for name in names}, key=_order)
    if not names:
        reason = _last_line(_pip("index", "versions", package))
        raise UsageError(f"pip lists no versions of {package}: {reason}; --versions-from LIST takes environments of yours")

    def versions(name: str) -> Version:
        return Version(
            name, lambda: _installation(package, name, [minor for minor in _PYTHONS if name in listed[minor]]), package
        )

    return [versions(name) for name in _between(names, span, f"pip's list of {package}")]


def _between(names: Sequence[str], span: str, source: str) -> Sequence[str]:
    """Return the names from A to B of a range A..B. Raise UsageError if they lack an end or have the ends in another order."""
    oldest, dots, newest = span.partition("..")
    if not (oldest and dots and newest):
        raise UsageError(f"{span!r} is no range of versions; write it like 0.10.1..0.12.0")
    for name in (oldest, newest):
        if name not in names:
            closest = did_you_mean(name, names, cutoff=0.5) or f"; the newest is {names[-1]}" if names else ""
            raise UsageError(f"{source} has no {name}{closest}")
    start, end = names.index(oldest), names.index(newest)
    if start >= end:
        raise UsageError(f"{span}: {oldest} is not older than {newest}")
    return names[start : end + 1]


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", name, re.ASCII)]


def _installation(package: str, name: str, minors: Sequence[int]) -> Installation:
    """Install a version for this Python, else for the newest that is here and has wheels. Raise UsageError if that fails."""
    own = sys.version_info.minor
    minor = own if own in minors else next((minor for minor in reversed(minors) if _python(minor)), None)
    if minor is None:
        words = ", ".join(f"3.{minor}" for minor in minors)
        raise UsageError(f"{package} {name} has wheels for Python {words} only, which this machine lacks")
    wanted = [f"{package}=={name}"]
    if package != "jaxlib" and minor != own:
        with suppress(PackageNotFoundError):
            wanted.append(f"jaxlib=={version('jaxlib')}")
    return Installation(_python(minor) or "", str(_installed(wanted, f"3.{minor}")))


def _installed(wanted: Sequence[str], python: str) -> Path:
    """Return the folder of these packages in the cache, installed by pip. Raise UsageError if pip cannot bring them."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = "-".join([*wanted, f"python{python}"]).replace("==", "-")
    folder = Path(cache_home) / "hlo-inspect" / name
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary = TemporaryDirectory(dir=folder.parent, prefix=f"{name}-")
        except OSError as error:
            reason = f"{error.strerror or error}; XDG_CACHE_HOME names another cache"
            raise UsageError(f"cannot be written: {reason}", Location(str(folder.parent))) from error
        with temporary:
            packages = Path(temporary.name) / "packages"
            to = ("--target", str(packages), "--python-version", python, "--only-binary", ":all:", "--no-compile")
            done = _pip("install", "--quiet", "--ignore-requires-python", *to, *wanted)  # pip compares with its own Python
            if done.returncode:
                raise UsageError(f"pip cannot bring {' and '.join(wanted)} for Python {python}: {_last_line(done)}")
            with suppress(OSError):  # another process was faster
                packages.rename(folder)
    return folder


@cache
def _python(minor: int) -> str | None:
    """Return a Python of this version: this one, one of pyenv, or that of PATH."""
    if minor == sys.version_info.minor:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    listed = [*map(str, root.glob(f"versions/3.{minor}.*/bin/python")), shutil.which(f"python3.{minor}")]
    return next((path for path in listed if path and _run(path, "-c", "").returncode == 0), None)


def _index(package: str, minor: int) -> list[str]:
    """Return the versions with wheels for a Python, as pip lists them."""
    listed = _pip("index", "versions", package, "--python-version", f"3.{minor}").stdout
    match = re.search(r"^Available versions: (.*)$", listed, re.MULTILINE)
    return match[1].split(", ") if match is not None else []


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    talking = {name: value for name, value in os.environ.items() if name not in {"PIP_QUIET", "PIP_VERBOSE"}}
    return _run(sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", *words, environment=talking)


def _run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - no shell
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1].removeprefix("ERROR: ")
