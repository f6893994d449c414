"""The command lines whose answers `benchmarks.answers` compares, and the inputs that it finds.

A line is a list of arguments. `INPUT` stands for the name of the input, `NEXT` for that of the next dump of its folder. `OUT`
is an empty folder that the command may fill.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

INPUT, NEXT, OUT = "INPUT", "NEXT", "OUT"
JSON = ("--format", "json")
PASSES = (
    "summary",
    "params",
    "fusions",
    "collectives",
    "optimizer",
    "cost",
    "top",
    "time",
    "memory",
    "custom-calls",
    "fingerprint",
)
OF_PROFILES = ("summary", "fusions", "collectives", "cost", "top", "time", "memory", "lint")
"""Commands that say more with a hardware profile."""

CHECKED = (
    "module.devices == 8",
    "collectives.executed_operand_bytes <= 1 MiB",
    "cost.executed_flops > 0",
    "time.step_s <= 1",
    "memory.peak_bytes known",
    "optimizer.name == adamw",
)
"""Conditions of which some hold, some fail and some are unknown on most dumps."""

SUFFIXES = (".txt", ".hlo", ".log")
DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress, ".bz2": bz2.decompress}
RECORDED = (".xplane.pb", ".xplane.pb.gz")
SKIPPED = ("-memory-usage-report.txt", "-buffer-assignment.txt", ".ir-no-opt.ll", "requirements.txt")

Line = tuple[str, ...]


class Input(NamedTuple):
    """An input, the name of the next one in its folder if there is one, and the bytes of its text."""

    path: Path
    next: str | None
    size: int

    @property
    def lines(self) -> list[Line]:
        """The command lines about this input."""
        if self.path.is_dir():
            return list(_lines_of_folders())
        if self.path.name.endswith(RECORDED):
            return list(_lines_of_recorded_profiles())
        lines = list(_lines_of_dumps("tpu-v5e" if "tpu" in f"{self.path.parent.name}/{self.path.name}" else "h100-sxm"))
        return lines if self.next else [line for line in lines if NEXT not in line]


def _lines_of_dumps(profile: str) -> Iterator[Line]:
    priced = ("--profile", profile)
    for name in (*PASSES, "lint", "list"):
        yield name, INPUT, *JSON
        if name not in OF_PROFILES:
            yield name, INPUT, "-v"
    yield "summary", INPUT
    for name in OF_PROFILES:
        yield name, INPUT, *priced, *JSON
        yield name, INPUT, *priced, "-v"
    for name in ("summary", "memory", "list"):
        yield name, INPUT, "--quick", *JSON
    yield "collectives", INPUT, "--phases", "names", *JSON
    yield "collectives", INPUT, "--cost-model", "alpa-mesh", *JSON
    yield "time", INPUT, *priced, "--format", "perfetto"
    yield "show", INPUT, "*", *JSON
    conditions = [word for condition in CHECKED for word in ("--assert", condition)]
    yield "check", INPUT, *priced, *conditions, *JSON
    yield "check", INPUT, *conditions
    yield "report", INPUT, *priced, "-o", f"{OUT}/page.html"
    yield "export", INPUT, "--to", "chakra", "-o", f"{OUT}/traces", *JSON
    yield "export", INPUT, "--to", "chakra", *priced, "-o", f"{OUT}/traces", "-v"
    yield "export", INPUT, "--to", "simai", *priced, "--axis", "d0=DP", "--axis", "d1=TP", "-o", f"{OUT}/workload", *JSON
    yield "workload", INPUT, *JSON
    yield "diff", INPUT, NEXT, *JSON
    yield "diff", INPUT, NEXT, *priced, "-v"


def _lines_of_folders() -> Iterator[Line]:
    for name in ("list", "history", "recompiles", "ranks", "lint"):
        yield name, INPUT, *JSON
        yield name, INPUT, "-v"


def _lines_of_recorded_profiles() -> Iterator[Line]:
    yield "measured", INPUT, *JSON
    yield "measured", INPUT, "-v"


def find_inputs(paths: Iterable[Path]) -> Iterator[Input]:
    """Yield files as they are, and of folders all dumps, recorded profiles and folders that XLA wrote."""
    for path in map(Path.resolve, paths):
        if path.is_file():
            yield Input(path, None, _size(path))
            continue
        folders = sorted({path, *(inside for inside in path.rglob("*") if inside.is_dir())})
        for folder in folders:
            yield from _inputs_in(folder)


def _inputs_in(folder: Path) -> Iterator[Input]:
    names = sorted(file.name for file in folder.iterdir() if file.is_file() and _is_input(file.name))
    if any(name.startswith("module_") for name in names) or folder.joinpath("0").is_dir():
        yield Input(folder, None, sum(_size(file) for file in folder.rglob("*") if file.is_file()))
    dumps = [name for name in names if not name.endswith(RECORDED)]
    following = dict(pairwise(dumps))
    for name in names:
        yield Input(folder / name, following.get(name), _size(folder / name))


def _is_input(name: str) -> bool:
    plain = next((name.removesuffix(suffix) for suffix in DECOMPRESSORS if name.endswith(suffix)), name)
    return name.endswith(RECORDED) or (plain.endswith(SUFFIXES) and not plain.endswith(SKIPPED))


def _size(path: Path) -> int:
    decompress = DECOMPRESSORS.get(path.suffix)
    return len(decompress(path.read_bytes())) if decompress else path.stat().st_size


def filled(line: Sequence[str], input_: Input) -> list[str]:
    """Return the arguments of a line about an input. `OUT` stays, because the worker knows its folder."""
    names = {INPUT: input_.path.name, NEXT: input_.next or ""}
    return [names.get(word, word) for word in line]
