"""Logical collectives: their kind, the devices that communicate and their bytes.

XLA prints one logical collective in several ways: as one instruction, as a start/done pair, or as `async-start` that calls a
computation with the collective. On TPU it may be several copies of one all-gather inside fusions. A TPU fusion that slices an
all-reduce is a reduce-scatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from hlo_inspect.analysis.devices.participants import (
    NOT_PRINTED,
    DeviceCounts,
    GroupMode,
    Participants,
    group_mode,
    participants,
    starting_collectives,
)
from hlo_inspect.figure import Quantity, between, unknown
from hlo_inspect.graph import calls
from hlo_inspect.graph.slices import Transfer, transfer_of
from hlo_inspect.hlo.collective_kinds import KIND_TABLE, CollectiveKind
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import (
    ADDING,
    POINT_TO_POINT,
    STARTING_COLLECTIVES,
    TABLE,
    base_opcode,
    opcodes_that_are,
    opcodes_that_call,
)
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import DeviceGroups, DevicePairs
from hlo_inspect.hlo.values.op_names import Origin, origin_of
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, Shape, TupleShape, array_leaves, total
from hlo_inspect.hlo.wants import Wants

OPCODES = STARTING_COLLECTIVES | opcodes_that_call("run", "body", "condition", "branch")
"""Opcodes that a module has to keep: collectives, and the instructions that determine their runs."""

RESIZING_OPCODES = opcodes_that_are("resized")
"""Collectives whose operands differ from the result in size, or do not follow from it."""

ASYNC_START_TARGET = "AsyncCollectiveStart"
ASYNC_DONE_TARGET = "AsyncCollectiveDone"
TARGETS = frozenset({ASYNC_START_TARGET})

WANTS = calls.WANTS | Wants(OPCODES, TARGETS, operands=RESIZING_OPCODES, noted=ADDING)
"""Parts of a module to keep for its collectives and their runs."""
KERNEL_WANTS = WANTS | Wants(opcodes=frozenset({"custom-call"}), graph=True, checked=True)
"""The parts for all kernels, collectives included, and for custom calls.

The runs of custom calls inside fusions are then known.
"""

_REDUCTIONS = {name: TABLE[name].written for name in ("maximum", "minimum")} | {"multiply": "mul"}


class Collective(NamedTuple):
    """A logical collective. Bytes are those of one device, or None if unknown.

    `most_sent` is an upper bound of `wire_bytes` that are unknown; None if there is no bound. An opcode that `opcodes` lacks is
    a kind of its own, whose bytes are unknown.
    `inner` is the instruction of the collective itself. `start` is the same instruction, or the `async-start` or fusion that
    wraps it. `groups` and `pairs` are its `replica_groups` and `source_target_pairs`. `transfer` is the transfer between slices
    that a send or recv is part of.
    """

    kind: str
    properties: CollectiveKind
    start: Instruction
    inner: Instruction
    result_shape: Shape | None
    operand_bytes: int | None
    result_bytes: int | None
    wire_bytes: int | None
    mode: GroupMode
    participants: Participants
    groups: DeviceGroups | MalformedValue | None
    pairs: DevicePairs | MalformedValue | None
    channel_id: int | None
    reduction: str
    is_async: bool
    origin: Origin
    transfer: Transfer | None = None
    most_sent: int | None = None

    @property
    def is_point_to_point(self) -> bool:
        return self.kind in POINT_TO_POINT

    @property
    def forms_groups(self) -> bool:
        """True for a kind whose devices communicate in groups."""
        return not (self.is_point_to_point or self.properties.names_pairs)

    @property
    def whole_bytes(self) -> int | None:
        """The bytes of the whole array; the operands of a kind whose whole array is unknown."""
        return self.result_bytes if self.properties.whole == "result" else self.operand_bytes

    @property
    def operands(self) -> Quantity:
        """The bytes of the operands."""
        return unknown(self.reason_unknown) if self.operand_bytes is None else self.operand_bytes

    @property
    def results(self) -> Quantity:
        """The bytes of the result."""
        return unknown(self.reason_unknown) if self.result_bytes is None else self.result_bytes

    @property
    def sent(self) -> Quantity:
        """The bytes that one device sends."""
        return between(0, self.most_sent, self.reason_unknown) if self.wire_bytes is None else self.wire_bytes

    @property
    def reason_uncounted(self) -> str:
        """The reason why an unknown opcode may stand for more than one collective; empty for a known one."""
        if self.properties.is_known:
            return ""
        return f"{self.start.name} (line {self.start.line}) has the unknown opcode {self.inner.opcode}"

    @property
    def sends_to_slices(self) -> bool:
        """True for a send between slices, whose other end is the recv of the other slice."""
        return self.transfer is not None and self.kind == "send"

    @property
    def replica_groups(self) -> str:
        """The text of the groups, empty if there are none."""
        return "" if self.groups is None else self.groups.text

    @property
    def source_target_pairs(self) -> str:
        """The text of the pairs, empty if there are none."""
        return "" if self.pairs is None else self.pairs.text

    @property
    def group_size(self) -> int | None:
        """The number of devices of one group; None for a kind without groups."""
        if not self.forms_groups:
            return None
        return self.participants.size

    def configs(self) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of the collective's backend configurations."""
        return _configs(self.inner, self.start)

    @property
    def reason_unknown(self) -> str:
        """The reason why some of its bytes are unknown."""
        place = f"{self.start.name} (line {self.start.line})"
        if not self.properties.is_known:
            return self.reason_uncounted
        if self.operand_bytes is None or self.result_bytes is None:
            return f"the shape of {place} or of its operands cannot be read, or has no size"
        sends = self.properties.sends
        if sends == "<=1":
            return f"{place} sends what its operands say at run time"
        if sends == "?":
            return f"no formula of the bytes that {self.kind} sends is known, as for {place}"
        return f"the group size of {place} is unknown: {self.participants.fault or 'the text does not say'}"


def find_collectives(module: Module, counts: DeviceCounts) -> list[Collective]:
    """Return the logical collectives of `module` in the order of the text."""
    inners = list(module.with_opcodes(starting_collectives(module)))  # a done or an update only refers to its start
    holders = {i.computation.name for i in inners if not i.computation.is_entry}
    callers = _callers(module, holders) if holders else {}
    starting = _starting_computations(module, inners, callers)
    started = {_identity(i) for i in inners if i.computation.name in starting}
    build = _Builder(module, counts)
    collectives = []
    for inner in inners:
        start = callers.get(inner.computation.name, inner)
        starts_here = inner.computation.name in starting
        if start.opcode == "fusion" and started and not starts_here and _identity(inner) in started:
            continue  # a copy of an all-gather that is started elsewhere
        collectives.append(build.collective(inner, start, fused_start=starts_here))
    return collectives


def _callers(module: Module, holders: set[str]) -> dict[str, Instruction]:
    """Map each computation of `holders` to the first async-start or fusion that calls it."""
    callers: dict[str, Instruction] = {}
    for instruction in module.with_opcodes({"async-start", "fusion"}, holders):
        name = instruction.callee("calls")
        if name in holders:
            callers.setdefault(name, instruction)
    return callers


def _starting_computations(module: Module, collectives: Sequence[Instruction], callers: Mapping[str, Instruction]) -> set[str]:
    """Return the computations in which TPU starts an asynchronous collective fusion.

    If attributes are not printed, the shape of the fusion decides: its tuple begins with the operand and result of the
    collective. The tuple of a copy begins with its own results.
    """
    targets = {
        i.computation.name
        for i in module.with_opcodes({"custom-call"})
        if ASYNC_START_TARGET in (i.attr("custom_call_target") or "")
    }
    bare = (i for i in collectives if i.computation.name in callers and not i.has("replica_groups"))
    return targets | {i.computation.name for i in bare if _begins_with_transfer(callers[i.computation.name].shape, i)}


def _begins_with_transfer(shape: Shape | None, collective: Instruction) -> bool:
    """Return True if a tuple begins with the operand and the result of a collective, layouts ignored."""
    transfer = (*(collective.operand_shapes or ())[:1], collective.shape)
    return isinstance(shape, TupleShape) and list(map(str, shape.elements[:2])) == list(map(str, transfer))


def _identity(instruction: Instruction) -> tuple[object, ...]:
    """Return the key that copies of one collective share: kind, shape without layout, channel, groups and dimensions."""
    groups = instruction.attr("replica_groups")
    text = groups.text if groups is not None else None
    return instruction.opcode, str(instruction.shape), _channel(instruction), text, instruction.attr("dimensions")


class _Builder:
    """Builds collectives from instructions; participants are computed once for each text of groups."""

    def __init__(self, module: Module, counts: DeviceCounts) -> None:
        self._module = module
        self._counts = counts
        self._participants: dict[tuple[DeviceGroups | MalformedValue | None, GroupMode], Participants] = {}

    def collective(self, inner: Instruction, start: Instruction, *, fused_start: bool) -> Collective:
        kind = kind_of(inner)
        mode = group_mode(inner)
        groups, pairs = inner.value("replica_groups"), inner.value("source_target_pairs")
        members = self._members(inner, kind, groups, mode)
        result = _result_shape(inner, kind)
        is_known = inner.opcode in TABLE
        operand_bytes = _operand_bytes(inner, kind, result, members.size) if is_known else None
        transfer = transfer_of(inner)
        if start.opcode == "fusion" and kind == "all-reduce":
            fused_bytes = _bytes(start.shape)
            if fused_bytes is not None and operand_bytes is not None and fused_bytes < operand_bytes:
                kind, result = "reduce-scatter", start.shape
        if transfer is None:
            sent = wire_bytes(kind, operand_bytes, members.size, pairs if isinstance(pairs, DevicePairs) else None)
        elif kind == "recv":
            sent = 0
        else:  # to other slices, which are one group
            sent = wire_bytes(transfer.kind, operand_bytes, transfer.slices) if transfer.kind is not None else None
        return Collective(
            kind=kind,
            properties=KIND_TABLE[kind],
            start=start,
            inner=inner,
            result_shape=result,
            operand_bytes=operand_bytes,
            result_bytes=_bytes(result) if is_known else None,
            wire_bytes=sent,
            mode=mode,
            participants=members,
            groups=groups,
            pairs=pairs,
            channel_id=_channel(inner),
            reduction=_reduction(self._module, inner),
            is_async=_is_async(inner, start, fused_start=fused_start),
            origin=origin_of(inner.attr("metadata"), self._module.frames),
            transfer=transfer,
            most_sent=_most_sent(inner, kind) if sent is None else None,
        )

    def _members(
        self, inner: Instruction, kind: str, groups: DeviceGroups | MalformedValue | None, mode: GroupMode
    ) -> Participants:
        """Return the participants.

        Printers since 2019, which print the layout of the entry, always print the groups of a collective of several devices, at
        least as `{}`.
        """
        if inner.opcode not in TABLE:
            return Participants(None, None, fault=f"the meaning of the groups of {inner.opcode} is unknown")
        says_it = self._module.header.prints_counts and kind not in POINT_TO_POINT and self._counts.devices != 1
        if says_it and not inner.has(groups_attribute(inner)):
            return Participants(None, None, fault=NOT_PRINTED)
        key = groups, mode
        if key not in self._participants:
            self._participants[key] = participants(groups, mode, self._counts)
        return self._participants[key]


def kind_of(collective: Instruction) -> str:
    """Return the kind of a collective. An unknown opcode is a kind of its own, without the suffix of a start."""
    record = TABLE.get(collective.opcode)
    return base_opcode(collective.opcode) if record is None else record.collective


def groups_attribute(collective: Instruction) -> str:
    """Return the attribute in which a collective names its devices."""
    return "source_target_pairs" if KIND_TABLE[kind_of(collective)].names_pairs else "replica_groups"


def _bytes(shape: Shape | None) -> int | None:
    return None if shape is None else shape.array_bytes


def _result_shape(instruction: Instruction, kind: str) -> Shape | None:
    """Return the shape of the collective's result.

    The tuple of a start holds the operands too, except for all-reduce-start. The tuples of send and recv begin with the data.
    """
    shape = instruction.shape
    if kind in POINT_TO_POINT:
        return _element(shape, 0)
    return _element(shape, 1) if instruction.opcode.endswith("-start") and kind != "all-reduce" else shape


def _element(shape: Shape | None, index: int) -> Shape | None:
    if isinstance(shape, TupleShape):
        return shape.elements[index] if index < len(shape.elements) else None
    return shape


def _operand_bytes(instruction: Instruction, kind: str, result: Shape | None, size: int | None) -> int | None:
    """Return the bytes of the operands: as defined or printed, else by XLA's shape inference from the result."""
    shapes = instruction.operand_shapes or ()
    if len(shapes) > 1 and instruction.has("slice_sizes"):  # a permute in place: the output and two offsets follow its operand
        return _bytes_of_slices(shapes[0], instruction.attr("slice_sizes"))
    if KIND_TABLE[kind].sends == "<=1":
        shapes = shapes[:1]  # the output's buffer follows, and the sizes of the parts
    sizes = [_bytes(shape) for shape in shapes]
    if sizes and None not in sizes:
        return total(sizes)
    result_bytes = _bytes(result)
    if result_bytes is None or kind in POINT_TO_POINT:
        return result_bytes
    return operand_of_result(kind, result_bytes, size)


def _bytes_of_slices(shape: Shape | None, sizes: Sequence[int] | None) -> int | None:
    """Return the bytes of the slices of an array; `sizes` has the dimensions of one slice after the other."""
    if not isinstance(shape, ArrayShape) or not sizes or not shape.dimensions or len(sizes) % len(shape.dimensions):
        return None
    rank = len(shape.dimensions)
    elements = sum(prod(sizes[start : start + rank]) for start in range(0, len(sizes), rank))
    return -(-elements * BITS[shape.dtype] // 8) if shape.dtype in BITS else None


def operand_of_result(kind: str, result_bytes: int, size: int | None) -> int | None:
    """Return the operand bytes of one device of a group of `size`, by its result; None if unknown."""
    whole = KIND_TABLE[kind].whole
    if whole == "both":
        return result_bytes
    if whole == "?" or not size:
        return None
    return result_bytes // size if whole == "result" else result_bytes * size


def _most_sent(instruction: Instruction, kind: str) -> int | None:
    """Return an upper bound of unknown sent bytes: the first operand, of which the others state the sent parts; else None."""
    shapes = instruction.operand_shapes
    return _bytes(shapes[0]) if shapes and KIND_TABLE[kind].sends == "<=1" else None


def wire_bytes(kind: str, operand_bytes: int | None, size: int | None, pairs: DevicePairs | None = None) -> int | None:
    """Return the bytes that one device sends over a group of `size` by the formula of its kind; None if unknown."""
    if operand_bytes is None:
        return None
    properties = KIND_TABLE[kind]
    if properties.names_pairs and pairs is not None and all(source == target for source, target in pairs.pairs):
        return 0
    return properties.sent_bytes(operand_bytes, size)


def _channel(instruction: Instruction) -> int | None:
    """Return the number of the channel; texts of 2018 call it `all_reduce_id`."""
    number = instruction.attr("channel_id")
    return instruction.attr("all_reduce_id") if number is None and not instruction.has("channel_id") else number


def _reduction(module: Module, instruction: Instruction) -> str:
    """Return the spelling of `to_apply`'s root opcode; empty if nothing is reduced, `unknown` if the text lacks it."""
    name = instruction.callee("to_apply")
    if name is None:
        return "unknown" if instruction.has("to_apply") else ""
    root = module.root_opcode(name)
    return _REDUCTIONS.get(root, root) if root else "unknown"


def _is_async(inner: Instruction, start: Instruction, *, fused_start: bool) -> bool:
    """Return True for a start/done pair, a wrapper or a TPU collective fusion, unless its config says `is_sync`."""
    if not (inner.opcode.endswith("-start") or start.opcode == "async-start" or fused_start):
        return False
    return not any(part.get("is_sync") in (True, "true") for part in _configs(inner, start))


def _configs(*instructions: Instruction) -> Iterator[Mapping[str, Any]]:
    for instruction in instructions:
        config = instruction.attr("backend_config")
        if config is not None:
            yield from config.objects()


def leaf_dtype(shape: Shape | None) -> str:
    """Return the element type of the first array of a shape, empty if it has none."""
    return next((leaf.dtype for _, leaf in array_leaves(shape)), "")
