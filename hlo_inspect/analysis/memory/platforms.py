"""The platform that a text was compiled for, by its marks, and the bytes of a value on this platform."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, cast

from hlo_inspect.analysis.tpu_marks import has_tiles, tpu_marks
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import (
    ELEMENTWISE,
    LITERAL_OPCODES,
    MARKERS,
    NAMING,
    opcodes_that_are,
    opcodes_that_call,
    opcodes_that_give,
)
from hlo_inspect.hlo.values.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.request import PlatformName

MAX_SPACES = 16
"""Limit of memory space numbers; all platforms stay below it."""

PRESET_SPACES = frozenset({1, 3})
"""Fast memory of TPU, which is assigned before all other memory: VMEM, and CMEM of v4."""

_SCALAR_SPACES = frozenset({2, 4, 6})

_ENTRY_ALIGNMENT = 1024
"""TPU: elements of an array without tiles are rounded up to a multiple of this."""

_SMALL_TABLES = frozenset({"tpu-v5p", "tpu-v6e", "tpu-7x"})
"""Generations of TPU that round a tuple's table up to 32 bytes; v4 and v5e, and a text that shows no generation, to 512. It was
measured on texts compiled by libtpu 0.0.42 to 0.0.52.
"""


class Platform(NamedTuple):
    """The properties of a platform that sizes and rules of memory depend on; `mark` identified it in the text.

    `pointer_bytes` and `table_alignment`: of the index table of a tuple. `keeps_trace`: XLA keeps the trace of the heap, from
    which `memory_analysis()` computes its peak. `reuses_allocations`: temporaries may lie in allocations of donated parameters
    and of outputs; not on TPU since 2026. `cpu_alignment`: 16 until 2024, when fusions were split over threads as calls.
    """

    name: PlatformName
    mark: str
    pointer_bytes: int = 8
    table_alignment: int = 1
    keeps_trace: bool = True
    reuses_allocations: bool = True
    cpu_alignment: int = 64

    @property
    def is_tpu(self) -> bool:
        return self.name == "tpu"

    def alignment(self, space: int) -> int:
        """Return the alignment of temporaries in a memory space."""
        if self.name == "tpu":
            return {0: 16384, 1: 512, 3: 512, 6: 512}.get(space, 4)
        return self.cpu_alignment if self.name == "cpu" else 256

    @property
    def presets(self) -> frozenset[int]:
        """The memory spaces that are assigned before all others."""
        return PRESET_SPACES if self.is_tpu else frozenset()

    def bytes_of(self, shape: Shape | None) -> int | None:
        """Return the bytes of a value, padding of tiles included; a tuple is its table. None if a size is unknown."""
        if shape is None:
            return None
        if isinstance(shape, TupleShape):
            return -(-len(shape.elements) * self.pointer_bytes // self.table_alignment) * self.table_alignment
        if shape.dtype == "token":
            return 0
        plain, layout, elements = shape.padded_bytes, shape.layout, shape.elements
        has_tiles = layout is not None and (layout.tiles or layout.memory_space in _SCALAR_SPACES)
        if not self.is_tpu or has_tiles or not plain or not elements or shape.bytes is None:
            return plain
        return shape.bytes * (-(-elements // _ENTRY_ALIGNMENT) * _ENTRY_ALIGNMENT) // elements


_GPU_MARKS = (
    "operation_queue_id",
    "force_earliest_schedule",
    "scheduling_name=",
    "kind=kInput",
    "gemm_backend_config",
    "fusion_backend_config",
    "collective_backend_config",
    "__cublas",
    "__cudnn",
    "__triton",
    "triton_kernel",
    "cusolver",
    "cu_threefry",
)
_TPU_MARKS = ("tpu_custom_call", "scoped_memory_configs", "window_config")
_CPU_MARKS = ("outer_dimension_partitions", "__ynn", "__onednn", "__pocketfft", "TopK", "blas_", "lapack_")
_MARKS = (*_GPU_MARKS, *_CPU_MARKS, *_TPU_MARKS)
_MOVING = opcodes_that_give("same", "part", "move") - opcodes_that_are("collective") - MARKERS
_WITHOUT_MARKS = ELEMENTWISE | NAMING | LITERAL_OPCODES | _MOVING | {"iota", "reduce"}
"""Opcodes that every compiler fuses or applies, so that they show no platform."""
_FUSING_OR_APPLYING = opcodes_that_call("fused", "applied")
_LOOKED_AT_TOGETHER = 64
_GPU_FUSED = lazy_pattern(r"calls=%?fused_(?!computation)[a-z]|calls=%?(?:input|loop)_[a-z_]*fusion", re.ASCII)
"""Names of fused computations on GPU, by their operation."""


def find_platform(module: Module, views: Views, given: PlatformName | None = None) -> Platform:
    """Return the `given` platform, else the one whose marks the text has, else CPU."""
    if given is not None:
        return _platform(module, given, "--platform")
    if has_tiles(module):
        return _platform(module, "tpu", "tiles in layouts")
    if "fingerprint_before_lhs" in module.header.attributes.get("frontend_attributes", ""):
        return _platform(module, "gpu", "fingerprint_before_lhs")
    return _platform(module, *next(_find_marks(_marked_tails(module, views)), ("cpu", "no mark of another platform")))


def _marked_tails(module: Module, views: Views) -> Iterator[str]:
    """Yield the tails of the rows that may have marks of a platform.

    Skip fused and applied computations with only the opcodes that every platform fuses.
    """
    called = _called(module, views)
    for name, computation in module.computations.items():
        rows = computation.rows
        if computation is module.entry or name in called or not _WITHOUT_MARKS.issuperset(rows.opcodes):
            yield from rows.tails


def _called(module: Module, views: Views) -> set[str]:
    """Return the names of the computations that an instruction runs and neither fuses nor applies."""
    callers = (
        views.for_computation(name).instruction_at(row)
        for name, computation in module.computations.items()
        for row in computation.rows.column.calling
        if computation.rows.opcodes[row] not in _FUSING_OR_APPLYING
    )
    return {callee.name for caller in callers for callee in caller.called}


def _find_marks(tails: Iterable[str]) -> Iterator[tuple[PlatformName, str]]:
    """Yield the platforms that rows have marks of, in the order of the text."""
    rest = iter(tails)
    while batch := list(islice(rest, _LOOKED_AT_TOGETHER)):
        text = "\n".join(batch)
        if any(mark in text for mark in _MARKS) or _GPU_FUSED.search(text):
            yield from filter(None, map(_mark, batch))


def _mark(tail: str) -> tuple[PlatformName, str] | None:
    """Return the platform by the mark of one row, and that mark."""
    if "=" not in tail:
        return None
    for name, marks in (("gpu", _GPU_MARKS), ("cpu", _CPU_MARKS), ("tpu", _TPU_MARKS)):
        for mark in marks:
            if mark in tail:
                return cast("PlatformName", name), mark
    return ("gpu", "names of fused computations") if _GPU_FUSED.search(tail) else None


def _platform(module: Module, name: PlatformName, mark: str) -> Platform:
    if name == "tpu":
        marks = tpu_marks(module)
        alignment = 32 if marks.generation in _SMALL_TABLES else 512
        return Platform(name, mark, 4, alignment, reuses_allocations=not marks.is_recent)
    if name == "gpu":
        return Platform(name, mark)
    is_old = any("parallel_fusion" in computation for computation in module.computations) or _calls_onednn(module)
    return Platform(name, mark, keeps_trace=False, cpu_alignment=16 if is_old else 64)


def _calls_onednn(module: Module) -> bool:
    """Return True if matrices are multiplied by the library that compilers for CPU called until 2024."""
    calling = (computation.rows for computation in module.computations.values() if "custom-call" in computation.rows.opcodes)
    return any(
        "__onednn$matmul" in tail
        for rows in calling
        for opcode, tail in zip(rows.opcodes, rows.tails, strict=True)
        if opcode == "custom-call"
    )
