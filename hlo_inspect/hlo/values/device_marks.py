"""What the lines of a module say of how it is spread over devices, noted while they are read."""

from __future__ import annotations

import re

from hlo_inspect.hlo.read.header import Header
from hlo_inspect.hlo.values.sharding import split_sharding
from hlo_inspect.lazy_pattern import lazy_pattern

_TILING = lazy_pattern(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = lazy_pattern(r"sharding=\{mesh\[[^\]{\n]*+\]")
_SHARDING = lazy_pattern(r', sharding=(\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\})')
_TARGET = 'custom_call_target="'
_CROSS_MESH = "__builtin$CrossMeshAllReduce"
"""Alpa's sum over the devices of several meshes, the only sign that a stage of its pipelines is for several."""
_TELLING = lazy_pattern(rf'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+|{re.escape(_CROSS_MESH)})"', re.ASCII)


class DeviceMarks:
    """The marks of one module.

    `partitioning_targets`: the custom-call targets that occur only before partitioning. `shardings`: the distinct ones in the
    entry, a tuple's one by one. `tiling`: the first sharding over devices where the header does not count them, and
    `crosses_meshes` whether a custom call then sums over devices of other meshes.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self.partitioning_targets: set[str] = set()
        self.tiling = ""
        self.crosses_meshes = False
        self.shardings: dict[str, None] = {}

    def note(self, text: str, start: int, end: int, *, of_entry: bool = False) -> None:
        """Looks for marks in `text[start:end]`, which are whole lines."""
        counts_devices = self._header.states_devices
        if self._header.is_scheduled:
            crosses_meshes = not counts_devices and text.find(f'{_TARGET}{_CROSS_MESH}"', start, end) >= 0
        else:
            is_there = text.rfind(_TARGET, start, end) >= 0  # found much faster than the pattern, and than by `find`
            targets = set(_TELLING.findall(text, start, end)) if is_there else set()
            crosses_meshes = not counts_devices and _CROSS_MESH in targets
            self.partitioning_targets |= targets - {_CROSS_MESH}
        self.crosses_meshes |= crosses_meshes
        asks_devices = not counts_devices and not self.tiling
        last = text.rfind("sharding={", start, end) if asks_devices or of_entry else -1  # faster than `find`
        if last < 0:
            return
        if asks_devices:
            tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
            self.tiling = "{" + tiling[0].removeprefix("sharding={") + "}" if tiling else ""
        printed = _SHARDING.findall(text, start, text.find("\n", last, end) + 1 or end) if of_entry else ()
        for sharding in dict.fromkeys(printed):
            self.shardings |= dict.fromkeys(split_sharding(sharding) or (sharding,))
