"""What XLA's parser asks of single opcodes beyond their signature: operands and attributes that have to agree.

From `HloParserImpl::CreateInstruction` in xla/hlo/parser/hlo_parser.cc, and from the checks that end the process there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from hlo_inspect.hlo.shapes import ArrayShape, Shape, TupleShape
from hlo_inspect.hlo.strict.scope import NO_ATTRIBUTES, Known, Scope
from hlo_inspect.hlo.strict.shapes import compatible, is_scalar, take_shape
from hlo_inspect.hlo.strict.tokens import ASYNC, ATTRIBUTE, DEVICES, OPERANDS, SHAPE, Tokens

_INTEGER = re.compile(r"-?\d+", re.ASCII)
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_INNER_LIST = re.compile(r"\{([^{}]*)\}")
_BRANCH = re.compile(r"\{[^{}]*\}|[^{},\s][^{},]*")


@dataclass
class Use:
    """An operation with all that its text says. `wrapped` is the opcode that a short spelling wraps (`reduce-scatter-start`);
    `place` is where the opcode stands, `places` where each attribute does.
    """

    tokens: Tokens
    scope: Scope
    opcode: str
    wrapped: str
    shape: Shape | None
    place: int
    operands: list[Known] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    @property
    def printed(self) -> str:
        return self.opcode.replace("async", self.wrapped) if self.wrapped else self.opcode

    def refuse(self, code: str, message: str, attribute: str = "") -> NoReturn:
        """Refuses the operation, at one of its attributes or at its opcode."""
        self.tokens.refuse(code, message, self.places.get(attribute, self.place))

    def integers(self, attribute: str) -> list[int]:
        return [int(number) for number in _INTEGER.findall(self.attributes[attribute])]

    def operand_shape(self, number: int) -> Shape | None:
        return self.operands[number].shape if number < len(self.operands) else None


def check(use: Use) -> None:
    rule = _RULES.get(use.opcode)
    if rule is not None:
        rule(use)


_KEPT = ("calls", "async_execution_thread", "channel_id")


def known_of(use: Use) -> Known:
    """The operation as later ones see it."""
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    if any(name in use.attributes for name in _KEPT) or use.wrapped:
        attributes = {name: use.attributes[name].strip().lstrip("%") for name in _KEPT if name in use.attributes}
        if use.wrapped:
            attributes["wrapped"] = use.wrapped
    start = use.operands[0].start or use.operands[0] if use.opcode in {"async-update", "opt-barrier"} else None
    return Known(use.opcode, _made(use), attributes, start)


_TOKEN = ArrayShape("token")


def _made(use: Use) -> Shape | None:
    """The shape that the instruction has: of some opcodes XLA works it out, whatever is printed."""
    if use.opcode in {"after-all", "outfeed", "send-done"}:
        return _TOKEN
    if use.opcode == "add-dependency":
        return use.operand_shape(0)
    if use.opcode == "send":
        sent = use.operand_shape(0)
        return None if sent is None else TupleShape((sent, ArrayShape("u32"), _TOKEN))
    if use.opcode not in {"infeed", "recv", "recv-done"}:
        return use.shape
    held = use.operand_shape(0) if use.opcode == "recv-done" else use.shape
    if not isinstance(held, TupleShape) or not held.elements:
        return None
    rest = (ArrayShape("u32"), _TOKEN) if use.opcode == "recv" else (_TOKEN,)
    return TupleShape((held.elements[0], *rest))


def _one_dimension(use: Use) -> None:
    if "dimensions" in use.attributes and len(use.integers("dimensions")) != 1:
        use.refuse(ATTRIBUTE, f"{use.opcode} has exactly one dimension", "dimensions")


def _some_dimension(use: Use) -> None:
    if not use.integers("dimensions"):
        use.refuse(ATTRIBUTE, f"{use.opcode} needs a dimension", "dimensions")


def _reduction(use: Use) -> None:
    if "dimensions" in use.attributes:
        _some_dimension(use)
    is_global = use.attributes.get("use_global_device_ids", "").strip() == "true"
    if is_global and "channel_id" not in use.attributes and "mode" not in use.attributes:
        use.refuse(DEVICES, "global device ids need a channel_id", "use_global_device_ids")


def _permute(use: Use) -> None:
    pairs = _INNER_LIST.findall(use.attributes["source_target_pairs"])
    if any(len(_INTEGER.findall(pair)) != 2 for pair in pairs):
        use.refuse(DEVICES, "expected pairs of devices", "source_target_pairs")
    if "slice_sizes" in use.attributes and len(use.operands) != 4:
        use.refuse(OPERANDS, f"{use.opcode} in place takes 4 operands, not {len(use.operands)}")


def _broadcast(use: Use) -> None:
    operand = use.operand_shape(0)
    if "dimensions" not in use.attributes and operand is not None and not is_scalar(operand):
        use.refuse(ATTRIBUTE, "broadcast needs dimensions=")


def _dot(use: Use) -> None:
    if len(use.operands) < 2:
        use.refuse(OPERANDS, f"dot takes 2 operands, not {len(use.operands)}")


def _tuple(use: Use) -> None:
    if use.shape is None:
        return
    if not isinstance(use.shape, TupleShape):
        use.refuse(SHAPE, f"a tuple has the shape of one, not {use.shape}")
    if len(use.shape.elements) != len(use.operands):
        use.refuse(OPERANDS, f"a tuple of {len(use.shape.elements)} elements has {len(use.operands)} operands")


def _slice_indices(use: Use) -> None:
    """One start index for each dimension, or all of them in a vector."""
    arrays = 2 if use.opcode == "dynamic-update-slice" else 1
    if len(use.operands) < arrays:
        use.refuse(OPERANDS, f"{use.opcode} takes at least {arrays} operands, not {len(use.operands)}")
    sliced, first = use.operand_shape(0), use.operand_shape(arrays)
    if sliced is None or (first is None and len(use.operands) > arrays):
        return
    if not isinstance(sliced, ArrayShape):
        use.refuse(OPERANDS, f"{use.opcode} slices an array, not {sliced}")
    is_vector = len(use.operands) == arrays + 1 and isinstance(first, ArrayShape) and len(first.dimensions) == 1
    if not is_vector and len(use.operands) != arrays + len(sliced.dimensions):
        message = f"{use.opcode} takes {arrays + len(sliced.dimensions)} operands for {sliced}, not {len(use.operands)}"
        use.refuse(OPERANDS, message)


def _conditional(use: Use) -> None:
    index = use.operand_shape(0)
    if index is None:
        return
    if not isinstance(index, ArrayShape) or not is_scalar(index) or index.dtype not in {"pred", "s32"}:
        use.refuse(OPERANDS, f"the first operand of a conditional is pred[] or s32[], not {index}")
    needed = ("true_computation", "false_computation") if index.dtype == "pred" else ("branch_computations",)
    for name in needed:
        if name not in use.attributes:
            use.refuse(ATTRIBUTE, f"conditional over {index} needs {name}=")
    for name in ("true_computation", "false_computation", "branch_computations"):
        if name in use.attributes and name not in needed:
            use.refuse(ATTRIBUTE, f"conditional over {index} has no attribute {name!r}", name)
    inside = use.attributes.get("branch_computations", "").strip()[1:-1]
    branches = len(_BRANCH.findall(_without_bodies(inside))) if index.dtype == "s32" else 2
    if branches == 0 or branches + 1 != len(use.operands):
        use.refuse(OPERANDS, f"a conditional of {branches} branches takes {branches + 1} operands, not {len(use.operands)}")


def _without_bodies(text: str) -> str:
    """Computations in place as empty braces."""
    depth, kept = 0, []
    for char in text:
        depth -= char == "}"
        if depth == 0:
            kept.append(char)
        depth += char == "{"
    return "".join(kept)


def _infeed(use: Use) -> None:
    if not isinstance(use.shape, TupleShape) or not use.shape.elements:
        use.refuse(SHAPE, f"{use.opcode} gives a tuple of something, not {use.shape}")


def _done(use: Use) -> None:
    """send-done and recv-done are of the channel of what they end."""
    begun = use.operands[0]
    if begun.opcode.startswith(("send", "recv", "all-", "collective-", "reduce-scatter", "ragged-all")):
        channel = use.attributes.get("channel_id", "").strip()
        if channel != begun.attributes.get("channel_id", ""):
            use.refuse(DEVICES, f"{use.opcode} is of another channel than {begun.opcode}", "channel_id")
    if use.opcode == "recv-done" and begun.shape is not None and not isinstance(begun.shape, TupleShape):
        use.refuse(OPERANDS, f"recv-done takes a tuple, not {begun.shape}")


def _device_id(use: Use) -> None:
    if use.shape is not None and str(use.shape) != "u32[]":
        use.refuse(SHAPE, f"{use.opcode} gives u32[], not {use.shape}")


def _scan(use: Use) -> None:
    _one_dimension(use)
    called = _NAME.fullmatch(use.attributes["to_apply"].strip())
    parameters = use.scope.computations.get(called[1]) if called else None
    if parameters is not None and parameters != len(use.operands):
        message = f"scan has {len(use.operands)} operands, and what it applies {parameters} parameters"
        use.refuse(OPERANDS, message, "to_apply")
    if not 0 <= use.integers("num_carries")[0] <= len(use.operands):
        use.refuse(ATTRIBUTE, f"scan carries at most its {len(use.operands)} operands", "num_carries")


def _custom_call(use: Use) -> None:
    """Layouts are asked for all operands or for none."""
    text = use.attributes.get("operand_layout_constraints")
    if text is None:
        return
    tokens = Tokens(text, 0, len(text))
    shapes = [take_shape(tokens) for _ in tokens.list("{", "}", ATTRIBUTE)]
    if len(shapes) != len(use.operands):
        message = f"layouts for {len(shapes)} operands of {len(use.operands)}"
        use.refuse(ATTRIBUTE, message, "operand_layout_constraints")
    for number, (shape, operand) in enumerate(zip(shapes, use.operands, strict=True)):
        if operand.shape is not None and not compatible(shape, operand.shape):
            message = f"the layout of operand {number} is for {shape}, not {operand.shape}"
            use.refuse(ATTRIBUTE, message, "operand_layout_constraints")


def _async_start(use: Use) -> None:
    shape = use.shape
    if not isinstance(shape, TupleShape) or len(shape.elements) < 2 or not isinstance(shape.elements[0], TupleShape):
        use.refuse(ASYNC, "async-start gives ((operands), result, …)")
    called = "" if use.wrapped else use.attributes["calls"].strip().lstrip("%")
    if called in use.scope.wrapped:
        use.refuse(ASYNC, f"{called} is called by a second async-start", "calls")
    if called and not called.startswith("{"):
        use.scope.wrapped.add(called)


def _async_end(use: Use) -> None:
    """An update or a done goes back to a start, and agrees with it."""
    begun = use.operands[0]
    start = begun.start or begun
    if start.opcode != "async-start" or begun.opcode == "async-done":
        use.refuse(ASYNC, f"{use.printed} takes what an async-start or async-update gives")
    is_update = use.opcode == "async-update" and len(use.operands) == 1
    if is_update and use.shape is not None and begun.shape is not None and not compatible(use.shape, begun.shape):
        use.refuse(ASYNC, f"{use.printed} has the shape of its operand, {begun.shape}")
    called = use.attributes.get("calls")
    if called is not None and called.strip().lstrip("%") != start.attributes.get("calls", ""):
        use.refuse(ASYNC, f"{use.opcode} calls another computation than its start", "calls")
    thread = use.attributes.get("async_execution_thread")
    if thread is not None and thread.strip() != start.attributes.get("async_execution_thread", '"main"'):
        use.refuse(ASYNC, f"{use.opcode} is on another thread than its start", "async_execution_thread")
    wrapped = start.attributes.get("wrapped")
    if use.wrapped and wrapped is not None and wrapped != use.wrapped:
        use.refuse(ASYNC, f"{use.printed} ends a {wrapped}-start")


_RULES: dict[str, Callable[[Use], None]] = {
    "all-gather": _some_dimension,
    "all-gather-start": _some_dimension,
    "all-reduce": _reduction,
    "all-reduce-start": _reduction,
    "all-to-all": _one_dimension,
    "async-done": _async_end,
    "async-start": _async_start,
    "async-update": _async_end,
    "broadcast": _broadcast,
    "collective-permute": _permute,
    "collective-permute-start": _permute,
    "concatenate": _one_dimension,
    "conditional": _conditional,
    "custom-call": _custom_call,
    "dot": _dot,
    "dynamic-slice": _slice_indices,
    "dynamic-update-slice": _slice_indices,
    "get-dimension-size": _some_dimension,
    "infeed": _infeed,
    "partition-id": _device_id,
    "ragged-all-to-all": _one_dimension,
    "recv": _infeed,
    "replica-id": _device_id,
    "recv-done": _done,
    "reduce-scatter": _reduction,
    "scan": _scan,
    "send-done": _done,
    "set-dimension-size": _some_dimension,
    "sort": _one_dimension,
    "tuple": _tuple,
}
