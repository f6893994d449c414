"""Literals: constants as they are spelled, and whether they fit the shape that they are of."""

from __future__ import annotations

import math
import re

from hlo_inspect.hlo.shapes import ArrayShape, Shape, TupleShape
from hlo_inspect.hlo.strict.shapes import numbers_each_dimension, take_shape
from hlo_inspect.hlo.strict.tokens import LITERAL, Tokens

_NUMBER = re.compile(
    r"(?P<nan>-?nan(?:\(0x(?P<payload>[0-9a-fA-F]{1,16})\))?)|(?P<inf>-?inf)"
    r"|(?P<decimal>-?\d+(?:\.\d*(?:[eE][+\-]?\d+)?|[eE][+\-]?\d+))|(?P<integer>-?\d+)",
    re.ASCII,
)
_WORD_GOES_ON = re.compile(r"[\w.\-]", re.ASCII)
_FLAT = re.compile(r"\{\s*+(?:-?\d{1,9}(?:\.\d{1,17}+)?(?:e[+\-]\d\d)?(?:,\s*+|(?=\s*+\})))*+\s*+\}", re.ASCII)

_RANGES = {
    "f16": (65520.0, 10),
    "bf16": (3.3961775292304957e38, 7),
    "f32": (3.4028235677973366e38, 23),
    "f64": (float("inf"), 52),
    "f8e5m2": (61440.0, 2),
    "f8e4m3": (248.0, 3),
    "f8e3m4": (15.75, 4),
    "f8e5m2fnuz": (61440.0, 0),
    "f8e4m3fnuz": (248.0, 0),
    "f8e4m3b11fnuz": (31.0, 0),
    "f8e4m3fn": (464.0000000000001, 0),
    "f8e8m0fnu": (1.7014118346046926e38, 0),
}
"""Of a floating-point type the smallest value that does not round to its largest one, and the bits of a NaN's payload.

The midpoint behind the largest value rounds up, but for f8e4m3fn, whose largest value has an even mantissa. f8e8m0fnu holds
nothing larger than its largest value, 2 ** 127. Types that are not here turn what is too large into their largest value.
"""
_COMPONENTS = {"c64": "f32", "c128": "f64"}
_MAX_DEPTH = 100


def take_literal(tokens: Tokens, shape: Shape | None, depth: int = 0) -> None:
    """Passes a literal of `shape`, or with `None` one that spells its shape."""
    if depth > _MAX_DEPTH:
        tokens.refuse(LITERAL, f"tuples nested deeper than {_MAX_DEPTH}")
    if shape is None:
        _take_spelled(tokens, depth)
    elif isinstance(shape, TupleShape):
        _take_tuple(tokens, shape, depth)
    elif not shape.is_array:
        tokens.refuse(LITERAL, f"there are no literals of {shape}")
    else:
        if not numbers_each_dimension(shape):  # the elements are laid out in memory at once
            tokens.refuse(LITERAL, f"the layout does not number each dimension of {shape}")
        _take_array(tokens, shape)


def _take_spelled(tokens: Tokens, depth: int) -> None:
    if not tokens.at("("):
        take_literal(tokens, take_shape(tokens), depth)
        return
    for _ in tokens.list("(", ")", LITERAL):
        take_literal(tokens, None, depth + 1)


def _take_tuple(tokens: Tokens, shape: TupleShape, depth: int) -> None:
    tokens.expect("(", LITERAL)
    if tokens.take(")"):  # elements left out are zeros
        return
    for number, element in enumerate(shape.elements):
        if number:
            tokens.expect(",", LITERAL)
        take_literal(tokens, element, depth + 1)
    tokens.expect(")", LITERAL)


def _take_array(tokens: Tokens, shape: ArrayShape) -> None:
    """Nested braces, as many deep as the array has dimensions; commas count for nothing."""
    if len(shape.dimensions) == 1 and _take_flat(tokens, shape):
        return
    nesting = _Nesting(shape)
    while True:
        start = tokens.position
        if tokens.take(","):
            if nesting.depth:
                continue
        elif tokens.take("{"):
            nesting.open(tokens, start)
        elif tokens.take("}"):
            nesting.close(tokens, start)
        elif tokens.take("..."):
            nesting.fill(tokens, start)
        else:
            _take_value(tokens, shape)
            nesting.count_value(tokens, start)
        if nesting.depth == 0:
            return


class _Nesting:
    """How deep a literal is inside of braces, and how many elements each open one has so far."""

    def __init__(self, shape: ArrayShape) -> None:
        self._shape = shape
        self._sizes = shape.dimensions
        self._seen = [0] * len(self._sizes)
        self.depth = 0

    def open(self, tokens: Tokens, start: int) -> None:
        if self.depth == len(self._sizes):
            tokens.refuse(LITERAL, f"the literal is nested deeper than the {self.depth} dimensions of {self._shape}", start)
        if self.depth:
            self._count(tokens, start)
        self.depth += 1

    def close(self, tokens: Tokens, start: int) -> None:
        if self.depth == 0:
            tokens.refuse(LITERAL, "expected a value", start)
        self.depth -= 1
        size, seen = self._sizes[self.depth], self._seen[self.depth]
        if seen != size:
            tokens.refuse(LITERAL, f"expected {size} elements of {self._shape}, found {seen}", start)
        self._seen[self.depth] = 0

    def fill(self, tokens: Tokens, start: int) -> None:
        if self.depth != 1:
            tokens.refuse(LITERAL, "... stands for all of an array", start)
        self._seen[0] = self._sizes[0] or 0

    def count_value(self, tokens: Tokens, start: int) -> None:
        if 0 < self.depth < len(self._sizes):
            tokens.refuse(LITERAL, f"expected {len(self._sizes)} levels of braces for {self._shape}", start)
        if self.depth:
            self._count(tokens, start)

    def _count(self, tokens: Tokens, start: int) -> None:
        """One more element of the innermost open brace."""
        self._seen[self.depth - 1] += 1
        size = self._sizes[self.depth - 1]
        if size is None or self._seen[self.depth - 1] > size:
            tokens.refuse(LITERAL, f"more elements than the {size} of {self._shape}", start)


def _take_flat(tokens: Tokens, shape: ArrayShape) -> bool:
    """A plain list of small numbers for a type that holds all of them; false where it has to be looked at one by one."""
    flat = _FLAT.match(tokens.text, tokens.position, tokens.end) if shape.dtype in {"f32", "f64"} else None
    if flat is None or ("," in flat[0] and flat[0].rstrip("} \n\t").endswith(",")):
        return False
    if (flat[0].count(",") + 1 if any(map(str.isdigit, flat[0])) else 0) != shape.dimensions[0]:
        return False
    tokens.move(flat.end())
    return True


def _take_value(tokens: Tokens, shape: ArrayShape) -> None:
    dtype = shape.dtype
    start = tokens.position
    if dtype in _COMPONENTS:
        tokens.expect("(", LITERAL)
        take_number(tokens, _COMPONENTS[dtype], LITERAL)
        tokens.expect(",", LITERAL)
        take_number(tokens, _COMPONENTS[dtype], LITERAL)
        tokens.expect(")", LITERAL)
    elif tokens.at("true", "false"):
        if dtype != "pred":
            tokens.refuse(LITERAL, f"{dtype} has no truth values", start)
        tokens.word(LITERAL, "true or false")
    elif dtype == "pred" or dtype[0] in "su":
        _take_integer(tokens, dtype)
    else:
        take_number(tokens, dtype, LITERAL)


def _take_integer(tokens: Tokens, dtype: str) -> None:
    start = tokens.position
    value = tokens.integer(LITERAL)
    if dtype in {"pred", "s64", "u64"}:  # 64 bits wrap round
        return
    bits = int(dtype[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "s" else (0, (1 << bits) - 1)
    if not low <= value <= high:
        tokens.refuse(LITERAL, f"{value} is out of the range of {dtype}", start)


def take_number(tokens: Tokens, dtype: str, code: str) -> None:
    """Passes a number that a floating-point type holds, rounded."""
    start = tokens.position
    number = _NUMBER.match(tokens.text, start, tokens.end)
    if number is None or _WORD_GOES_ON.match(tokens.text, number.end(), tokens.end):
        tokens.refuse(code, "expected a number", start)
    tokens.move(number.end())
    too_large, payload_bits = _RANGES.get(dtype, (float("inf"), 0))
    payload = int(number["payload"] or "1", 16)  # 0 is no payload to XLA's lexer
    if payload == 0 or (number["payload"] and payload >> payload_bits):
        tokens.refuse(code, f"{dtype} has no NaN of this payload", start)
    if number["nan"] is not None or number["inf"] is not None:
        return
    value = float(number[0])
    is_negative = dtype == "f8e8m0fnu" and value <= 0  # it has no zero either
    if math.isinf(value) or abs(value) >= too_large or is_negative:
        tokens.refuse(code, f"{number[0][:40]} is out of the range of {dtype}", start)
