"""What the lines of a module say of how it is spread over devices, noted while they are read."""

from __future__ import annotations

import re

from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.sharding import split_sharding
from hlo_inspect.lazy_pattern import lazy_pattern

_TILING = lazy_pattern(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = lazy_pattern(r"sharding=\{mesh\[[^\]\n]*+\]")
_SHARDING = lazy_pattern(r', sharding=(\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\})')
_TARGET = 'custom_call_target="'
_CROSS_MESH = "__builtin$CrossMeshAllReduce"
"""Alpa's sum over the devices of several meshes, the only sign that a stage of its pipelines is for several."""
_TELLING = lazy_pattern(rf'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+|{re.escape(_CROSS_MESH)})"', re.ASCII)


def note_devices(module: Module, text: str, start: int, end: int, *, of_entry: bool = False) -> None:
    """Looks for marks of a module before partitioning, for how many devices it is, and of the entry for the distinct
    shardings, a tuple's one by one.
    """
    if module.header.is_scheduled:
        crosses_meshes = not module.header.states_devices and text.find(f'{_TARGET}{_CROSS_MESH}"', start, end) >= 0
    else:
        first = text.find(_TARGET, start, end)  # found much faster than the pattern
        targets = set(_TELLING.findall(text, first, end)) if first >= 0 else set()
        crosses_meshes = not module.header.states_devices and _CROSS_MESH in targets
        module.partitioning_targets |= targets - {_CROSS_MESH}
    module.crosses_meshes |= crosses_meshes
    asks_devices = not module.header.states_devices and not module.tiling
    first = text.find("sharding={", start, end) if asks_devices or of_entry else -1
    if first < 0:
        return
    if asks_devices:
        tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
        module.tiling = "{" + tiling[0].removeprefix("sharding={") + "}" if tiling else ""
    printed = _SHARDING.findall(text, max(start, first - 2), end) if of_entry else ()
    for sharding in dict.fromkeys(printed):
        module.shardings |= dict.fromkeys(split_sharding(sharding) or (sharding,))
