"""What a dump says of the accelerator that it was compiled for: the file about the GPU beside it, marks of TPU generations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.tpu_marks import has_tiles, tpu_marks
from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

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


def dumped_device(module: Module) -> DumpedDevice:
    """The accelerator that the dump of a module names."""
    if has_tiles(module):
        generation = tpu_marks(module).generation
        if generation is None:
            return DumpedDevice(None, "a TPU whose generation the text does not show: choose one with --profile")
        return DumpedDevice(generation, "its tiles, memory spaces and the compiler's estimates")
    name = _described_gpu(Path(module.path))
    if name is None:
        return NOTHING_TELLS
    known = next((profile for pattern, profile in _GPUS if pattern.search(name)), None)
    if known is None:
        return DumpedDevice(None, f"there is no profile of {name}, for which the dump was compiled: name one with --profile")
    return DumpedDevice(known, f"{name} in the file about the GPU beside the dump")


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
