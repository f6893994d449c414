"""Pyodide, pinned: fetched by npm, its standard library without the modules that no command uses, and bytecode."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from docs.playground.packages import BuildError

VERSION = "314.0.7"
SHA512 = "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
CDN = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"

FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
"""Files of Pyodide that the page loads as they are."""

_COMPILER = Path(__file__).parent / "compile.mjs"
_YEAR = (1980, 1, 1, 0, 0, 0)

_UNUSED = re.compile(
    r"(asyncio/(__main__|tools)|ctypes/(macholib|wintypes)|ensurepip|idlelib|multiprocessing/(dummy|pool"
    r"|managers|shared_memory|popen_\w+|forkserver|resource_sharer)|pydoc_data|_pyrepl|sqlite3|tkinter|turtledemo|unittest"
    r"|venv|wsgiref|xmlrpc|xml/(dom|etree)|dbm|curses|http/(server|cookies|cookiejar)|email/mime)\b"
    r"|(_pydecimal|_pyio|_pydatetime|_aix_support|_android_support|_apple_support|_ios_support|bdb|cProfile|cmd"
    r"|doctest|ftplib|imaplib|mailbox|modulefinder|netrc|optparse|pdb|pickletools|plistlib|poplib|pstats|pyclbr|pydoc"
    r"|sched|smtplib|tabnanny|timeit|trace|turtle|tracemalloc|webbrowser|zipapp"
    r"|mimetypes|_strptime|_osx_support|graphlib|fileinput|nntplib|shelve|wave|symtable|this"
    r"|antigravity)\.py$"
)
"""Modules of the standard library that neither Pyodide nor a command imports."""

_ENCODINGS = re.compile(r"encodings/(?!__init__|aliases|ascii|latin_1|utf_|cp437|idna|punycode|\w*unicode_escape)\w+\.py")
"""Encodings besides Unicode's: a dump in another is read as UTF-8 with escapes."""


def fetch_pyodide(folder: Path, cache: Path) -> Path:
    """Unpack Pyodide in `folder`, fetched by npm unless `cache` has it, and return its folder.

    Raise BuildError if it cannot be had or differs from the pinned one.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise BuildError("npm and node are needed: they fetch Pyodide and compile the Python files")
    archive = cache / f"pyodide-{VERSION}.tgz"
    if not archive.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "--silent", f"pyodide@{VERSION}"]
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, check=False)
        if done.returncode or not archive.is_file():
            raise BuildError(f"npm cannot fetch pyodide@{VERSION}: {done.stderr.strip()[-300:]}")
    if not _has_digest(archive.read_bytes(), SHA512):
        raise BuildError(f"pyodide@{VERSION} is not the package that this build pins")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / "package"


def _has_digest(data: bytes, stated: str) -> bool:
    return stated == "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def library_sources(pyodide: Path, folder: Path) -> None:
    """Unpack the standard library, without modules that the page does not need."""
    with ZipFile(pyodide / "python_stdlib.zip") as archive:
        for name in archive.namelist():
            if not _UNUSED.match(name) and not _ENCODINGS.match(name):
                archive.extract(name, folder)


def compile_sources(pyodide: Path, folder: Path, cache: Path) -> None:
    """Replace the Python files below `folder` by bytecode of the Python that runs it; `cache` has that of earlier builds."""
    kept = {path: cache / f"{_key(path, folder)}.pyc" for path in sorted(folder.rglob("*.py"))}
    missing = [
        (str(path), str(target), path.relative_to(folder).as_posix()) for path, target in kept.items() if not target.is_file()
    ]
    if missing:
        listed = folder / "missing.json"
        listed.write_text(json.dumps(missing), encoding="utf-8")
        command = [shutil.which("node") or "node", str(_COMPILER), str(pyodide), str(listed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"the Python files cannot be compiled: {(done.stderr or done.stdout).strip()[-300:]}")
    for path, target in kept.items():
        shutil.copyfile(target, path.with_suffix(".pyc"))
        path.unlink()


def _key(path: Path, folder: Path) -> str:
    """Return a name for the bytecode of a file: it depends on Pyodide, the place of the file, and its content."""
    digest = hashlib.sha256(f"{VERSION}\0{path.relative_to(folder).as_posix()}\0".encode())
    digest.update(_COMPILER.read_bytes())
    digest.update(path.read_bytes())
    return digest.hexdigest()


def pack(folder: Path, target: Path) -> None:
    """Write the files below `folder` to a zip file that depends on their content only."""
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for path in _files(folder):
            info = ZipInfo(path.relative_to(folder).as_posix(), _YEAR)
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())


def pack_files(folder: Path, target: Path) -> None:
    """Write the files below `folder` to a gzip file: a line of JSON with their names and sizes, then their bytes.

    A browser unpacks that by itself, four times as fast as Python unpacks a zip file.
    """
    files = list(_files(folder))
    index = json.dumps([[path.relative_to(folder).as_posix(), path.stat().st_size] for path in files])
    with target.open("wb") as stream, gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as archive:
        archive.write(f"{index}\n".encode())
        for path in files:
            archive.write(path.read_bytes())


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def lock_file(pyodide: Path, numpy: Path | None, *, everywhere: bool) -> dict[str, object]:
    """Return Pyodide's list of packages, reduced to numpy if its wheel is given or can be had `everywhere`, else to nothing.

    Raise BuildError if the wheel is not the one of this Pyodide.
    """
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    entry = lock["packages"]["numpy"]
    is_right = numpy is None or (numpy.name, hashlib.sha256(numpy.read_bytes()).hexdigest()) == (
        entry["file_name"],
        entry["sha256"],
    )
    if not is_right:
        raise BuildError(f"{numpy} is not {entry['file_name']} of Pyodide {VERSION}")
    return {"info": lock["info"], "packages": {"numpy": entry} if numpy is not None or everywhere else {}}
