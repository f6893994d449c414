"""Targets of a compile: a platform, the devices of it, and what this machine needs to compile for them.

`cpu` has a device for each partition of the program. `tpu-v5e:2x4` is a topology that libtpu names, `h100-sxm:8` a number of
GPUs. The words before the colon are names of hardware profiles.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from hlo_inspect.compiler.gpu_targets import GPU_NAMES, slice_topology, target_config
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern

CPU, TPU, GPU = "cpu", "tpu", "gpu"

TOPOLOGIES = {
    "tpu-v2": "v2",
    "tpu-v3": "v3",
    "tpu-v4": "v4",
    "tpu-v5e": "v5e",
    "tpu-v5p": "v5p",
    "tpu-v6e": "v6e",
    "tpu-7x": "TPU7x",
}
"""First words of libtpu's names of topologies, by hardware profile."""
_CORES_OF_CHIP = {"tpu-v2": 2, "tpu-v3": 2, "tpu-7x": 2}
"""Devices that JAX sees in a chip; 1 in others."""
_GRID = lazy_pattern(r"[1-9]\d{0,3}(?:x[1-9]\d{0,3}){1,2}")
_COUNT = lazy_pattern(r"[1-9]\d{0,5}")


class Target(NamedTuple):
    """Machine to compile for. `text` is what the user writes. `devices` is None for a CPU, which has any number.

    `topology` is libtpu's or the plugin's name for its devices, `profile` the name of a hardware profile, empty for CPU.
    `config` describes a GPU to XLA.
    """

    text: str
    platform: str
    profile: str = ""
    topology: str = ""
    devices: int | None = None
    config: str = ""


HOST = Target("cpu", CPU)


def parse_target(text: str, config: str = "") -> Target:
    """Parse the user's target. `config` describes its GPU in place of the figures that are known of it.

    Raise UsageError for any other text.
    """
    name, colon, size = text.partition(":")
    if config and name not in GPU_NAMES:
        raise UsageError(f"{text!r} is no GPU, which a target config describes")
    if name == CPU:
        if colon:
            raise UsageError(f"{text!r}: cpu has a device for each partition; write it without a number")
        return HOST
    if name in TOPOLOGIES:
        if _GRID.fullmatch(size) is None:
            raise UsageError(
                f"{text!r} has no topology; write it like {name}:{'2x4' if name in {'tpu-v5e', 'tpu-v6e'} else '2x2x1'}"
            )
        chips = prod(map(int, size.split("x")))
        return Target(text, TPU, name, f"{TOPOLOGIES[name]}:{size}", chips * _CORES_OF_CHIP.get(name, 1))
    if name in GPU_NAMES:
        if _COUNT.fullmatch(size) is None:
            raise UsageError(f"{text!r} has no number of GPUs; write it like {name}:8")
        return Target(text, GPU, name, slice_topology(name, int(size)), int(size), config or target_config(name))
    closest = did_you_mean(name, [CPU, *TOPOLOGIES, *GPU_NAMES])
    raise UsageError(f"{name!r} is no target{closest}; targets are cpu, tpu-v5e:2x4 and other TPUs, h100-sxm:8 and other GPUs")
