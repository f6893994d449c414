"""Writes a store of the installed version of hlo-inspect to tests/data/stores/VERSION.tar.xz.

    python make_stores.py

The environment of README.md holds that version, pyarrow and DuckDB. Dumps are copied to /train/dumps, because a store keeps
absolute paths. One run writes Parquet, the next JSON lines, and the last reads an input again. Times and names of parts
change each time.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from shutil import copy

from hlo_inspect.cli.main import run
from hlo_inspect.fleet import run as fleet_run
from hlo_inspect.version import __version__

HERE = Path(__file__).resolve().parent
DUMPS = Path("/train/dumps")
TABLES = "collectives,params,cost_by_phase"
FIRST = ("cpu/scan_fsdp.after.txt", "cpu/sgd_unused.after.txt", "handmade/custom_calls.txt")
SECOND = ("cpu/bf16_master.after.txt", "handmade/control_flow.txt")


def copied(name: str, build: str) -> str:
    """Copy a dump to the folder of a build and return its path."""
    path = DUMPS / build / name.replace("/", "_")
    path.parent.mkdir(parents=True, exist_ok=True)
    copy(HERE / name, path)
    return str(path)


def collect(store: Path, *arguments: str) -> None:
    """Collect with one process; unreadable inputs have a status of their own."""
    options = (
        "--store",
        str(store),
        "--tables",
        TABLES,
        "--passes",
        "memory",
        "--label-from",
        f"{DUMPS}/{{build}}/*",
        "-j",
        "1",
    )
    if run(["collect", *arguments, *options, "--profile", "h100-sxm"]) not in (0, 3):
        sys.exit("no store")


def main() -> None:
    """Write the store as one archive: most of a small part is its list of columns, which compresses well."""
    first = [copied(name, "one") for name in FIRST]
    noise = DUMPS / "one" / "noise.txt"
    noise.write_bytes(b"\0\1\2" * 99)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        collect(store, *first, str(noise), "--label", "team=vision")
        fleet_run.best_encoding = lambda: "jsonl"
        collect(store, *(copied(name, "two") for name in SECOND))
        collect(store, first[0], "--again")
        archive = HERE / "stores" / f"{__version__}.tar.xz"
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:xz") as stream:
            stream.add(store, "store")


if __name__ == "__main__":
    main()
