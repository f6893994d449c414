"""Shapes as XLA's parser takes them, more strictly than `hlo.shapes` does: a layout has to number as many dimensions as there
are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from hlo_inspect.hlo import dtypes, scan
from hlo_inspect.hlo.shape_text import MAX_NESTING, ShapeError, UnknownTypeError, parse_shape
from hlo_inspect.hlo.shapes import ArrayShape, Layout, Shape, TupleShape
from hlo_inspect.hlo.strict.layouts import take_layout
from hlo_inspect.hlo.strict.tokens import SHAPE, Tokens

_START = re.compile(r"\(|b\(|([a-z][a-z0-9]*+)\s*+\[")
_ARRAY = re.compile(r"[a-z][a-z0-9]*+\s*+\[[^\]\[{}()]*+\]", re.ASCII)
_MAX_INT64 = 2**63 - 1


def starts_shape(tokens: Tokens) -> bool:
    """Whether what follows is a shape, and neither a name nor an opcode."""
    start = _START.match(tokens.text, tokens.position, tokens.end)
    return start is not None


def take_shape(tokens: Tokens, depth: int = 0) -> Shape:
    """Passes a shape. `RefusedError` where there is none."""
    if depth > MAX_NESTING:
        tokens.refuse(SHAPE, f"tuples nested deeper than {MAX_NESTING}")
    if tokens.take("("):
        return _take_tuple(tokens, depth)
    if tokens.take("b("):
        start = tokens.position
        held = take_shape(tokens, depth + 1)
        if not isinstance(held, ArrayShape) or not held.is_array or tokens.text.startswith("b(", start):
            tokens.refuse(SHAPE, f"a buffer holds an array, not {held}", start)
        tokens.expect(")", SHAPE, " behind a buffer's shape")
        return held
    start = tokens.position
    array = tokens.match(_ARRAY)
    if array is None:
        if starts_shape(tokens):
            scan.balanced_end(tokens.text, tokens.text.index("[", start))  # tells what is open
        tokens.refuse(SHAPE, "expected a shape")
    found = _array(array[0])
    if not isinstance(found, ArrayShape):
        code, message, offset = found
        tokens.refuse(code, message, start + offset)
    return _with_layout(tokens, found)


def _with_layout(tokens: Tokens, shape: ArrayShape) -> ArrayShape:
    """Passes the layout that may follow. Of it only the order of the dimensions is kept."""
    brace = tokens.position
    order = take_layout(tokens) if tokens.at("{") else None
    if order is None:
        return shape
    if len(order) != len(shape.dimensions):
        tokens.refuse(SHAPE, f"the layout numbers {len(order)} dimensions of {len(shape.dimensions)}", brace)
    if not shape.is_array:
        tokens.refuse(SHAPE, f"{shape} has no layout", brace)
    return replace(shape, layout=Layout(tuple(order)))


def _take_tuple(tokens: Tokens, depth: int) -> TupleShape:
    elements: list[Shape] = []
    if not tokens.take(")"):
        while True:
            start = tokens.position
            elements.append(take_shape(tokens, depth + 1))
            _check_element(tokens, elements[-1], start)
            if not tokens.take(","):
                break
        tokens.expect(")", SHAPE, " behind a tuple's shape")
    return TupleShape(tuple(elements))


def _check_element(tokens: Tokens, shape: Shape, start: int) -> None:
    """XLA asks of the elements of a tuple what it lets pass elsewhere."""
    if not isinstance(shape, ArrayShape):
        return
    if not numbers_each_dimension(shape):
        tokens.refuse(SHAPE, f"the layout does not number each dimension of {shape}", start)
    width = dtypes.byte_width(shape.dtype) if shape.is_array else 0
    if None not in shape.dimensions and (shape.elements is None or shape.elements * width > _MAX_INT64):
        tokens.refuse(SHAPE, f"{shape} has too many elements", start)


def numbers_each_dimension(shape: ArrayShape) -> bool:
    """Whether the layout, if there is one, is a permutation of the dimensions."""
    return shape.layout is None or sorted(shape.layout.minor_to_major) == list(range(len(shape.dimensions)))


@lru_cache(maxsize=1 << 14)
def _array(text: str) -> ArrayShape | tuple[str, str, int]:
    """The array that `text` spells, or what is wrong with it: rule, message and place."""
    try:
        shape = parse_shape(text)
    except UnknownTypeError as error:
        return "HI006", str(error), error.position
    except ShapeError as error:
        return SHAPE, str(error), error.position
    if not isinstance(shape, ArrayShape) or (shape.dimensions and not shape.is_array):
        return SHAPE, f"{text[: text.find('[')]} has no dimensions", text.find("[")
    if any(size is not None and size > _MAX_INT64 for size in shape.dimensions):
        return SHAPE, "a dimension is larger than 64 bits hold", text.find("[") + 1
    return shape


def compatible(one: Shape, other: Shape) -> bool:
    """Whether two shapes agree in element types and sizes; layouts and whether a size can shrink do not count, and an
    unbounded size agrees with every size. As `ShapeUtil::Compatible`.
    """
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if isinstance(left, TupleShape) and isinstance(right, TupleShape):
            if len(left.elements) != len(right.elements):
                return False
            waiting += zip(left.elements, right.elements, strict=True)
        elif not isinstance(left, ArrayShape) or not isinstance(right, ArrayShape) or not _same_array(left, right):
            return False
    return True


def _same_array(left: ArrayShape, right: ArrayShape) -> bool:
    if left.dtype != right.dtype or len(left.dimensions) != len(right.dimensions):
        return False
    pairs = zip(left.dimensions, right.dimensions, strict=True)
    return all(a is None or b is None or a == b for a, b in pairs)


def is_scalar(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape.is_array and not shape.dimensions


def leaf_count(shape: Shape) -> int:
    """Leaves of a shape, tokens and empty tuples' none included as XLA counts them."""
    count, waiting = 0, [shape]
    while waiting:
        one = waiting.pop()
        if isinstance(one, TupleShape):
            waiting += one.elements
        else:
            count += 1
    return count


def is_type(word: str) -> bool:
    """Whether a word is an element type to XLA's lexer, so that no instruction can be called that."""
    return word in dtypes.BITS or word in dtypes.NOT_ARRAYS
