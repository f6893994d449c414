"""Damage dumps by chance and give them to the native reader, compiled with sanitizers and without Python.

    python -m tests.fuzz.native --count 100000 [DUMP_OR_DIRECTORY ...]

A failure is a read or write outside of memory, an overflow, undefined behaviour, or a column that does not fit the others; the
folder of the mutants is kept then and printed. Without an argument the dumps are those of tests/data. The undamaged dumps are
read, too.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hlo_inspect.errors import HloInspectError
from hlo_inspect.native.build import BuildError, compile_driver
from tests.fuzz.mutate import Mutator, read_text

DATA = Path(__file__).parent.parent / "data"
MAX_BYTES = 60_000
"""Size of the largest text that is damaged."""
MAX_WHOLE_BYTES = 1 << 28
BATCH = 500
"""Mutants of one process."""

_SUFFIXES = {".txt", ".hlo", ".gz", ".xz", ".zst", ".bz2"}


def paths_of(places: Sequence[Path]) -> list[Path]:
    """Return the dumps at these places, in one order everywhere."""
    return sorted(
        path for place in places for path in (place.rglob("*") if place.is_dir() else [place]) if path.suffix in _SUFFIXES
    )


def texts_of(paths: Sequence[Path], most: int) -> Iterator[bytes]:
    """Yield the texts of the dumps that are not larger than `most` bytes and can be read."""
    for path in paths:
        try:
            text = read_text(path, most)
        except HloInspectError:
            continue
        if text:
            yield text


def fault_of(driver: Path, folder: Path, texts: Iterator[bytes]) -> str:
    """Read texts, and return what the driver says if it fails. The folder keeps the texts then."""
    files = []
    for number, text in enumerate(texts):
        files.append(folder / f"{number}.txt")
        files[-1].write_bytes(text)
    done = subprocess.run([str(driver), *map(str, files)], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr or f"exit status {done.returncode}"
    for file in files:
        file.unlink()
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", type=Path, default=[DATA])
    parser.add_argument("--count", type=int, default=5000, help="Mutants.")
    parser.add_argument("--first", type=int, default=0, help="Seed of the first mutant.")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp())
    try:
        driver = compile_driver(folder / "driver")
    except BuildError as error:
        print(f"the native reader is not tested with sanitizers: {error}")
        return 0
    paths = paths_of(options.dumps)
    whole = 0
    for text in texts_of(paths, MAX_WHOLE_BYTES):
        whole += 1
        fault = fault_of(driver, folder, iter([text]))
        if fault:
            print(f"{folder}:\n{fault}")
            return 1
    samples = list(texts_of(paths, MAX_BYTES))
    for first in range(options.first, options.first + options.count, BATCH):
        seeds = range(first, min(first + BATCH, options.first + options.count))
        fault = fault_of(driver, folder, (Mutator(seed)(samples[seed % len(samples)]) for seed in seeds))
        if fault:
            print(f"{folder}, seeds from {first}:\n{fault}")
            return 1
    shutil.rmtree(folder)
    print(f"{whole:,} dumps and {options.count:,} mutants, read with sanitizers: no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
