"""Logical collectives: what communicates, between how many devices, and how many bytes.

One logical collective can be printed in several ways: as one instruction; as a start/done pair; as `async-start` that calls a
computation with the collective in it; on TPU as several copies of one all-gather inside of fusions, or as a fusion that
slices an all-reduce, which is a reduce-scatter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, Participants, group_mode, participants
from hlo_inspect.analysis.metadata import Origin, origin
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.shapes import ArrayShape, Shape, TupleShape, array_leaves, total

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
)
POINT_TO_POINT = ("send", "recv")
OLD_NAMES = {"cross-replica-sum": "all-reduce"}  # until 2018-12

OPCODES = frozenset(opcode for kind in (*KINDS, *POINT_TO_POINT) for opcode in (kind, f"{kind}-start")) | frozenset(
    {"cross-replica-sum", "async-start", "while", "conditional", "call"}
)
"""What has to be kept of a module: collectives, and what decides how and how often they run."""

RESIZING_OPCODES = frozenset(
    f"{kind}{half}"
    for kind in ("all-gather", "reduce-scatter", "collective-permute", "ragged-all-to-all", "recv")
    for half in ("", "-start")
)
"""Of these the operands can have another size than the result, or one that the result does not tell."""

_STARTING = frozenset({*KINDS, *(f"{kind}-start" for kind in KINDS), *POINT_TO_POINT, *OLD_NAMES})

ASYNC_START_TARGET = "AsyncCollectiveStart"
TARGETS = frozenset({ASYNC_START_TARGET})

_IS_SYNC = re.compile(r'"is_sync"\s*:\s*(?:true|"true")')

REDUCTIONS = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "and": "and", "or": "or", "xor": "xor"}


@dataclass(frozen=True, slots=True)
class Collective:
    """One logical collective. Bytes are those of one device; `None` where they cannot be known.

    `start` is the instruction that stands for it where it is called from, `inner` the one that says what it does (the
    same, but for wrapped and fused ones). `operand_shapes` are those of the inner one.
    """

    kind: str
    start: Instruction
    inner: Instruction
    result_shape: Shape | None
    operand_bytes: int | None
    result_bytes: int | None
    wire_bytes: int | None
    mode: GroupMode
    participants: Participants
    replica_groups: str
    source_target_pairs: str
    channel_id: int | None
    reduction: str
    is_async: bool
    origin: Origin

    @property
    def is_point_to_point(self) -> bool:
        return self.kind in POINT_TO_POINT

    @property
    def group_size(self) -> int | None:
        """Devices of one group; `None` for what has no groups."""
        if self.is_point_to_point or self.kind == "collective-permute":
            return None
        return self.participants.size


def find_collectives(module: Module, counts: DeviceCounts) -> list[Collective]:
    """The logical collectives of `module`, in the order of the text."""
    collectives = list(module.with_opcodes(_STARTING))  # a done or an update only refers to its start
    callers = _callers(module, {i.computation.name for i in collectives if not i.computation.is_entry})
    starting = _starting_computations(module)
    started = {_identity(i) for i in collectives if i.computation.name in starting}
    found = []
    for inner in collectives:
        start = callers.get(inner.computation.name, inner)
        starts_here = inner.computation.name in starting
        if start.opcode == "fusion" and started and not starts_here and _identity(inner) in started:
            continue  # a copy of an all-gather that is started elsewhere
        found.append(_collective(module, inner, start, counts, fused_start=starts_here))
    return found


def _callers(module: Module, holders: set[str]) -> dict[str, Instruction]:
    """Each of the computations `holders` -> the first async-start or fusion that calls it."""
    callers: dict[str, Instruction] = {}
    for instruction in module.with_opcodes(frozenset({"async-start", "fusion"})) if holders else ():
        name = instruction.word("calls")
        if name in holders:
            callers.setdefault(name, instruction)
    return callers


def _starting_computations(module: Module) -> set[str]:
    """The computations in which TPU starts an asynchronous collective fusion."""
    return {
        i.computation.name
        for i in module.instructions
        if i.opcode == "custom-call" and ASYNC_START_TARGET in i.attribute("custom_call_target")
    }


def _identity(instruction: Instruction) -> tuple[object, ...]:
    """What the copies of one collective agree on: kind, channel, groups and shape, the layout aside."""
    attributes = instruction.attributes
    names = ("channel_id", "replica_groups", "dimensions")
    return (instruction.opcode, str(instruction.shape), *(attributes.get(name) for name in names))


def _collective(
    module: Module, inner: Instruction, start: Instruction, counts: DeviceCounts, *, fused_start: bool
) -> Collective:
    attributes = inner.attributes
    printed = base_opcode(inner.opcode)
    kind = OLD_NAMES.get(printed, printed)
    mode = group_mode(kind, attributes)
    members = participants(attributes.get("replica_groups"), mode, counts)
    result = _result_shape(inner, kind)
    operand_bytes = _operand_bytes(inner, attributes, kind, result, members.size)
    if start.opcode == "fusion" and kind == "all-reduce" and _is_smaller(start.shape, operand_bytes):
        kind, result = "reduce-scatter", start.shape
    return Collective(
        kind=kind,
        start=start,
        inner=inner,
        result_shape=result,
        operand_bytes=operand_bytes,
        result_bytes=_bytes(result),
        wire_bytes=wire_bytes(kind, operand_bytes, members.size, attributes.get("source_target_pairs", "")),
        mode=mode,
        participants=members,
        replica_groups=attributes.get("replica_groups", ""),
        source_target_pairs=attributes.get("source_target_pairs", ""),
        channel_id=_channel(attributes),
        reduction=_reduction(module, inner, attributes),
        is_async=_is_async(inner, start, attributes, fused_start=fused_start),
        origin=origin(attributes.get("metadata", ""), module.frames),
    )


def _is_smaller(shape: Shape | None, size: int | None) -> bool:
    result = _bytes(shape)
    return result is not None and size is not None and result < size


def _bytes(shape: Shape | None) -> int | None:
    return None if shape is None else shape.array_bytes


def _result_shape(instruction: Instruction, kind: str) -> Shape | None:
    """The shape of what the collective gives. A start's own shape holds the operands too, but for all-reduce-start.

    send's holds the data, recv's as well, both first in a tuple.
    """
    shape = instruction.shape
    if kind in POINT_TO_POINT:
        return _element(shape, 0)
    if not instruction.opcode.endswith("-start") or kind == "all-reduce":
        return shape
    return _element(shape, 1)


def _element(shape: Shape | None, index: int) -> Shape | None:
    if isinstance(shape, TupleShape):
        return shape.elements[index] if index < len(shape.elements) else None
    return shape


def _operand_bytes(
    instruction: Instruction, attributes: dict[str, str], kind: str, result: Shape | None, size: int | None
) -> int | None:
    """Bytes of the operands: as defined or printed, else by XLA's shape inference from the result."""
    shapes = instruction.operand_shapes
    if "slice_sizes" in attributes:
        shapes = shapes[:1]  # a permute in place names the output and two offsets behind its operand
    known = [_bytes(shape) for shape in shapes]
    if known and None not in known:
        return total(known)
    whole = _bytes(result)
    if whole is None or kind == "ragged-all-to-all":
        return None
    if kind == "all-gather":
        return whole // size if size else None
    if kind == "reduce-scatter":
        return whole * size if size else None
    return whole


def wire_bytes(kind: str, operand_bytes: int | None, size: int | None, pairs: str = "") -> int | None:
    """Bytes that one device has to send with a bandwidth-optimal algorithm over a group of `size`, rounded up.

    The lower bounds are those of the ring and recursive-halving algorithms: Patarasuk and Yuan, "Bandwidth optimal all-reduce
    algorithms for clusters of workstations", 2009; also the bus-bandwidth factors in the PERFORMANCE.md of NVIDIA's nccl-tests.
    """
    if operand_bytes is None or kind in POINT_TO_POINT or kind == "ragged-all-to-all":
        return None
    if kind == "collective-broadcast":
        return operand_bytes
    if kind == "collective-permute":
        return 0 if pairs and _only_to_itself(pairs) else operand_bytes
    if not size:
        return None
    if kind == "all-gather":
        return (size - 1) * operand_bytes
    rounds = 2 if kind == "all-reduce" else 1
    return -(-rounds * (size - 1) * operand_bytes // size)


def _only_to_itself(pairs: str) -> bool:
    return all(source.strip() == target.strip() for source, target in re.findall(r"\{(\s*\d+\s*),(\s*\d+\s*)\}", pairs))


def _channel(attributes: dict[str, str]) -> int | None:
    text = attributes.get("channel_id", attributes.get("all_reduce_id", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _reduction(module: Module, instruction: Instruction, attributes: dict[str, str]) -> str:
    """What the root of `to_apply` computes; empty where nothing is reduced, `unknown` where the computation is not in the
    text.
    """
    if "to_apply" not in attributes:
        return ""
    for name in instruction.callees(attributes).get("to_apply", ()):
        computation = module.computations.get(name)
        root = computation.root_opcode if computation else module.root_opcodes.get(name)
        return REDUCTIONS.get(root, root) if root else "unknown"
    return "unknown"


def _is_async(inner: Instruction, start: Instruction, attributes: dict[str, str], *, fused_start: bool) -> bool:
    """Whether start and done are apart: a pair, a wrapper or a TPU collective fusion whose config does not say `is_sync`."""
    if not (inner.opcode.endswith("-start") or start.opcode == "async-start" or fused_start):
        return False
    configs = {attributes.get("backend_config", ""), start.attributes.get("backend_config", "")}
    return not any(_IS_SYNC.search(config.replace('\\"', '"')) for config in configs)


def leaf_dtype(shape: Shape | None) -> str:
    """The element type of the first array of a shape."""
    leaves: Iterator[ArrayShape] = (leaf for _, leaf in array_leaves(shape))
    first = next(leaves, None)
    return first.dtype if first else ""
