"""The accelerator that files beside a module name.

XLA writes a description of the GPU, PJRT the topology, and libtpu the arguments that it compiles for. libtpu's
`tpu_comp_env.txt` holds the same flags for every generation of TPU and names none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

_GPU = lazy_pattern(r'^\s*(?:device_description_str|name):\s*"([^"\\\n]{1,100})"', re.ASCII | re.MULTILINE)
_TOPOLOGY = lazy_pattern(r'^platform_version:\s*"TFRT (TPU ?[^"\\\n]{1,60})', re.ASCII | re.MULTILINE)
_VERSION = lazy_pattern(r'^\s*version:\s*(TPU_VERSION_\w{1,60})\n(?:\s*variant:\s*"(\w{1,20})")?', re.ASCII | re.MULTILINE)
TPUS = {
    "TPU v2": "tpu-v2",
    "TPU v3": "tpu-v3",
    "TPU v4": "tpu-v4",
    "TPU v5": "tpu-v5p",
    "TPU v5p": "tpu-v5p",
    "TPU v5 lite": "tpu-v5e",
    "TPU v5e": "tpu-v5e",
    "TPU v6 lite": "tpu-v6e",
    "TPU v6e": "tpu-v6e",
    "TPU7x": "tpu-7x",
    "TPU_VERSION_JELLYFISH": "tpu-v2",
    "TPU_VERSION_DRAGONFISH": "tpu-v3",
    "TPU_VERSION_PUFFERFISH": "tpu-v4",
    "TPU_VERSION_VIPERFISH": "tpu-v5p",
    "TPU_VERSION_VIPERFISH lite": "tpu-v5e",
    "TPU_VERSION_GHOSTLITE": "tpu-v6e",
    "TPU_VERSION_6acc60406": "tpu-7x",
}
"""Hardware profiles by the words of `topology.textproto` and of `target_arguments.txt`, as libtpu 0.0.52 writes them."""
_MOST_BYTES = 1 << 18
_MOST_DOTS = 12


class NamedTpu(NamedTuple):
    """The TPU that a file names, and its hardware profile; None if there is none."""

    name: str
    profile: str | None
    file: str


def described_gpu(path: Path) -> str | None:
    """Return the name in the file about the GPU beside the text of a module."""
    text = _text_beside(path, ".gpu_target_config.pbtxt")
    names = _GPU.findall(text) if text is not None else []
    return str(names[-1]) if names else None


def described_tpu(path: Path) -> NamedTpu | None:
    """Return the TPU that a file beside the text of a module names."""
    for ending in ("/topology.textproto", ".target_arguments.txt"):
        text = _text_beside(path, ending)
        match = (_TOPOLOGY if ending.startswith("/") else _VERSION).search(text) if text is not None else None
        if match is not None:
            name = " ".join(filter(None, match.groups()))
            return NamedTpu(name, TPUS.get(name), ending[1:])
    return None


def _text_beside(path: Path, ending: str) -> str | None:
    """Return the beginning of the file whose name is the module's stem and `ending`; None if there is none."""
    for stem in _stems(path.name):
        try:
            with path.with_name(stem).parent.joinpath(stem + ending).open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
    return None


def _stems(name: str) -> Iterator[str]:
    """Yield the name of a file without its last part between dots, without its last two, and so on."""
    for _ in range(_MOST_DOTS):
        name, dot, _ = name.rpartition(".")
        if not dot:
            return
        yield name
