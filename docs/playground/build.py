"""The static folder of the page: its own files, Pyodide, the Python files, and examples."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from docs.playground.packages import LICENSES, ROOT, BuildError, copy_packages
from docs.playground.runtime import (
    CDN,
    FILES,
    compile_sources,
    fetch_pyodide,
    library_sources,
    lock_file,
    pack,
    pack_files,
)
from hlo_inspect.configs import shipped_configs
from hlo_inspect.version import __version__

OWN = Path(__file__).parent
_PACKED = "packages.bin"
PAGE_FILES = ("index.html", "page.css", "page.js", "commands.js", "inputs.js", "worker.js", "report.html")

EXAMPLES: dict[str, tuple[str, str]] = {
    "tests/data/cpu/adamw_step.after.txt": ("AdamW on 8 devices", ""),
    "tests/data/cpu/scan_fsdp.after.txt": ("Sharded layers in a loop, 8 H100", "h100-sxm"),
    "tests/data/tpu/gathered_matmul.after.txt": ("Gathered weights on 8 TPU v5e", ""),
}
"""Dump of the repository -> its title, and the hardware profile of its times if the text does not tell."""


def build(folder: Path, *, uses_cdn: bool = False, numpy: Path | None = None, cache: Path | None = None) -> None:
    """Write the folder, or replace it. Raise BuildError if something that it needs is missing.

    `numpy` is the file of Pyodide's numpy. With `uses_cdn` visitors load Pyodide, and numpy if needed, from its usual address.
    `cache` is a folder that keeps Pyodide and bytecode for the next build, which is then five times as fast.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / _PACKED).is_file():
        raise BuildError(f"{folder} has other files, which the page would replace; name a new folder")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        kept = (cache or work / "cache").resolve()
        pyodide = fetch_pyodide(work, kept)
        library_sources(pyodide, work / "sources" / "library")
        copy_packages(work / "sources" / "packages")
        compile_sources(pyodide, work / "sources", kept)
        made = work / "made"
        (made / "pyodide").mkdir(parents=True)
        shutil.move(work / "sources" / "packages" / LICENSES, made)
        pack_files(work / "sources" / "packages", made / _PACKED)
        pack(work / "sources" / "library", made / "pyodide" / "python_stdlib.zip")
        lock = lock_file(pyodide, numpy, everywhere=uses_cdn)
        (made / "pyodide" / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
        if not uses_cdn:
            for name in FILES:
                shutil.copyfile(pyodide / name, made / "pyodide" / name)
        if numpy is not None:
            shutil.copyfile(numpy, made / "pyodide" / numpy.name)
        write_page(made, CDN if uses_cdn else "")
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(made, folder)


def write_page(folder: Path, address: str) -> None:
    """Write the page's own files. Visitors load Pyodide from `address` unless that is empty."""
    examples = []
    for name, (title, profile) in EXAMPLES.items():
        source = ROOT / name
        target = folder / "examples" / source.name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
        examples.append({"file": f"examples/{source.name}", "title": title, "profile": profile})
    profiles = sorted(path.stem for path in shipped_configs("hardware").glob("*.yaml"))
    settings = {"version": __version__, "pyodide": address, "examples": examples, "profiles": profiles}
    for name in PAGE_FILES:
        text = (OWN / name).read_text(encoding="utf-8")
        if name == "index.html":
            text = text.replace("{{sources}}", f" {address}" if address else "")
            text = text.replace("{{loaded}}", f"its own files and Python from {address}" if address else "its own files")
            text = text.replace("{{settings}}", json.dumps(settings).replace("<", "\\u003c"))
        (folder / name).write_text(text, encoding="utf-8")
