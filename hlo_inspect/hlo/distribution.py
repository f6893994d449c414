"""What the lines of a module tell of how it is spread over devices, noted while they stream by."""

from __future__ import annotations

import re

from hlo_inspect.hlo.module import Module

_TILING = re.compile(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = re.compile(r"sharding=\{mesh\[[^\]\n]*+\]")
_SHARDING = re.compile(r', sharding=(\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\})')
_PARTITIONING = re.compile(r'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+)"', re.ASCII)


def note_partitioning(module: Module, text: str, start: int, end: int) -> None:
    """Looks for what tells a module before partitioning, and for how many devices it is."""
    if not module.header.is_scheduled:
        module.partitioning_targets.update(_PARTITIONING.findall(text, start, end))
    if not module.header.states_devices and not module.tiling:
        tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
        module.tiling = tiling[0] if tiling else ""


def note_shardings(module: Module, text: str) -> None:
    """Notes the distinct shardings in a part of the entry."""
    module.shardings.update(dict.fromkeys(_SHARDING.findall(text)))
