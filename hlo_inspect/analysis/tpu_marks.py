"""Marks of texts that XLA compiled for TPUs: which generation of TPU, and by how recent a compiler.

A text names no chip. It shows the generation of a TPU by how many cycles the compiler estimates for kernels that do next to
nothing, by the memories that it places arrays in, and by kernels that are split over both cores of a chip. The numbers were
read off texts that libtpu 0.0.42 to 0.0.52 compiled for each generation.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

_CYCLES = lazy_pattern(r'"estimated_cycles":"(\d{3,15})"', re.ASCII)
SPLIT_OVER_CORES = "megacore_config"
"""Of a kernel that both cores of a chip work on."""
_BUFFERING = "buffering_level"
CMEM, VMEM = "S(3)", "S(1)"
"""Memory on the chip: of v4 alone, and of all from v4 on."""


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


class TpuMarks(NamedTuple):
    """What the rows of a text for TPUs show: the generation, by the name of its profile, `None` where they do not; whether
    kernels are split over two cores; whether libtpu 0.0.46 or newer, of about 2026, compiled it.
    """

    generation: str | None
    is_split: bool
    is_recent: bool


def tpu_marks(module: Module) -> TpuMarks:
    """The marks of a module that was read with its graph."""
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
    """Whether layouts have tiles: those of optimized texts for TPUs."""
    return any(":T(" in text for text in module.heads)


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


def estimated_cycles(tail: str) -> int | None:
    """The cycles that the compiler estimates for a kernel, by the text behind its opcode; `None` where it states none."""
    found = _CYCLES.search(tail)
    return None if found is None else int(found[1])


def has_arrays_in(module: Module, space: str) -> bool:
    """Whether an array of a module is in a memory."""
    return any(space in text for text in module.heads)
