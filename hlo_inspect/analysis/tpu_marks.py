"""Marks of texts that XLA compiled for TPUs: the generation of TPU and the age of the compiler.

A text names no chip. The generation shows in the compiler's cycles for kernels that do almost nothing. It shows also in the
memories of arrays, and in kernels that are split over both cores of a chip. The numbers are from texts that libtpu 0.0.42 to
0.0.52 compiled for each generation.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

_CYCLES = lazy_pattern(r'"estimated_cycles":"(\d{3,15})"', re.ASCII)
SPLIT_OVER_CORES = "megacore_config"
"""Mark of a kernel that both cores of a chip share."""
_BUFFERING = "buffering_level"
CMEM, VMEM = "S(3)", "S(1)"
"""Memory on the chip: CMEM of v4 alone, VMEM of all from v4 on."""


_LEAST_CYCLES = {
    "tpu-v2": range(196, 218),
    "tpu-v3": range(253, 284),
    "tpu-v4": range(606, 640),
    "tpu-v5e": range(1816, 1870),
    "tpu-v6e": range(2116, 2145),
    "tpu-7x": range(2290, 2330),
}
"""Smallest estimates of kernels that touch memory. v5p has the same as v6e."""
_WITHOUT_SPACES = frozenset({"tpu-v2", "tpu-v3"})
"""Generations whose programs place no array in a memory on the chip."""
_LEAST_MEASURED = 150
"""Kernels below it do less than any kernel that touches memory."""
_WITHIN_THE_CHIP = range(250, 1000)
"""Estimates of v5e's kernels that touch only memory on the chip. For v6e and 7x they are 1,024 and more."""
_SLOWER_WITHIN_THE_CHIP = frozenset({"tpu-v6e", "tpu-7x"})


class TpuMarks(NamedTuple):
    """The marks of a text for TPUs.

    `generation` is the name of its profile, None if the text does not show it. `is_split`: kernels are split over two cores.
    `is_recent`: libtpu 0.0.46 or newer, of about 2026, compiled it.
    """

    generation: str | None
    is_split: bool
    is_recent: bool


def tpu_marks(module: Module) -> TpuMarks:
    """Return the marks of a module that was read with its graph."""
    estimates: Counter[int] = Counter()
    is_split = is_recent = False
    for computation in module.computations.values():
        for tail in computation.rows.tails:
            is_split = is_split or SPLIT_OVER_CORES in tail
            is_recent = is_recent or _BUFFERING in tail
            estimates[estimated_cycles(tail) or 0] += 1
    if has_arrays_in(module, CMEM):
        generation: str | None = "tpu-v4"
    elif is_split:
        generation = "tpu-v5p"
    else:
        generation = _generation(estimates, has_vmem=has_arrays_in(module, VMEM))
    return TpuMarks(generation, is_split, is_recent)


def has_tiles(module: Module) -> bool:
    """Return True if layouts have tiles, as in optimized texts for TPUs."""
    return any(":T(" in text for text in module.heads)


def _generation(estimates: Counter[int], *, has_vmem: bool) -> str | None:
    """Return the generation whose smallest estimate most kernels have, among generations that no kernel excludes.

    A single kernel's estimate has to be the smallest, because another generation estimates larger kernels at the same cycles.
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


def estimated_cycles(tail: str) -> int | None:
    """Return the cycles that the compiler estimates for a kernel, by the text behind its opcode; None if it states none."""
    match = _CYCLES.search(tail)
    return None if match is None else int(match[1])


def has_arrays_in(module: Module, space: str) -> bool:
    """Return True if an array of a module is in a memory space."""
    return any(space in text for text in module.heads)
