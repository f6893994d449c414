"""Marks of texts that XLA compiled for TPUs, which name no chip. Memory and times read more off them."""

from __future__ import annotations

import re

from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

_CYCLES = lazy_pattern(r'"estimated_cycles":"(\d{3,15})"', re.ASCII)
SPLIT_OVER_CORES = "megacore_config"
"""Of a kernel that both cores of a chip work on."""
CMEM, VMEM = "S(3)", "S(1)"
"""Memory on the chip: of v4 alone, and of all from v4 on."""


def estimated_cycles(tail: str) -> int | None:
    """The cycles that the compiler estimates for a kernel, by the text behind its opcode; `None` where it states none."""
    found = _CYCLES.search(tail)
    return None if found is None else int(found[1])


def has_arrays_in(module: Module, space: str) -> bool:
    """Whether an array of a module is in a memory."""
    return any(space in text for text in module.heads)
