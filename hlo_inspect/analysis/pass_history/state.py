"""What a module is at one moment of its compilation: its size, and the instructions that are followed through the passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from hlo_inspect.analysis.calls import WANTS, Bounds
from hlo_inspect.analysis.canonical.hashing import numbers_hash, text_hash
from hlo_inspect.analysis.collectives import OPCODES, TARGETS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT, TABLE
from hlo_inspect.hlo.shapes import ArrayShape
from hlo_inspect.hlo.wants import Wants

STATE_WANTS = WANTS | Wants(opcodes=OPCODES, operands=OPCODES, targets=TARGETS, entry=True, graph=True, checked=True)
"""What has to be kept of a module."""

_COLLECTIVES = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))


class Followed(NamedTuple):
    """One instruction, or logical collective. `operands` are the texts of their shapes, `groups` who takes part."""

    kind: str
    name: str
    op_name: str
    shape: str
    operands: tuple[str, ...]
    groups: Hashable
    is_async: bool
    bytes: int | None


class ModuleState(NamedTuple):
    """Counts are of instructions of the text, those of `collectives` (by kind) of logical ones; FLOPs and bytes are those of
    one run. `content` tells two states from each other: the computations, with the order of their lines where that is the
    schedule, and the header.
    """

    content: int
    is_scheduled: bool
    collectives: Counter[str]
    async_collectives: int
    fusions: int
    copies: int
    instructions: int
    flops: Bounds
    bytes: Bounds
    largest_array: ArrayShape | None


class ModuleMoment(NamedTuple):
    """A state with the name of the module and its instructions: those that are `followed`, and by what they say themselves how
    many there are.
    """

    module: str
    state: ModuleState
    followed: list[Followed]
    says: Counter[int]


def moment_of(context: Context, opcode: str | None) -> ModuleMoment:
    """A module that was read with `STATE_WANTS`. Collectives are followed, and the instructions of an `opcode`."""
    canonical = context.canonical
    opcodes = context.module.opcode_counts
    cost = context.cost
    followed = [_collective(one) for one in context.collectives]
    if opcode is not None and opcode not in _COLLECTIVES:
        followed += _instructions(context, opcode)
    state = ModuleState(
        content=_content(context),
        is_scheduled=context.module.header.is_scheduled,
        collectives=Counter(one.kind for one in context.collectives),
        async_collectives=sum(one.is_async for one in context.collectives),
        fusions=opcodes["fusion"],
        copies=sum(opcodes[one] for one in ("copy", "copy-start")),
        instructions=sum(opcodes.values()),
        flops=cost.step["flops"],
        bytes=cost.step["bytes"],
        largest_array=context.largest_arrays.largest_made_shape,
    )
    says: Counter[int] = Counter()
    for name in canonical.names:
        says.update(canonical.of(name).local)
    return ModuleMoment(context.module.name, state, followed, says)


def _content(context: Context) -> int:
    """Quicker than the hashes of the text in canonical names."""
    header, canonical = context.module.header, context.canonical
    found = [canonical.of(name) for name in canonical.names]
    numbers = sorted(one.ordered if header.is_scheduled else one.fingerprint for one in found)
    return numbers_hash([text_hash(str(sorted(header.attributes.items()))), *numbers])


def followed_opcode(pattern: str) -> str | None:
    """The opcode of the instructions that a pattern may name: an opcode, or the name of an instruction that begins with one;
    that of an asynchronous pair without its ending.
    """
    base = pattern.removeprefix("%").partition(".")[0].partition("*")[0]
    known = TABLE.get(base)
    return (known.collective or known.base) if known is not None else None


def _collective(one: Collective) -> Followed:
    groups = one.participants.key or one.source_target_pairs
    shape = "" if one.result_shape is None else str(one.result_shape)
    operands = tuple("?" if shape is None else str(shape) for shape in one.inner.operand_shapes or ())
    return Followed(one.kind, one.inner.name, one.origin.op_name, shape, operands, groups, one.is_async, one.operand_bytes)


def _instructions(context: Context, opcode: str) -> Iterator[Followed]:
    """The instructions of an opcode in the order of the text; of an asynchronous pair the first one."""
    for name in context.module.computations:
        view = context.views.of(name)
        for index, one in enumerate(view.opcodes):
            known = TABLE.get(one)
            if known is None or known.base != opcode or known.half in ("update", "done"):
                continue
            shape = view.shapes[index]
            operands = tuple(str(view.operand_shape(index, at)) for at in range(len(view.operand_rows(index))))
            size = shape.array_bytes if shape is not None else None
            defined, is_start = view.names[index], known.half == "start"
            yield Followed(opcode, defined, view.op_name(index), str(shape), operands, "", is_start, size)
