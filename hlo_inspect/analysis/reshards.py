"""The two shardings between which the partitioner inserted a collective.

A partitioned text has no shardings any more. A dump directory with files of passes has the text before partitioning, in which
each instruction has one. A collective keeps op_name and call stack of the instruction that needed it; an operand of that
instruction is the array that it moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.input.dump_directory import BEFORE, text_before_partitioning
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import ELEMENTWISE
from hlo_inspect.hlo.values.device_groups import DeviceListError
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.hlo.wants import Wants

RESHARDING = frozenset({"all-gather", "all-to-all"})
"""The kinds of collectives that only change the sharding of an array."""
HOW_TO = "XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd"


class Reshard(NamedTuple):
    """An array and its user in the text before partitioning.

    `user_sharding` is that of the user's result. If `is_one_array`, the user works element by element: it needs the array so.
    """

    array: Instruction
    sharding: Sharding
    user: Instruction
    user_sharding: Sharding
    is_one_array: bool


class Reshards(NamedTuple):
    """The arrays that a collective may move, all that fit. `reason` says why there is none."""

    file: str
    rows: Sequence[Reshard]
    reason: str = ""


def find_reshards(module: Module, collective: Collective) -> Reshards | None:
    """Return the arrays that a collective may move by the text before partitioning.

    Return None if the collective does more than move an array, or the module is no file of a dump directory.
    """
    path = Path(module.path)
    if collective.kind not in RESHARDING or not collective.origin.op_name:
        return None
    before = text_before_partitioning(path)
    if before is None:
        return None
    try:
        modules = [read for read in read_input(open_source(before), Wants(graph=True)) if read.name == module.name]
    except HloInspectError as error:
        return Reshards(before.name, (), str(error))
    rows = [row for read in modules for row in _reshards(read, collective)]
    if rows:
        return Reshards(before.name, rows)
    if BEFORE in before.name:
        return Reshards(before.name, (), f"the dump has no text before partitioning that shards all arrays; {HOW_TO}")
    return Reshards(before.name, (), "no instruction of its op_name and source line has an operand that it could be a part of")


def _reshards(module: Module, collective: Collective) -> list[Reshard]:
    """Return the operands of instructions with the collective's origin that fit its shape best."""
    views, origin = Views(module.computations), collective.origin
    users = (
        (view, row)
        for view in map(views.for_computation, views.computations)
        for row in range(len(view.names))
        if view.op_name(row) == origin.op_name and origin_of(view.metadata(row), module.frames) == origin
    )
    fits = [(_fit(reshard, collective), reshard) for view, row in users for reshard in _of_user(view, row)]
    best = max((fit for fit, _ in fits), default=0)
    return [reshard for fit, reshard in fits if fit == best > 0]


def _of_user(view: View, row: int) -> Iterator[Reshard]:
    """Yield the operands of an instruction that are not sharded as it needs them, or may not be."""
    user = view.instruction_at(row)
    needed = user.attr("sharding")
    for operand in dict.fromkeys(view.operand_rows(row)):
        array = view.instruction_at(operand) if operand is not None else None
        sharding = array.attr("sharding") if array is not None else None
        if array is None or sharding is None or needed is None:
            continue
        is_one_array = user.opcode in ELEMENTWISE or user.attr("custom_call_target") == "Sharding"
        if not is_one_array or sharding != needed:
            yield Reshard(array, sharding, user, needed, is_one_array)


def _fit(reshard: Reshard, collective: Collective) -> int:
    """Return how well a collective's shape fits an array: 0 if it moves no part of it.

    One point each: the number of elements divides that of the array; each dimension does; the collective takes one part of
    the sharding whole. XLA may change the element type, reshape, and reshard in steps.
    """
    whole = reshard.array.shape
    parts = [leaf for _, leaf in array_leaves(collective.result_shape)]
    if not isinstance(whole, ArrayShape) or not whole.elements:
        return 0
    counts = [part.elements or 0 for part in parts]
    if not any(count and whole.elements % count == 0 for count in counts):
        return 0
    if collective.kind == "all-to-all":
        taken = {sum(counts)}
    else:
        taken = {count // (collective.participants.size or 1) for count in counts}
    return 1 + any(_sizes_fit(part, whole) for part in parts) + (whole.elements // _parts(reshard.sharding) in taken)


def _parts(sharding: Sharding) -> int:
    try:
        return max(sharding.parts, 1)
    except DeviceListError:
        return 1


def _sizes_fit(part: ArrayShape, whole: ArrayShape) -> bool:
    if len(part.dimensions) != len(whole.dimensions):
        return False
    sizes = zip(part.dimensions, whole.dimensions, strict=True)
    return all(size and of_whole is not None and of_whole % size == 0 for size, of_whole in sizes)
