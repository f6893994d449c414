"""The Python files that the page loads: the project's wheel, and the files that it needs of installed packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
SESSION = Path(__file__).parent / "session.py"

PACKAGES: dict[str, tuple[str, ...]] = {
    "click": ("click/",),
    "jinja2": ("jinja2/",),
    "markupsafe": ("markupsafe/",),
    "pyyaml": ("yaml/",),
    "itables": ("itables/__init__.py", "itables/html/dt_bundle."),
    "rich": ("rich/__init__.py", "rich/_extension.py", "rich/cells.py", "rich/_unicode_data/"),
}
"""Distribution -> the beginnings of its files that the page needs.

Of itables only JavaScript is used. rich measures wide characters; it draws no colors and bars without a terminal.
"""

LICENSES = "licenses.txt"
_PYODIDE = (
    "Pyodide and CPython\n\nMozilla Public License 2.0, https://github.com/pyodide/pyodide; Python Software Foundation License"
)

_LEFT_OUT = (".so", ".pyd", ".pyi", ".pyx", ".c", ".typed")
"""Ends of files that no browser runs: yaml and markupsafe replace their compiled modules by Python."""

_UNUSED = (
    *("hlo_inspect/testing/", "hlo_inspect/xla_worker.py", "hlo_inspect/worker_process.py", "hlo_inspect/fleet/cluster.py"),
    *("hlo_inspect/native/source/", "hlo_inspect/native/build.py"),
)
"""Parts of the wheel that need pytest, processes, or a compiler."""


class BuildError(Exception):
    """Reason why the folder cannot be built."""


def copy_packages(folder: Path) -> None:
    """Copy all Python files of the page to `folder`, with a file of the licenses of all packages."""
    _unpack_wheel(folder)
    licenses = {"hlo-inspect": (ROOT / "LICENSE").read_text(encoding="utf-8")}
    for name, beginnings in PACKAGES.items():
        installed = _distribution(name)
        for file in installed.files or ():
            path = file.as_posix()
            source = Path(str(installed.locate_file(file)))
            if path.startswith(beginnings) and not path.endswith(_LEFT_OUT) and "__pycache__" not in path:
                _copy(source, folder / path)
            elif ".dist-info/licenses/" in path:
                licenses[name] = source.read_text(encoding="utf-8")
    shutil.copy(SESSION, folder / "playground_session.py")
    texts = [f"{name}\n\n{text}" for name, text in licenses.items()]
    (folder / LICENSES).write_text("\n\n".join([_PYODIDE, *texts]), encoding="utf-8")


def _unpack_wheel(folder: Path) -> None:
    """Build the wheel of the project without the native reader, and unpack it without its metadata."""
    without_library = {**os.environ, "HLO_INSPECT_NATIVE": "0"}
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", temporary]
        done = subprocess.run(command, cwd=ROOT, env=without_library, capture_output=True, text=True, check=False)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            raise BuildError(f"the wheel cannot be built; pip install '.[docs]': {done.stderr.strip()[-300:]}")
        with ZipFile(wheels[0]) as archive:
            archive.extractall(
                folder,
                [
                    name
                    for name in archive.namelist()
                    if ".dist-info/" not in name and not name.startswith(_UNUSED) and not name.endswith(_LEFT_OUT)
                ],
            )


def _distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise BuildError(f"{name} is not installed: pip install '.[docs]'") from error


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
