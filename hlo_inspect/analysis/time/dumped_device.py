"""What a dump says of the accelerator that it was compiled for: the file about the GPU beside it, marks of TPU generations.

A text names no chip. It shows the generation of a TPU by how many cycles the compiler estimates for kernels that do next to
nothing, by the memories that it places arrays in, and by kernels that are split over both cores of a chip. The numbers were
read off texts that libtpu 0.0.42 to 0.0.52 compiled for each generation.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.tpu_marks import CMEM, SPLIT_OVER_CORES, VMEM, estimated_cycles, has_arrays_in
from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

_LEAST_CYCLES = {
    "tpu-v2": range(196, 218),
    "tpu-v3": range(253, 284),
    "tpu-v4": range(606, 640),
    "tpu-v5e": range(1816, 1870),
    "tpu-v6e": range(2116, 2145),
    "tpu-7x": range(2290, 2330),
}
"""What kernels that touch memory are estimated at, at least. v5p has that of v6e."""
_WITHOUT_SPACES = frozenset({"tpu-v2", "tpu-v3"})
"""Generations for whose programs no array is placed in a memory on the chip."""
_LEAST_MEASURED = 150
"""Kernels below it do less than any that touches memory."""
_WITHIN_THE_CHIP = range(250, 1000)
"""What kernels of v5e are estimated at that touch only memory on the chip. Those of v6e and 7x are at 1,024 and more."""
_SLOWER_WITHIN_THE_CHIP = frozenset({"tpu-v6e", "tpu-7x"})

_GPUS = (
    (lazy_pattern(r"GB200\b"), "gb200"),
    (lazy_pattern(r"\bB200\b"), "b200"),
    (lazy_pattern(r"\bH200\b(?! NVL)"), "h200"),
    (lazy_pattern(r"\bH100 (?:80GB HBM3|SXM)"), "h100-sxm"),
    (lazy_pattern(r"\bH100 PCIe"), "h100-pcie"),
    (lazy_pattern(r"\bA100-SXM4?-80GB"), "a100-sxm-80gb"),
    (lazy_pattern(r"\bA100-SXM4?-40GB"), "a100-sxm-40gb"),
    (lazy_pattern(r"\bV100-SXM2"), "v100-sxm2"),
    (lazy_pattern(r"\bL40S\b"), "l40s"),
    (lazy_pattern(r"\bL4$"), "l4"),
    (lazy_pattern(r"\bMI300X\b"), "mi300x"),
    (lazy_pattern(r"\bMI250X\b"), "mi250x"),
)
_DESCRIPTION = lazy_pattern(r'^\s*(?:device_description_str|name):\s*"([^"\\\n]{1,100})"', re.ASCII | re.MULTILINE)
_TARGET = ".gpu_target_config.pbtxt"
_MOST_BYTES = 1 << 18
_MOST_DOTS = 12


class DumpedDevice(NamedTuple):
    """The shipped profile that a dump was compiled for, with the mark of it; `None` where there is none, with the reason."""

    profile: str | None
    told_by: str


NOTHING_TELLS = DumpedDevice(None, "the dump does not name its accelerator: choose one with --profile")


class TpuMarks(NamedTuple):
    """What the rows of an optimized text for TPUs show: its generation, and whether kernels are split over two cores."""

    generation: str | None
    is_split: bool


def dumped_device(module: Module) -> DumpedDevice:
    """The accelerator that the dump of a module names."""
    marks = tpu_marks(module)
    if marks is not None:
        if marks.generation is None:
            return DumpedDevice(None, "a TPU whose generation the text does not show: choose one with --profile")
        return DumpedDevice(marks.generation, "its tiles, memory spaces and the compiler's estimates")
    name = _described_gpu(Path(module.path))
    if name is None:
        return NOTHING_TELLS
    known = next((profile for pattern, profile in _GPUS if pattern.search(name)), None)
    if known is None:
        return DumpedDevice(None, f"there is no profile of {name}, for which the dump was compiled: name one with --profile")
    return DumpedDevice(known, f"{name} in the file about the GPU beside the dump")


def tpu_marks(module: Module) -> TpuMarks | None:
    """The marks of a module that was read with its graph; `None` where it is no optimized text for TPUs."""
    if not any(":T(" in text for text in module.heads):
        return None
    estimates: Counter[int] = Counter()
    is_split = False
    for computation in module.computations.values():
        for *_, tail in computation.rows:
            is_split = is_split or SPLIT_OVER_CORES in tail
            estimates[estimated_cycles(tail) or 0] += 1
    if has_arrays_in(module, CMEM):
        return TpuMarks("tpu-v4", is_split)
    if is_split:
        return TpuMarks("tpu-v5p", is_split)
    return TpuMarks(_generation(estimates, has_vmem=has_arrays_in(module, VMEM)), is_split)


def _generation(estimates: Counter[int], *, has_vmem: bool) -> str | None:
    """The generation whose least estimate most kernels have, of those that no kernel speaks against. That of one kernel has
    to be the least one: another generation estimates larger kernels at as much.
    """
    measured = [cycles for cycles in estimates if cycles >= _LEAST_MEASURED]
    in_memory = [cycles for cycles in measured if not has_vmem or cycles >= _WITHIN_THE_CHIP.stop]
    excluded = {"tpu-v4"} | (_WITHOUT_SPACES if has_vmem else set())
    if has_vmem and any(cycles in _WITHIN_THE_CHIP for cycles in measured):
        excluded |= _SLOWER_WITHIN_THE_CHIP
    votes: Counter[str] = Counter()
    for name, least in _LEAST_CYCLES.items():
        count = sum(map(estimates.__getitem__, least))
        is_least = bool(in_memory) and min(in_memory) in least
        if name not in excluded and (is_least or (count > 1 and has_vmem)):
            votes[name] = count
    return max(votes, key=votes.__getitem__, default=None)


def _described_gpu(path: Path) -> str | None:
    """The name in the file about the GPU that XLA writes beside the texts of a module."""
    stem = path.name
    for _ in range(_MOST_DOTS):
        stem, dot, _ = stem.rpartition(".")
        if not dot:
            return None
        try:
            with path.with_name(stem + _TARGET).open("rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        names = _DESCRIPTION.findall(text)
        return str(names[-1]) if names else None
    return None
