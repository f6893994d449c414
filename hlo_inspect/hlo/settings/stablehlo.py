"""Constants and weak types in the StableHLO beside a module: `module_0006.jit_step/module.mlir`.

HLO text elides arrays of more than ten elements as `constant({...})`, and it has no weak types. StableHLO has the values. JAX
makes a weak value strong by a `convert` whose type stays, which the HLO text lacks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.hlo.settings.text_proto import read_file
from hlo_inspect.lazy_pattern import lazy_pattern

_CONSTANT, _VALUE, _END = "stablehlo.constant", " dense<", "> : tensor<"
_TYPE = lazy_pattern(r"tensor<((?:\d{1,18}x)*)([A-Za-z][\w<>]*)>", re.ASCII)
_CONVERT = lazy_pattern(r"stablehlo\.convert (%\w+) : (?:\(tensor<([^<>]*)>\) -> )?tensor<([^<>]*)>")
_FUNCTION = lazy_pattern(r"func\.func (?:public |private )?@([^\s(]++)\(")
_CALL = lazy_pattern(r"\bcall @([^\s(]++)\(([^()]*+)\)")
_ARGUMENT = lazy_pattern(r"%arg(\d{1,9})", re.ASCII)
_MAIN = "main"
MAX_BYTES = 1 << 29
_PRINTED = 10
"""HLO text prints arrays up to this number of elements."""


class ElidedConstant(NamedTuple):
    """A constant that HLO text elides: its dimensions, its StableHLO element type and a hash of its values."""

    dimensions: tuple[int, ...]
    element_type: str
    digest: str


class _FunctionValue(NamedTuple):
    """A value of a function, such as `%arg3` of `main`."""

    function: str
    value: str


class _Call(NamedTuple):
    """A call of another function, with its operands."""

    caller: str
    callee: str
    operands: tuple[str, ...]


class StableHlo(NamedTuple):
    """The parts of a `module.mlir` that HLO text lacks.

    `weak_values` are the values that a `convert` of one type reads, in the order of the text. A strong value may be among them;
    if only one of two equal programs has it, it is weak there. `calls` are all calls.
    """

    constants: tuple[ElidedConstant, ...]
    weak_values: tuple[_FunctionValue, ...]
    calls: tuple[_Call, ...] = ()

    @property
    def weak_arguments(self) -> frozenset[int]:
        """The numbers of the program's arguments that are converted to their own type, in functions that it calls too."""
        callers: dict[str, list[_Call]] = {}
        for call in self.calls:
            callers.setdefault(call.callee, []).append(call)
        reached = dict.fromkeys(self.weak_values)
        waiting = list(reached)
        for function, value in waiting:
            number = _argument_number(value)
            if number is None:
                continue
            for call in callers.get(function, ()):
                for operand in call.operands[number : number + 1]:
                    passed = _FunctionValue(call.caller, operand)
                    if passed not in reached:
                        reached[passed] = None
                        waiting.append(passed)
        numbers = (_argument_number(value) for function, value in reached if function == _MAIN)
        return frozenset(number for number in numbers if number is not None)


def _argument_number(value: str) -> int | None:
    match = _ARGUMENT.fullmatch(value)
    return int(match[1]) if match is not None else None


def parse_stablehlo(text: str) -> StableHlo:
    """Return the constants, weak values and calls of a module. Lines of other operations do not count."""
    constants: list[ElidedConstant] = []
    weak_values: list[_FunctionValue] = []
    calls: list[_Call] = []
    function = ""
    for line in text.split("\n"):
        if _CONSTANT in line:
            constants += _large_constants(line)
        elif "stablehlo.convert" in line:
            match = _CONVERT.search(line)
            if match is not None and match[2] in (None, match[3]):
                weak_values.append(_FunctionValue(function, match[1]))
        elif "call @" in line:
            match = _CALL.search(line)
            if match is not None:
                calls.append(_Call(function, match[1], tuple(match[2].split(", "))))
        elif "func.func" in line:
            match = _FUNCTION.search(line)
            function = match[1] if match is not None else ""
    return StableHlo(tuple(constants), tuple(weak_values), tuple(calls))


def _large_constants(line: str) -> Iterator[ElidedConstant]:
    start, end = line.find(_VALUE, line.find(_CONSTANT)), line.rfind(_END)
    type_ = _TYPE.match(line, end + len("> : ")) if 0 <= start < end else None
    if type_ is None:
        return
    value = line[start + len(_VALUE) : end]
    dimensions = tuple(int(size) for size in type_[1].split("x") if size)
    if math.prod(dimensions) > _PRINTED and value.startswith(("[", '"')):  # others have one value for all elements
        yield ElidedConstant(dimensions, type_[2], blake2b(value.encode(errors="replace"), digest_size=16).hexdigest())


def read_stablehlo(path: Path) -> StableHlo:
    """Read a `module.mlir`. Raise InputError if it cannot be read or is larger than `MAX_BYTES`."""
    return parse_stablehlo(read_file(path, MAX_BYTES))
