"""Constants and weak types in the StableHLO beside a module: `module_0006.jit_step/module.mlir`.

HLO text elides arrays of more than ten elements as `constant({...})`, and it has no weak types. StableHLO has the values. JAX
makes a weak value strong by a `convert` whose type stays, which the HLO text lacks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from hlo_inspect.errors import InputError
from hlo_inspect.hlo.settings.compile_settings import stablehlo_file
from hlo_inspect.hlo.settings.text_proto import read_file
from hlo_inspect.lazy_pattern import lazy_pattern

_CONSTANT, _VALUE, _END = "stablehlo.constant", " dense<", "> : tensor<"
_TYPE = lazy_pattern(r"tensor<((?:\d{1,18}x)*)([A-Za-z][\w<>]*)>", re.ASCII)
_CONVERT = lazy_pattern(r"stablehlo\.convert (%\w+) : (?:\(tensor<([^<>]*)>\) -> )?tensor<([^<>]*)>")
_FUNCTION = lazy_pattern(r"func\.func (?:public |private )?@([^\s(]++)\(")
_CALL = lazy_pattern(r"\bcall @([^\s(]++)\(([^()]*+)\)")
_SCALAR_ARGUMENT = lazy_pattern(r"%arg(\d{1,9}): tensor<([a-z]\w*+)>", re.ASCII)
_SSA_VALUE = lazy_pattern(r"%\w++", re.ASCII)
_TENSOR = "tensor<"
_OPERANDS = 17
"""Limit of a scalar and its operands that are followed."""
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
    if only one of two equal programs has it, it is weak there. `weak_types` are their types. `calls` are all calls, `scalars`
    the operands of scalar results, and `scalar_arguments` the types of the program's scalar arguments.
    """

    constants: tuple[ElidedConstant, ...]
    weak_values: tuple[_FunctionValue, ...]
    weak_types: frozenset[str] = frozenset()
    calls: tuple[_Call, ...] = ()
    scalars: Mapping[_FunctionValue, tuple[str, ...]] = MappingProxyType({})
    scalar_arguments: Mapping[int, str] = MappingProxyType({})

    @property
    def weak_arguments(self) -> frozenset[int]:
        """The numbers of the program's arguments that are converted to their own type, in functions that it calls too.

        Scalars that a converted scalar is computed of are among them, if they have the type of one.
        """
        callers: dict[str, list[_Call]] = {}
        for call in self.calls:
            callers.setdefault(call.callee, []).append(call)
        direct = self._reached(callers, {})
        computed = self._reached(callers, self.scalars) - direct
        return direct | {number for number in computed if self.scalar_arguments.get(number) in self.weak_types}

    def _reached(
        self, callers: Mapping[str, list[_Call]], definitions: Mapping[_FunctionValue, tuple[str, ...]]
    ) -> frozenset[int]:
        """Return the program's arguments that weak values come from: through calls, and through `definitions`."""
        reached = dict.fromkeys(self.weak_values)
        waiting = list(reached)
        for value in waiting:
            number = _argument_number(value.value)
            sources = [_FunctionValue(value.function, operand) for operand in definitions.get(value, ())]
            if number is not None:
                calls = callers.get(value.function, ())
                sources += [_FunctionValue(call.caller, name) for call in calls for name in call.operands[number : number + 1]]
            waiting += [source for source in dict.fromkeys(sources) if source not in reached]
            reached |= dict.fromkeys(sources)
        numbers = (_argument_number(value) for function, value in reached if function == _MAIN)
        return frozenset(number for number in numbers if number is not None)


def _argument_number(value: str) -> int | None:
    match = _ARGUMENT.fullmatch(value)
    return int(match[1]) if match is not None else None


def parse_stablehlo(text: str) -> StableHlo:
    """Return the constants, weak values and calls of a module. Other operations count if their result is a scalar."""
    constants: list[ElidedConstant] = []
    weak_values: list[tuple[_FunctionValue, str]] = []
    calls: list[_Call] = []
    scalars: dict[_FunctionValue, tuple[str, ...]] = {}
    scalar_arguments: dict[int, str] = {}
    function = ""
    for line in text.split("\n"):
        if _CONSTANT in line:
            constants += _large_constants(line)
            continue
        if "func.func" in line:
            match = _FUNCTION.search(line)
            function = match[1] if match is not None else ""
            if function == _MAIN:
                scalar_arguments = {int(number): type_ for number, type_ in _SCALAR_ARGUMENT.findall(line)}
            continue
        convert = _CONVERT.search(line) if "stablehlo.convert" in line else None
        if convert is not None and convert[2] in (None, convert[3]):
            weak_values.append((_FunctionValue(function, convert[1]), convert[3]))
        call = _CALL.search(line) if "call @" in line else None
        if call is not None:
            calls.append(_Call(function, call[1], tuple(call[2].split(", "))))
        if line[(end := line.rfind(_TENSOR) + len(_TENSOR)) : end + 1].isalpha():
            result, *operands = _SSA_VALUE.findall(line)[:_OPERANDS] or [""]
            scalars[_FunctionValue(function, result)] = tuple(operands)
    values, types = [value for value, _ in weak_values], frozenset(type_ for _, type_ in weak_values)
    return StableHlo(tuple(constants), tuple(values), types, tuple(calls), scalars, scalar_arguments)


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


def stablehlo_beside(module_file: str) -> StableHlo | None:
    """Read the StableHLO of the module whose text this is; None if the dump has none, or none that is readable."""
    path = stablehlo_file(Path(module_file))
    try:
        return read_stablehlo(path) if path is not None else None
    except InputError:
        return None
