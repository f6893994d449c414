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
MAX_BYTES = 1 << 29
_PRINTED = 10
"""HLO text prints arrays up to this number of elements."""


class ElidedConstant(NamedTuple):
    """A constant that HLO text elides: its dimensions, its StableHLO element type and a hash of its values."""

    dimensions: tuple[int, ...]
    element_type: str
    digest: str


class StableHlo(NamedTuple):
    """The parts of a `module.mlir` that HLO text lacks.

    `weak_values` are the values that a `convert` of one type reads, such as `%arg3`, in the order of the text. A strong value
    may be among them; if only one of two equal programs has it, it is weak there.
    """

    constants: tuple[ElidedConstant, ...]
    weak_values: tuple[str, ...]

    @property
    def weak_arguments(self) -> frozenset[int]:
        """The numbers of the arguments that are converted to their own type."""
        numbers = (value.removeprefix("%arg") for value in self.weak_values if value.startswith("%arg"))
        return frozenset(int(number) for number in numbers if number.isdecimal() and len(number) < len("1000000000"))


def parse_stablehlo(text: str) -> StableHlo:
    """Return the constants and weak values of a module. Lines of other operations do not count."""
    constants: list[ElidedConstant] = []
    weak_values: list[str] = []
    for line in text.split("\n"):
        if _CONSTANT in line:
            constants += _large_constants(line)
        elif "stablehlo.convert" in line:
            match = _CONVERT.search(line)
            if match is not None and match[2] in (None, match[3]):
                weak_values.append(match[1])
    return StableHlo(tuple(constants), tuple(weak_values))


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
