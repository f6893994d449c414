"""The kind of program of a module, as far as its text shows it: training step, forward pass, decode step, one reduction.

Updates of weights make a training step. op_names show a backward pass if JAX wrote them; so do gradients among the outputs.
Without op_names no program is called a forward pass. A cache is a donated array, if an instruction writes a part of an array of
its shape. A program in which only one instruction computes is that operation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.figure import Figure, least
from hlo_inspect.graph.parameters import Interface, ParameterLeaf
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, CONTROL_FLOW, DEVICE_NUMBERS, LITERAL_OPCODES, NAMING, TABLE, opcodes_that_are
from hlo_inspect.hlo.values.op_names import BACKWARD, RECOMPUTE
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape
from hlo_inspect.optimizer.overview import Overview

Kind = Literal[
    "training step", "optimizer update", "forward and backward pass", "decode step", "inference step", "forward pass",
    "reduction", "operation", "program",
]  # fmt: skip

_WRITING = opcodes_that_are("update")
_MATMULS = frozenset({"dot", "convolution"})
_REDUCTIONS = opcodes_that_are("reduction")
_COMPUTES_NOTHING = NAMING | LITERAL_OPCODES | DEVICE_NUMBERS | {"copy", "reshape"}
_REORDERING = opcodes_that_are("relayout")
_OF_JAX = ("jit_", "pjit_", "pmap_", "xmap_")
"""Prefixes of the names of modules whose op_names show a backward pass."""

_Dimensions = tuple[int | None, ...]


class Program(NamedTuple):
    """The kind of program.

    `cache` are the parameters in which a decode or inference step keeps earlier positions. `opcode` is the opcode of a program
    of one operation or reduction. Without a dot or convolution `has_matmuls` is None if costs were left out, or if the text is
    truncated. So it is if a line or a custom call may hold one.
    """

    kind: Kind
    cache: tuple[ParameterLeaf, ...] = ()
    opcode: str = ""
    has_matmuls: bool | None = None


def find_program(
    module: Module,
    interface: Interface,
    views: Views,
    phases: Iterable[str],
    cost: ModuleCost | None,
    overview: Overview | None,
) -> Program:
    """Find the kind of program of a module.

    `phases` are those of its instructions by op_names. `cost` and `overview`, which --quick leaves out, make the kind more
    precise.
    """
    has_matmuls = _has_matmuls(module, cost)
    names_tell = module.name.startswith(_OF_JAX)
    name = overview.name if overview is not None and overview.is_training_step else None
    trains = name is not None and (name != "unknown" or not names_tell)
    has_backward = not (trains and has_matmuls is not False) and any(phase in (BACKWARD, RECOMPUTE) for phase in phases)
    if trains or (name is not None and has_backward):
        only_updates = has_matmuls is False and not has_backward
        return Program("optimizer update" if only_updates else "training step", has_matmuls=has_matmuls)
    is_open = overview is not None and overview.name is None
    if module.problems.is_truncated or is_open:  # the missing part may hold products, the backward pass, or the updates
        return Program("program", has_matmuls=has_matmuls or None)
    if has_backward:
        return Program("forward and backward pass", has_matmuls=has_matmuls)
    only = _only_operation(module)
    if only is not None:
        return Program("reduction" if only in _REDUCTIONS else "operation", opcode=only)
    writes = list(_writes(views)) if overview is not None and _WRITING & module.opcode_counts.keys() else []
    caches = _caches(_replaced_arrays(interface), writes, views)
    if caches and has_matmuls is not False:
        is_one = any(write.is_one_position for _, to_cache in caches for write in to_cache)
        cache = tuple(leaf for leaf, _ in caches)
        return Program("decode step" if is_one else "inference step", cache, has_matmuls=has_matmuls)
    kind: Kind = "program"
    if has_matmuls and overview is not None and not overview.rows:
        if overview.returns_gradients(interface):
            kind = "forward and backward pass"
        elif names_tell and _has_op_names(views):
            kind = "forward pass"
    return Program(kind, has_matmuls=has_matmuls)


def _has_op_names(views: Views) -> bool:
    """Return True if instructions other than parameters have op_names: without them, no backward pass is named either."""
    return any(
        "op_name=" in tail and opcode != "parameter"
        for view in map(views.for_computation, views.computations)
        for opcode, tail in zip(view.opcodes, view.tails, strict=True)
    )


def _has_matmuls(module: Module, cost: ModuleCost | None) -> bool | None:
    if _MATMULS & module.opcode_counts.keys():
        return True
    if cost is None:
        return None
    matmuls = cost.step["matmul_flops"]
    return True if least(matmuls) else (None if isinstance(matmuls, Figure) or module.unread else False)


def _only_operation(module: Module) -> str | None:
    """Return the opcode of the only instruction of the entry that computes something.

    A fusion or an asynchronous computation counts as the only instruction in it that computes something, or as its root if the
    root reduces. One that multiplies matrices and does more has no opcode.
    """
    if module.entry is None:
        return None
    computing = _computing_opcodes(module.entry)
    if len(computing) != 1:
        return None
    (only,) = computing
    if only not in _WRAPPING:
        return None if only in CONTROL_FLOW else only
    wrappers = module.entry.with_opcodes({_WRAPPING[only]})
    callees = [module.computations.get(wrapper.callee("calls") or "") for wrapper in wrappers]
    callee = callees[0] if callees else None
    if callee is None:
        return None
    fused = _computing_opcodes(callee)
    if len(fused) == 1 or not _MATMULS.isdisjoint(fused):
        return fused[0] if len(fused) == 1 else None
    return callee.root_opcode if callee.root_opcode in _REDUCTIONS else only


_WRAPPING = {"fusion": "fusion", "async": "async-start"}
"""Opcodes that run one computation, with the opcode that names it."""


def _computing_opcodes(computation: Computation) -> list[str]:
    """Return the opcodes of the instructions that compute something; an asynchronous pair counts once."""
    opcodes = (TABLE[opcode].base if opcode in TABLE else opcode for opcode in computation.opcodes if opcode not in ASYNC_ENDS)
    return [opcode for opcode in opcodes if opcode not in _COMPUTES_NOTHING]


def _replaced_arrays(interface: Interface) -> list[ParameterLeaf]:
    """Return the donated arrays of two or more dimensions with an output of the same shape."""
    shapes = {str(output.shape) for output in interface.outputs}
    return [
        leaf
        for leaf in interface.parameters
        if len(leaf.shape.dimensions) > 1 and (leaf.alias is not None or (leaf.donor and str(leaf.shape) in shapes))
    ]


def _caches(
    leaves: Sequence[ParameterLeaf], writes: Sequence[_Write], views: Views
) -> list[tuple[ParameterLeaf, list[_Write]]]:
    """Return the arrays that an instruction writes to, or to one element of their first dimension, with these writes.

    The dimensions are in their own order, or in an order into which the module transposes such arrays.
    """
    reordered = _transposed_orders(views) if leaves and writes else {}
    writes_of_leaves = []
    for leaf in leaves:
        dimensions = leaf.shape.dimensions
        orders = [dimensions, *reordered.get(dimensions, ())]
        written = {*orders, *(order[1:] for order in orders), *reordered.get(dimensions[1:], ())}
        writes_of_leaves.append((leaf, [write for write in writes if write.whole in written]))
    return [(leaf, of_leaf) for leaf, of_leaf in writes_of_leaves if of_leaf]


def _transposed_orders(views: Views) -> dict[_Dimensions, set[_Dimensions]]:
    """Return, by the dimensions of arrays, the other orders into or from which the module transposes them."""
    orders: dict[_Dimensions, set[_Dimensions]] = defaultdict(set)
    for view, row in views.rows_with(_REORDERING):
        before, after = _dimensions(view.operand_shape(row, 0)), _dimensions(view.shapes[row])
        if before is not None and after is not None and before != after and Counter(before) == Counter(after):
            orders[before].add(after)
            orders[after].add(before)
    return orders


class _Write(NamedTuple):
    """An instruction that writes a part of an array: the sizes of the array and of the part, unordered for a scatter."""

    whole: _Dimensions
    part: _Dimensions

    @property
    def is_one_position(self) -> bool:
        """True if the part is one element of a dimension other than the first, which may hold a loop's layers."""
        return self.part[1:].count(1) > self.whole[1:].count(1)


def _writes(views: Views) -> Iterator[_Write]:
    for view, row in views.rows_with(_WRITING):
        number = 1 if view.opcodes[row] == "dynamic-update-slice" else 2
        whole, part = _dimensions(view.operand_shape(row, 0)), _dimensions(view.operand_shape(row, number))
        if whole is not None and part is not None:
            yield _Write(whole, part)


def _dimensions(shape: Shape | None) -> _Dimensions | None:
    return shape.dimensions if isinstance(shape, ArrayShape) else None
