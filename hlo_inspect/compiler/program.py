"""A program to compile: its StableHLO, and the flags and options of the compile that it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.compiler.targets import CPU, GPU, TPU
from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.input.dump_directory import dump_files, is_directory
from hlo_inspect.hlo.settings.compile_settings import CompileSettings, read_settings, stablehlo_file
from hlo_inspect.hlo.settings.text_proto import Message, parse_text_proto, read_file

BYTECODE = b"ML\xefR"
"""First bytes of MLIR's bytecode."""
_TEXT = (b"module", b"#", b"//", b'"builtin.module"', b"func.func")
HOW_TO = "XLA_FLAGS=--xla_dump_to=DIR writes it beside the texts, and jax.jit(f).lower(…).as_text() prints it"
_FOLDER = "module.mlir"
_OPTIONS = "compile_options.textproto"
_PLATFORMS = {"cpu": CPU, "tpu": TPU, "cuda": GPU, "rocm": GPU}
"""Platforms by the words of `topology.textproto`."""
_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")

FlagValue = bool | int | float | str


class LoweredProgram(NamedTuple):
    """StableHLO, as text or bytecode, and how it was compiled.

    `module_file` is the text of the module that XLA made of it, None without a dump. `to_parameters` and `to_output` allow
    XLA to choose shardings that the program leaves open. `flags` are those that differ from XLA's defaults. `platform` is that
    of the dump, empty if unknown.
    """

    path: str
    data: bytes
    module_file: Path | None = None
    shardy: bool = True
    to_parameters: tuple[bool, ...] = ()
    to_output: tuple[bool, ...] = ()
    flags: Mapping[str, FlagValue] = {}
    platform: str = ""

    @property
    def is_stablehlo(self) -> bool:
        """False for a file of `jax.export`, and for any other that is no MLIR."""
        return self.data.lstrip().startswith((BYTECODE, *_TEXT))


def read_program(path: str, module: str | None = None) -> LoweredProgram:
    """Read StableHLO from a file, the folder of a single module, or that of a module of a dump directory.

    Of several modules take the one named `module`, else the largest. Raise InputError if there is none.
    """
    file = Path(path)
    if is_directory(path):
        if not (file / _FOLDER).is_file():
            return _of_dump(path, module)
        file /= _FOLDER
    if file.name == _FOLDER and (file.parent / _OPTIONS).is_file():
        return _with_options(file, _text_of_folder(file.parent))
    stablehlo = stablehlo_file(file) if file.suffix in {".txt", ".hlo"} else None
    if stablehlo is not None:
        return _with_options(stablehlo, file)
    return LoweredProgram(path, _bytes(file))


def _of_dump(path: str, module: str | None) -> LoweredProgram:
    """Return the program of a module of a dump directory."""
    listed: list[tuple[Path, Path]] = []
    for entry in dump_files(path, None):
        source = entry.source
        if isinstance(source, Path) and (lowered := stablehlo_file(source)) is not None:
            listed.append((lowered, source))
    if module is not None:
        listed = [pair for pair in listed if module in pair[1].name.split(".")]
    if not listed:
        what = f"no StableHLO of a module {module!r}" if module is not None else "no module.mlir: no StableHLO"
        raise InputError(f"{what} in this directory; {HOW_TO}", Location(path))
    stablehlo, text = max(listed, key=lambda pair: pair[0].stat().st_size)
    return _with_options(stablehlo, text)


def _text_of_folder(folder: Path) -> Path | None:
    """Return the text that XLA made of the module with this folder beside it."""
    texts = sorted(folder.parent.glob(f"{folder.name}.*after_optimizations.txt"))
    return texts[0] if texts else None


def _with_options(stablehlo: Path, text: Path | None) -> LoweredProgram:
    options = _message(stablehlo.with_name(_OPTIONS))
    build = next(iter(options.messages("executable_build_options")), None) if options is not None else None
    settings = read_settings(text) if text is not None else CompileSettings()
    program = LoweredProgram(
        str(stablehlo),
        _bytes(stablehlo),
        text,
        flags=flag_values(settings.flags or {}),
        platform=_PLATFORMS.get((settings.platform or "").partition(" ")[0], ""),
    )
    if build is None:
        return program
    return program._replace(
        shardy="false" not in build.values("use_shardy_partitioner"),
        to_parameters=_switches(build, "allow_spmd_sharding_propagation_to_parameters"),
        to_output=_switches(build, "allow_spmd_sharding_propagation_to_output"),
    )


def _message(path: Path) -> Message | None:
    return parse_text_proto(read_file(path), str(path)) if path.is_file() else None


def _switches(build: Message, name: str) -> tuple[bool, ...]:
    return tuple(value == "true" for value in build.values(name))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), Location(str(path))) from error


def flag_values(flags: Mapping[str, str]) -> dict[str, FlagValue]:
    """Return flags with values of the types that XLA takes for an override."""
    return {name: flag_value(value) for name, value in flags.items()}


def flag_value(text: str) -> FlagValue:
    """Return a truth value, a number, or the text itself."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text.strip('"')
