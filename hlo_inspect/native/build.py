"""Build the library of the native reader.

    python -m hlo_inspect.native.build

compiles `source` into this folder, with the first of cc, gcc and clang on PATH, else with `python -m ziglang cc`.
`--driver FILE` builds the program that reads files for sanitizers instead, and `--wheels FOLDER` a wheel for each platform of
`TARGETS`, with ziglang. `hatch_build.py` uses this file without the package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "source"
LIBRARY = FOLDER / "hlo_core.so"
"""The library. Each platform loads one of this name."""
DRIVER = "driver.c"

COMPILERS = ("cc", "gcc", "clang")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wstrict-prototypes", "-Werror")
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
        path = shutil.which(name)
        if path is not None:
            return [path]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise BuildError("no C compiler: install gcc or clang, or run pip install ziglang")


def compile_library(output: Path, compiler: Sequence[str] | None = None, *, is_strict: bool = True) -> Path:
    """Compile the library to `output`, which it replaces as a whole. Raise BuildError if that fails.

    Warnings are errors if `is_strict`; an installation is not, because newer compilers may know more of them.
    """
    sources = [str(path) for path in sorted(SOURCE.glob("*.c")) if path.name != DRIVER]
    unfinished = output.with_name(f"{output.name}.new")
    warnings = WARNINGS if is_strict else ("-w",)
    options = ["-std=c11", "-O2", "-g0", *warnings, "-fPIC", "-fvisibility=hidden", "-shared"]
    _run([*(compiler or find_compiler()), *options, "-o", str(unfinished), *sources])
    return unfinished.replace(output)


def is_current() -> bool:
    """Return True if the library is built and not older than its source."""
    built = LIBRARY.stat().st_mtime if LIBRARY.is_file() else 0.0
    return all(path.stat().st_mtime <= built for path in SOURCE.iterdir())


def build_wheels(folder: Path) -> None:
    """Build the wheels of all targets, in a checkout. Raise BuildError if one fails."""
    for target in TARGETS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder.resolve())]
        _run(command, folder=FOLDER.parents[1], environment={**os.environ, "HLO_INSPECT_TARGET": target})


def compile_driver(output: Path, *, is_sanitized: bool = True) -> Path:
    """Compile the driver to `output`. Raise BuildError if that fails, as without sanitizers."""
    sources = [str(path) for path in sorted(SOURCE.glob("*.c"))]
    _run([*find_compiler(), "-std=c11", "-O1", *WARNINGS, *(SANITIZERS if is_sanitized else ()), "-o", str(output), *sources])
    return output


def _run(command: Sequence[str], *, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{command[0]}: {error.strerror or error}") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command)}:\n{done.stderr or done.stdout}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the library, or the driver, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", metavar="FILE", type=Path, help="Build the driver with sanitizers as FILE.")
    parser.add_argument("--wheels", metavar="FOLDER", type=Path, help="Build the wheels of all platforms in FOLDER.")
    options = parser.parse_args(arguments)
    try:
        if options.wheels is not None:
            build_wheels(options.wheels)
            built = options.wheels
        else:
            built = compile_driver(options.driver) if options.driver else compile_library(LIBRARY)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(built)
    return 0


if __name__ == "__main__":
    sys.exit(main())
