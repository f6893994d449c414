"""Trip counts of loops: as XLA prints them, else derived from the text.

XLA's own analysis leaves `known_trip_count` in the `backend_config` of a while. TPU's optimized text and text before
optimization have none. A count is derived if the condition compares two integers. Each is a constant, or an element of the
state that every iteration changes by a constant. The patterns are those of XLA's `while_loop_analysis`: copies, tuples, fusions
and calls may stand in between. Beyond them, a start or a limit may come from the caller, from an outer loop, or from an earlier
loop that leaves it unchanged. A count is never guessed: if one of these numbers depends on data, the count is None and the
reason names the data.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction, Operand
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import opcodes_that_call
from hlo_inspect.hlo.read.open_computation import PASSING_OPCODES, read_skipped
from hlo_inspect.hlo.values.attributes import BackendConfig
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, subshape
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_STEPS = 150
"""Limit of instructions that are followed for one loop; real ones need about twenty."""

RUNNING_OPCODES = opcodes_that_call("run", "body", "condition", "branch")
"""Opcodes that run a computation that can hold a loop."""

_LOOPS = opcodes_that_call("body")
_PRINTED = lazy_pattern(r'"known_trip_count"\s*:\s*(\{[^{}]*\}|[^,}]*)')
_COUNT = lazy_pattern(r'\{\s*"n"\s*:\s*("?)(\d{1,18})\1\s*\}', re.ASCII)
_INTEGER = lazy_pattern(r"-?\d{1,20}", re.ASCII)


class Loop(NamedTuple):
    """A while.

    `trip_count` is the number of iterations of one run of the while; its condition runs once more. If it is unknown, `reason`
    says why, to follow "the trip count of NAME". `fault` describes a wrong printed count.
    """

    instruction: Instruction
    body: str | None
    condition: str | None
    trip_count: int | None
    source: Literal["known_trip_count", "derived"] | None
    reason: str | None = None
    fault: str | None = None


class UnknownError(Exception):
    """Reason why a count is unknown, to follow "the trip count of NAME"."""


class Progression(NamedTuple):
    """A number of type `dtype` that every iteration changes by `step`."""

    start: int
    step: int
    dtype: str


def find_loops(module: Module) -> list[Loop]:
    """Return the whiles that the reader kept, in the order of the text.

    Counts are derived if the module was read for `Wants.loops`.
    """
    induction = Induction(module)
    return [_loop(instruction, induction) for instruction in module.with_opcodes(_LOOPS)]


def _loop(instruction: Instruction, induction: Induction) -> Loop:
    body, condition = instruction.callee("body"), instruction.callee("condition")
    count, fault = printed_count(instruction.attr("backend_config"))
    if count is not None:
        return Loop(instruction, body, condition, count, "known_trip_count")
    try:
        count = runs(*induction.comparison(instruction))
    except (UnknownError, tokens.ScanError) as error:
        return Loop(instruction, body, condition, None, None, str(error), fault)
    return Loop(instruction, body, condition, count, "derived", None, fault)


def printed_count(config: BackendConfig | None) -> tuple[int | None, str | None]:
    """Return the `known_trip_count` of a configuration, and a description of a wrong one."""
    match = _PRINTED.search(config.text) if config is not None else None
    if match is None:
        return None, None
    count = _COUNT.fullmatch(match[1])
    if count is None:
        return None, f"known_trip_count is no count: {match[1][:40]!r}"
    return int(count[2]), None


def runs(direction: str, left: Progression, right: Progression) -> int:
    """Return the number of iterations: `left direction right` is checked before each of them, until it fails.

    Raise UnknownError for a loop without end.
    """
    gap, change = left.start - right.start, left.step - right.step
    if direction in {"GT", "GE"}:
        gap, change = -gap, -change
    if direction in {"LE", "GE"}:
        gap -= 1
    if direction in {"LT", "LE", "GT", "GE"}:
        count = 0 if gap >= 0 else -(gap // change) if change > 0 else None
    elif direction == "NE":
        meets = change != 0 and gap % change == 0 and -gap // change > 0
        count = 0 if gap == 0 else -gap // change if meets else None
    else:
        raise UnknownError(f"is unknown: its condition compares with direction={direction}")
    if count is None or not all(_fits(side.start + count * side.step, side.dtype) for side in (left, right)):
        raise UnknownError("is unknown: its condition stays true, or its counter overflows")
    return count


def _fits(value: int, dtype: str) -> bool:
    """Return True if the integer type holds the value; constants have no type and always fit."""
    if dtype[:1] not in {"s", "u"}:
        return True
    bits = BITS[dtype]
    low = -(1 << (bits - 1)) if dtype[0] == "s" else 0
    return low <= value < low + (1 << bits)


class _Number(NamedTuple):
    """The element of the loop's state plus `offset`; the constant `offset` if `element` is None."""

    element: ShapeIndex | None
    offset: int


class _Frame(NamedTuple):
    """A computation as one of its callers sees it. `parameter` resolves an element of a parameter."""

    computation: Computation
    parameter: Callable[[Instruction, ShapeIndex], _Number]


class Induction:
    """Follow the integer scalars of one module from their users back to their origins."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._steps = 0

    def comparison(self, loop: Instruction) -> tuple[str, Progression, Progression]:
        """Return the direction and both sides of the comparison that decides if `loop` continues.

        Raise UnknownError if it depends on data.
        """
        self._steps = 0
        read_skipped(self._module)
        frame, instruction = self._enter(loop.callee("condition"), "condition", _state)
        while instruction.opcode != "compare":
            if instruction.opcode in PASSING_OPCODES:
                instruction = self._operand(frame, instruction, 0)
            elif instruction.opcode in {"fusion", "call"}:
                frame, instruction = self._callee_root(frame, instruction)
            else:
                raise UnknownError(f"depends on {_describe(instruction)}, in which its condition ends")
        left = self._value(frame, instruction, 0)
        right = self._value(frame, instruction, 1)
        direction = instruction.attr("direction") or ""
        return direction, self._progression(loop, left), self._progression(loop, right)

    def _progression(self, loop: Instruction, number: _Number) -> Progression:
        if number.element is None:
            return Progression(number.offset, 0, "")
        path = number.element if loop.opcode == "while" else (1, *number.element)  # an asynchronous one has its operands first
        shape = subshape(loop.shape, path) if loop.shape is not None else None
        start, step = self._start(loop, number.element), self._step(loop, number.element)
        return Progression(start + number.offset, step, shape.dtype if isinstance(shape, ArrayShape) else "")

    def _start(self, loop: Instruction, element: ShapeIndex) -> int:
        """Return the value of an element of the state before the first iteration."""
        return self._value(_Frame(self._computation_of(loop), self._resolve_parameter), loop, 0, element).offset

    def _step(self, loop: Instruction, element: ShapeIndex) -> int:
        """Return the number that an iteration adds to an element of the state."""
        frame, root = self._enter(loop.callee("body"), "body", _state)
        after = self._follow(frame, root, element)
        if after.element != element:
            raise UnknownError(f"depends on what {_describe(root)} puts in place of a number that its condition compares")
        return after.offset

    # -- numbers --------------------------------------------------------------------------------------------------------

    def _value(self, frame: _Frame, user: Instruction, number: int, path: ShapeIndex = ()) -> _Number:
        """Resolve the element at `path` of an operand."""
        return self._follow(frame, self._operand(frame, user, number), _nth(user, number).path + path)

    def _follow(self, frame: _Frame, instruction: Instruction, path: ShapeIndex) -> _Number:
        """Resolve the element at `path` of an instruction's result."""
        opcode = instruction.opcode
        if opcode == "parameter":
            return frame.parameter(instruction, path)
        if opcode == "constant" and not path:
            return _Number(None, _constant(instruction))
        if opcode in {"add", "subtract"} and not path:
            return self._sum(frame, instruction)
        if opcode in {"fusion", "call"} and not path:
            return self._follow(*self._callee_root(frame, instruction), ())
        return self._value(frame, instruction, *self._source(instruction, path))

    def _source(self, instruction: Instruction, path: ShapeIndex) -> tuple[int, ShapeIndex]:
        """Return the operand, and the path in it, that gives the element at `path` of a result."""
        if instruction.opcode == "get-tuple-element":
            return 0, (_index(instruction), *path)
        if instruction.opcode == "tuple" and path:
            return path[0], path[1:]
        if instruction.opcode in PASSING_OPCODES or (instruction.opcode == "while" and self._step(instruction, path) == 0):
            return 0, path
        raise UnknownError(f"depends on {_describe(instruction)}")

    def _sum(self, frame: _Frame, instruction: Instruction) -> _Number:
        left = self._value(frame, instruction, 0)
        right = self._value(frame, instruction, 1)
        if right.element is None:
            return _Number(left.element, left.offset + (right.offset if instruction.opcode == "add" else -right.offset))
        if left.element is None and instruction.opcode == "add":
            return _Number(right.element, right.offset + left.offset)
        raise UnknownError(f"depends on {_describe(instruction)}, of two numbers that change")

    def _operand(self, frame: _Frame, user: Instruction, number: int) -> Instruction:
        self._step_on()
        name = _nth(user, number).name
        instruction = frame.computation.scalars.get(name) if name is not None else None
        if instruction is None:
            raise UnknownError(f"depends on {name or 'an operand'}, which {_describe(user)} reads and which is no integer")
        return instruction

    def _step_on(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise UnknownError(f"depends on more than {MAX_STEPS} instructions")

    # -- computations ---------------------------------------------------------------------------------------------------

    def _computation_of(self, instruction: Instruction) -> Computation:
        return self._module.computations[instruction.computation.name]

    def _callee_root(self, frame: _Frame, caller: Instruction) -> tuple[_Frame, Instruction]:
        """Return the computation of a fusion or a call, and its root."""

        def parameter(instruction: Instruction, path: ShapeIndex) -> _Number:
            return self._value(frame, caller, _parameter_number(instruction), path)

        return self._enter(caller.callee("calls") or caller.callee("to_apply"), "callee", parameter)

    def _enter(
        self, name: str | None, role: str, parameter: Callable[[Instruction, ShapeIndex], _Number]
    ) -> tuple[_Frame, Instruction]:
        self._step_on()
        if name is None:
            raise UnknownError(f"is unknown: its {role} is not named")
        computation = self._module.computations.get(name)
        roots = [i for i in computation.scalars.values() if i.is_root] if computation is not None else []
        if computation is None or not roots:
            raise UnknownError(f"is unknown: its {role} {name} is not in the text, or gives no integer")
        return _Frame(computation, parameter), roots[-1]

    def _resolve_parameter(self, parameter: Instruction, path: ShapeIndex) -> _Number:
        """Resolve a parameter of a computation that holds a loop: a constant, if all callers pass the same."""
        computation = self._computation_of(parameter)
        callers = [] if computation is self._module.entry else self._callers.get(computation.name, [])
        numbers = {self._handed(caller, parameter, path) for caller in callers}
        if len(numbers) != 1:
            raise UnknownError(f"depends on {_describe(parameter)} of {computation.name}")
        return numbers.pop()

    def _handed(self, caller: Instruction, parameter: Instruction, path: ShapeIndex) -> _Number:
        if caller.opcode == "while" and self._step(caller, path) == 0:
            return _Number(None, self._start(caller, path))
        if caller.opcode == "call":
            frame = _Frame(self._computation_of(caller), self._resolve_parameter)
            return self._value(frame, caller, _parameter_number(parameter), path)
        raise UnknownError(f"depends on {_describe(parameter)} of {parameter.computation.name}")

    @cached_property
    def _callers(self) -> Mapping[str, list[Instruction]]:
        callers: defaultdict[str, list[Instruction]] = defaultdict(list)
        for instruction in self._module.with_opcodes(RUNNING_OPCODES):
            for callee in instruction.called:
                callers[callee.name].append(instruction)
        return callers


def _state(parameter: Instruction, path: ShapeIndex) -> _Number:
    """Resolve the parameter of a condition or a body: it is the loop's state."""
    return _Number(path, 0)


def _nth(user: Instruction, number: int) -> Operand:
    operands = user.operands
    if number >= len(operands):
        raise UnknownError(f"depends on an operand that {_describe(user)} does not have")
    return operands[number]


def _parameter_number(parameter: Instruction) -> int:
    number = parameter.parameter_number
    if number is None:
        raise UnknownError(f"depends on {_describe(parameter)}, which has no number")
    return number


def _index(instruction: Instruction) -> int:
    index = instruction.attr("index")
    if index is None or index < 0:
        raise UnknownError(f"depends on {_describe(instruction)}, which has no index")
    return index


def _constant(instruction: Instruction) -> int:
    text = instruction.literal
    if not _INTEGER.fullmatch(text):
        raise UnknownError(f"depends on {_describe(instruction)}, which is no integer")
    return int(text)


def _describe(instruction: Instruction) -> str:
    return f"the {instruction.opcode} {instruction.name} (line {instruction.line})"
