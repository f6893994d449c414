"""Text of shapes: `f32[8,128]{1,0:T(8,128)S(1)}`, `(s32[], token[])`."""

from __future__ import annotations

import re

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.values.shapes import BITS, NOT_ARRAYS, ArrayShape, Layout, Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_NESTING = 100
MAX_KEPT = 1 << 16
"""Bound on cached texts of shapes; a module has a few hundred."""

_MAX_DIGITS = 19  # an int64; Python never converts longer numbers
_SPACE = lazy_pattern(r"\s*+", re.ASCII)
_ARRAY = lazy_pattern(r"([a-z][a-z0-9]*)\s*\[([^\]\[{}()]*)\]", re.ASCII)
_LAYOUT = lazy_pattern(r"\s*+\{(\s*+(?:[0-9:](?:[^{}]|\{[^{}]*+\})*+)?)\}", re.ASCII)  # else a brace opens something else
_DIMENSION = lazy_pattern(rf"\s*(?:(<=)?\s*(\d{{1,{_MAX_DIGITS}}})|(\?))\s*", re.ASCII)
_INTEGERS = rf"\d{{1,{_MAX_DIGITS}}}(?:,\d{{1,{_MAX_DIGITS}}})*+"
_PRINTED_ARRAY = lazy_pattern(rf"([a-z][a-z0-9]*+)\[({_INTEGERS})?+\](?:\{{({_INTEGERS})\}})?+", re.ASCII)
_TILE = lazy_pattern(r"\(([^()]*)\)")
_FIELD = lazy_pattern(r"(SC|[DTLESPM])((?:\((?:[^()]|\([^()]*\))*\))+)|#\((\w+)\)|\*\((\w+)\)", re.ASCII)


class ShapeError(ValueError):
    """Text that is not a shape; `position` is a 0-based index into it."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class UnknownTypeError(ShapeError):
    """A shape of an element type that XLA does not have."""


class ShapeTable:
    """The shapes of a module; each text is parsed once."""

    def __init__(self) -> None:
        self._arrays: dict[str, ArrayShape] = {}
        self._known: dict[str, Shape | None] = {}

    def parse(self, text: str) -> Shape:
        """Parse a shape. Raise ShapeError if the text is not a shape."""
        cached = self._arrays.get(text)
        if cached is not None:
            return cached
        printed = _PRINTED_ARRAY.fullmatch(text)
        if printed is not None and printed[1] in BITS:
            dtype, sizes, order = printed.groups()
            layout = Layout(tuple(map(int, order.split(",")))) if order else None
            array = ArrayShape(dtype, tuple(map(int, sizes.split(","))) if sizes else (), layout=layout)
            if len(self._arrays) < MAX_KEPT:
                self._arrays[text] = array
            return array
        if "/" in text:
            text = tokens.without_comments(text)
        flat = _flat_tuple(text, self._arrays)
        if flat is not None:
            return flat
        shape, end = scan_shape(text, 0, self._arrays)
        end = _skip(text, end)
        if end != len(text):
            raise ShapeError(f"unexpected text after the shape: {text[end : end + 20]!r}", end)
        return shape

    def get(self, text: str) -> Shape | None:
        """Parse a shape; return None if the text is not a shape."""
        if text in self._known:
            return self._known[text]
        try:
            shape = self.parse(text)
        except ShapeError:
            shape = None
        if len(self._known) < MAX_KEPT:
            self._known[text] = shape
        return shape


def parse_shape(text: str) -> Shape:
    """Parse a shape without a table. Raise ShapeError if the text is not a shape."""
    return ShapeTable().parse(text)


def _flat_tuple(text: str, arrays: dict[str, ArrayShape]) -> TupleShape | None:
    """Parse a tuple of arrays as printers write it; None for other text. Tuples of thousands of a few arrays are common."""
    if not text.startswith("(") or not text.endswith(")"):
        return None
    elements = []
    for part in map(str.lstrip, text[1:-1].split(", ")):  # a comment became blanks
        element = arrays.get(part)
        if element is None:
            try:
                element, end = _scan_array(part, 0, arrays)
            except ShapeError:
                return None  # the general parser reports the fault and its place
            if end != len(part):
                return None
        elements.append(element)
    return TupleShape(tuple(elements))


def scan_shape(text: str, start: int, arrays: dict[str, ArrayShape] | None = None, depth: int = 0) -> tuple[Shape, int]:
    """Return the shape at `start` in a text without comments, and the index after it. Raise ShapeError if there is none."""
    if depth > MAX_NESTING:
        raise ShapeError(f"tuples are nested more than {MAX_NESTING} deep", start)
    arrays = {} if arrays is None else arrays
    start = _skip(text, start)
    if text.startswith("(", start):
        return _scan_tuple(text, start + 1, arrays, depth)
    if text.startswith("b(", start):  # a buffer counts as its contents
        shape, end = scan_shape(text, start + 2, arrays, depth + 1)
        end = _skip(text, end)
        if not text.startswith(")", end):
            raise ShapeError("the shape of a buffer is not closed", end)
        return shape, end + 1
    return _scan_array(text, start, arrays)


def _scan_tuple(text: str, position: int, arrays: dict[str, ArrayShape], depth: int) -> tuple[TupleShape, int]:
    elements: list[Shape] = []
    position = _skip(text, position)
    while not text.startswith(")", position):
        if elements:
            if not text.startswith(",", position):
                raise ShapeError("expected ',' or ')' in a tuple shape", position)
            position += 1
        element, position = scan_shape(text, position, arrays, depth + 1)
        elements.append(element)
        position = _skip(text, position)
    return TupleShape(tuple(elements)), position + 1


def _scan_array(text: str, start: int, arrays: dict[str, ArrayShape]) -> tuple[ArrayShape, int]:
    match = _ARRAY.match(text, start)
    if match is None:
        raise ShapeError("expected a shape", start)
    end = match.end()
    if text.startswith("sparse{", end):  # sparse arrays of 2019 state their number of stored elements
        end = text.find("}", end) + 1
    layout = _LAYOUT.match(text, end)
    end = layout.end() if layout else end
    spelled = text[start:end]
    array = arrays.get(spelled)
    if array is None:
        try:
            array = _array(match[1], match[2], layout[1] if layout else None)
        except ShapeError as error:
            raise type(error)(str(error), start + error.position) from None
        if len(arrays) < MAX_KEPT:
            arrays[spelled] = array
    return array, end


def _array(dtype: str, dimensions: str, layout: str | None) -> ArrayShape:
    if dtype not in BITS and dtype not in NOT_ARRAYS:
        raise UnknownTypeError(f"unknown element type {dtype!r}", 0)
    sizes, dynamic = _dimensions(dimensions, len(dtype) + 1)
    return ArrayShape(dtype, sizes, dynamic, None if layout is None else parse_layout(layout))


def _dimensions(text: str, start: int) -> tuple[tuple[int | None, ...], tuple[bool, ...]]:
    sizes: list[int | None] = []
    dynamic: list[bool] = []
    for part in text.split(",") if text.strip() else ():
        match = _DIMENSION.fullmatch(part)
        if match is None:
            raise ShapeError(f"{part[:20]!r} is not a dimension", start)
        sizes.append(int(match[2]) if match[2] else None)
        dynamic.append(bool(match[1] or match[3]))
    return tuple(sizes), tuple(dynamic) if any(dynamic) else ()


def parse_layout(text: str) -> Layout:
    """Parse a layout in braces, `1,0:T(8,128)S(1)`, without fields that affect no size. Raise ShapeError if it is wrong."""
    order, _, fields = text.partition(":")
    minor_to_major = _integers(order)
    values: dict[str, int] = {}
    tiles: list[tuple[int | None, ...]] = []
    for match in _FIELD.finditer("".join(fields.split())):
        if match[1] == "T":
            tiles += map(_tile, _TILE.findall(match[2]))
        elif match[1] in {"E", "S", "L"}:
            numbers = _integers(match[2].strip("()"))
            values[match[1]] = numbers[0] if numbers else 0
    return Layout(minor_to_major, tuple(tiles), values.get("E", 0), values.get("S", 0), values.get("L", 0) or 1)


def _tile(text: str) -> tuple[int | None, ...]:
    tile = tuple(None if part.strip() == "*" else next(iter(_integers(part)), 0) for part in text.split(","))
    if 0 in tile:
        raise ShapeError(f"a tile has size 0: {text!r}", 0)
    return tile


def _integers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS for part in parts):
        raise ShapeError(f"{text[:20]!r} is not a list of integers", 0)
    return tuple(map(int, parts))


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
