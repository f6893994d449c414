"""Build the library of the native reader.

    python -m hlo_inspect.native.build

compiles `source` into this folder, with the first of cc, gcc and clang on PATH, else with `python -m ziglang cc`.
`--driver FILE` builds the program that reads files for sanitizers instead. `hatch_build.py` uses this file without the package.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "source"
LIBRARY = FOLDER / "hlo_core.so"
"""The library. Each platform loads one of this name."""
DRIVER = "driver.c"

COMPILERS = ("cc", "gcc", "clang")
WARNINGS = (
    *("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wstrict-prototypes"),
    "-Werror",
)
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

TARGETS = {
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64",
    "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64",
    "x86_64-linux-musl": "musllinux_1_1_x86_64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
}
"""Targets of ziglang, with the platforms of their wheels."""


class BuildError(Exception):
    """There is no compiler, or it refuses the source."""


def find_compiler() -> list[str]:
    """Return the command of a C compiler. Raise BuildError if there is none."""
    for name in COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return [found]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise BuildError("no C compiler: install gcc or clang, or run pip install ziglang")


def compile_library(output: Path, compiler: Sequence[str] | None = None) -> Path:
    """Compile the library to `output`, which it replaces as a whole. Raise BuildError if that fails."""
    sources = [str(path) for path in sorted(SOURCE.glob("*.c")) if path.name != DRIVER]
    beside = output.with_name(f"{output.name}.new")
    options = ["-std=c11", "-O2", *WARNINGS, "-fPIC", "-fvisibility=hidden", "-shared", "-s"]
    _run([*(compiler or find_compiler()), *options, "-o", str(beside), *sources])
    return beside.replace(output)


def compile_driver(output: Path, *, is_sanitized: bool = True) -> Path:
    """Compile the driver to `output`. Raise BuildError if that fails, as without sanitizers."""
    sources = [str(path) for path in sorted(SOURCE.glob("*.c"))]
    _run([*find_compiler(), "-std=c11", "-O1", *WARNINGS, *(SANITIZERS if is_sanitized else ()), "-o", str(output), *sources])
    return output


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{command[0]}: {error.strerror or error}") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command)}:\n{done.stderr or done.stdout}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the library, or the driver, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", metavar="FILE", type=Path, help="Build the driver with sanitizers as FILE.")
    options = parser.parse_args(arguments)
    try:
        built = compile_driver(options.driver) if options.driver else compile_library(LIBRARY)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(built)
    return 0


if __name__ == "__main__":
    sys.exit(main())
