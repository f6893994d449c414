"""Marks of texts that XLA compiled for TPUs: the generation of TPU and the age of the compiler.

A text names no chip. The generation shows in the compiler's cycles for kernels that do almost nothing, if two of them agree and
none excludes it. It shows also in the memories of arrays, in kernels that are split over both cores of a chip, and in the
priority of copies. The numbers are from texts that libtpu 0.0.42 to 0.0.52 compiled for each generation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.target_files import described_tpu
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
    "tpu-v5e": range(1815, 2115),
    "tpu-v6e": range(2115, 2150),
    "tpu-7x": range(2294, 2330),
}
"""Estimates of kernels that access memory and do nothing else. No such kernel of the generation has a smaller one."""
_V5P_LEAST = 2122
"""Smallest estimate of v5p, which has some of v6e's and splits nearly all kernels over its cores."""
_WITHOUT_SPACES = frozenset({"tpu-v2", "tpu-v3"})
"""Generations whose programs place no array in a memory on the chip."""
_LEAST_MEASURED = 150
"""Kernels below it do less than any kernel that touches memory."""
_WITHIN_THE_CHIP = range(250, 1000)
"""Estimates of v5e's matrix products in memory on the chip. For v6e and 7x they are 1,024 and more. Broadcasts on the chip have
such estimates in all generations."""
_PRODUCTS_UNLIKE_V5P = range(1000, 2000)
"""Estimates of matrix products on the chip that v5p does not have."""
_LEAST_WITNESSES = 2
"""Marks that have to show a generation: another one estimates a larger kernel at the same cycles."""
_DMA = lazy_pattern(r'"dma_priority":"?(\d)', re.ASCII)
_DMA_OF_7X = "5"
"""Priority of asynchronous copies for TPU7x. It is 1 for v5e, v5p and v6e, of which v5e has the smallest estimates."""
_STEPS = lazy_pattern(r'"iteration_bounds":\[([^\]]{0,200})\]', re.ASCII)


class TpuMarks(NamedTuple):
    """The marks of a text for TPUs.

    `generation` is the name of its profile, None if neither the text nor a file beside it shows it. `is_split`: kernels are
    split over two cores. `is_recent`: libtpu 0.0.46 or newer, of about 2026, compiled it. `has_kernels`: it has enough kernels
    with estimates to be sure that none is split.
    """

    generation: str | None
    is_split: bool
    is_recent: bool
    has_kernels: bool


def tpu_marks(module: Module) -> TpuMarks:
    """Return the marks of a module that was read with its graph."""
    is_split = is_recent = False
    in_memory: list[int] = []
    products: list[int] = []
    priorities: Counter[str] = Counter()
    for computation in module.computations.values():
        rows = computation.rows
        for opcode, tail in zip(rows.opcodes, rows.tails, strict=True):
            is_split = is_split or SPLIT_OVER_CORES in tail
            is_recent = is_recent or _BUFFERING in tail
            cycles = estimated_cycles(tail) or 0
            if cycles >= _LEAST_MEASURED:
                if _accesses_memory(opcode, tail):
                    in_memory.append(cycles)
                elif opcode == "fusion":
                    products.append(cycles)
            elif "dma_priority" in tail:
                priorities.update(_DMA.findall(tail))
    named = described_tpu(Path(module.path))
    if named is not None:
        generation = named.profile
    elif has_arrays_in(module, CMEM):
        generation = "tpu-v4"
    elif is_split:
        generation = "tpu-v5p"
    else:
        generation = _generation(in_memory, products, priorities, has_vmem=has_arrays_in(module, VMEM))
    return TpuMarks(generation, is_split, is_recent, len(in_memory) + len(products) >= _LEAST_WITNESSES)


def _accesses_memory(opcode: str, tail: str) -> bool:
    """Return True for a kernel whose estimate is that of its accesses: a loop fusion, or an operation of one step.

    Copies and broadcasts of more steps may have a number for each step, such as 100 cycles, in place of an estimate.
    """
    if opcode == "fusion":
        return "kind=kLoop" in tail
    steps = _STEPS.search(tail)
    return steps is None or set(steps[1].split(",")) == {'"1"'}


def has_tiles(module: Module) -> bool:
    """Return True if layouts have tiles, as in optimized texts for TPUs."""
    return any(":T(" in text for text in module.heads)


def _generation(
    in_memory: Sequence[int], products: Sequence[int], priorities: Mapping[str, int], *, has_vmem: bool
) -> str | None:
    """Return the one generation that several marks show and no kernel excludes; None if none or several are left.

    `in_memory` are the estimates of kernels that access memory, `products` those of matrix products and the like.
    """
    on_chip = [cycles for cycles in products if has_vmem and cycles in _WITHIN_THE_CHIP]
    measured = [cycles for cycles in in_memory if not has_vmem or cycles >= _WITHIN_THE_CHIP.stop]
    least = min(measured, default=0)
    may_be_v5p = least >= _V5P_LEAST and not any(cycles in _PRODUCTS_UNLIKE_V5P for cycles in products)
    left = []
    for name, cycles in _LEAST_CYCLES.items():
        witnesses = sum(map(cycles.__contains__, measured))
        if name == "tpu-v5e":
            witnesses += len(on_chip) + bool(priorities)
        elif on_chip or (name == "tpu-v6e" and may_be_v5p):
            continue
        if name == "tpu-7x":
            witnesses += priorities.get(_DMA_OF_7X, 0)
        if bool(priorities) and (name == "tpu-7x") != (priorities.get(_DMA_OF_7X, 0) > 0):
            continue
        is_excluded = 0 < least < cycles.start or (has_vmem and name in _WITHOUT_SPACES)
        if witnesses >= _LEAST_WITNESSES and not is_excluded:
            left.append(name)
    return left[0] if len(left) == 1 else None


def estimated_cycles(tail: str) -> int | None:
    """Return the cycles that the compiler estimates for a kernel, by the text behind its opcode; None if it states none."""
    match = _CYCLES.search(tail)
    return None if match is None else int(match[1])


def has_arrays_in(module: Module, space: str) -> bool:
    """Return True if an array of a module is in a memory space."""
    return any(space in text for text in module.heads)
