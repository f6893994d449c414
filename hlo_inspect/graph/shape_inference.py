"""Shapes that a text leaves out, if operands and attributes allow one shape only.

Hand-written texts leave them out, and XLA's parser infers them (`ShapeInference`). A layout is that of the operand which XLA
takes the shape of. XLA refuses a `convert` without a shape, as it could have any type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import DEVICE_NUMBERS, ELEMENTWISE, opcodes_that_give
from hlo_inspect.hlo.values.attributes import WindowDimension
from hlo_inspect.hlo.values.shape_text import MAX_NESTING
from hlo_inspect.hlo.values.shapes import MAX_ELEMENTS, ArrayShape, Layout, Shape, TupleShape, subshape

_PARTS = {"c64": "f32", "c128": "f64"}
_WHOLES = {part: whole for whole, part in _PARTS.items()}

_Rule = Callable[[Instruction, Sequence[Shape]], Shape | None]


def inferred_shape(instruction: Instruction, operands: Sequence[Shape | None]) -> Shape | None:
    """Return the only shape that an instruction with these operands can have; None if the shape stays unknown."""
    rule = _RULES.get(instruction.opcode)
    if rule is None or None in operands:
        return None
    shape = rule(instruction, cast("Sequence[Shape]", operands))
    return shape if shape is not None and _is_possible(shape) else None


def _is_possible(shape: Shape) -> bool:
    """Return True if a text could print the shape: XLA refuses larger dimensions, and the reader deeper tuples."""
    if isinstance(shape, TupleShape):
        return shape.extent[0] <= MAX_NESTING
    return max((size or 0 for size in shape.dimensions), default=0) <= MAX_ELEMENTS


def _array(operands: Sequence[Shape], number: int) -> ArrayShape | None:
    shape = operands[number] if number < len(operands) else None
    return shape if isinstance(shape, ArrayShape) else None


def _operand(number: int) -> _Rule:
    """Return the rule of opcodes whose result has the shape of an operand."""
    return lambda _, operands: operands[number] if number < len(operands) else None


def _constant(shape: Shape) -> _Rule:
    return lambda _instruction, _operands: shape


def _elementwise(_: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    """Return the shape of equal operands; XLA broadcasts nothing."""
    return _array(operands, 0) if len(set(map(str, operands))) == 1 else None


def _typed(shape: ArrayShape | None, dtype: str | None) -> ArrayShape | None:
    """Return the array with another element type, unpacked."""
    if shape is None or dtype is None:
        return None
    return replace(shape, dtype=dtype, layout=shape.layout and shape.layout._replace(element_bits=0))


def _predicate(_: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    return _typed(_array(operands, 0), "pred")


def _complex(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    part = _elementwise(instruction, operands)
    return _typed(part, _WHOLES.get(part.dtype)) if part is not None else None


def _real(_: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    """Return the type of a part, of the absolute value too; a real number is its own part."""
    array = _array(operands, 0)
    return _typed(array, _PARTS[array.dtype]) if array is not None and array.dtype in _PARTS else array


def _element(instruction: Instruction, operands: Sequence[Shape]) -> Shape | None:
    index = instruction.attr("index")
    return subshape(operands[0], (index,)) if operands and index is not None and index >= 0 else None


def _transpose(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    """Return the dimensions in their new order. Their order in memory stays, so nothing moves."""
    array, order = _array(operands, 0), instruction.attr("dimensions") or ()
    if array is None or sorted(order) != list(range(len(array.dimensions))):
        return None
    layout = array.layout
    if layout is None or len(layout.minor_to_major) != len(order):
        layout = Layout(tuple(reversed(range(len(order)))))
    moved = layout._replace(minor_to_major=tuple(order.index(dimension) for dimension in layout.minor_to_major))
    return replace(_permuted(array, order), layout=moved)


def _permuted(array: ArrayShape, kept: Sequence[int]) -> ArrayShape:
    """Return an array of some dimensions of another one, in this order, without a layout."""
    dynamic = tuple(array.dynamic[i] for i in kept) if array.dynamic else ()
    return ArrayShape(array.dtype, tuple(array.dimensions[i] for i in kept), dynamic if any(dynamic) else ())


# -- dimensions from attributes; without a layout, whose order in memory is then that of the dimensions -----------------------


_Sized = tuple[str, tuple[int, ...]]
"""Type and dimensions of an array of fixed size."""


def _sized(operands: Sequence[Shape]) -> list[_Sized]:
    """Return the operands; none if one is no array of fixed size."""
    arrays: list[_Sized] = []
    for shape in operands:
        if not isinstance(shape, ArrayShape) or shape.dynamic:
            return []
        arrays.append((shape.dtype, tuple(size or 0 for size in shape.dimensions)))
    return arrays


def _of_one_type(operands: Sequence[Shape], count: int | None = None) -> list[_Sized]:
    """Return the operands; none if their number is another one, or if their types differ."""
    arrays = _sized(operands)
    return arrays if len({dtype for dtype, _ in arrays}) == 1 and len(arrays) == (count or len(arrays)) else []


def _concatenate(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    arrays, along = _of_one_type(operands), instruction.attr("dimensions")
    if not arrays or along is None or len(along) != 1:
        return None
    (axis,), (dtype, first) = along, arrays[0]
    rests = {dimensions[:axis] + dimensions[axis + 1 :] for _, dimensions in arrays}
    if len(rests) > 1 or any(not 0 <= axis < len(dimensions) for _, dimensions in arrays):
        return None
    return ArrayShape(dtype, (*first[:axis], sum([dimensions[axis] for _, dimensions in arrays]), *first[axis + 1 :]))


def _dot(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    """Return batch dimensions, then those of either side that are not contracted."""
    arrays = _of_one_type(operands, 2)
    if not arrays:
        return None
    (dtype, left), (_, right) = arrays
    batch = instruction.attr("lhs_batch_dims") or ()
    gone_left = {*batch, *(instruction.attr("lhs_contracting_dims") or ())}
    gone_right = {*(instruction.attr("rhs_batch_dims") or ()), *(instruction.attr("rhs_contracting_dims") or ())}
    if not gone_left <= set(range(len(left))) or not gone_right <= set(range(len(right))):
        return None
    free_left = [size for i, size in enumerate(left) if i not in gone_left]
    free_right = [size for i, size in enumerate(right) if i not in gone_right]
    return ArrayShape(dtype, (*[left[i] for i in batch], *free_left, *free_right))


def _pad(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    arrays, padding = _of_one_type(operands, 2), instruction.attr("padding")
    if not arrays or padding is None or len(padding) != len(arrays[0][1]):
        return None
    dtype, dimensions = arrays[0]
    pairs = zip(dimensions, padding, strict=True)
    sizes = tuple(size + step.low + step.high + max(size - 1, 0) * step.interior for size, step in pairs)
    return ArrayShape(dtype, sizes) if min(sizes, default=0) >= 0 else None


def _reduce(instruction: Instruction, operands: Sequence[Shape]) -> Shape | None:
    """Return the dimensions that are not reduced, for each array that the first half of the operands holds."""
    sized, gone = _sized(operands), instruction.attr("dimensions") or ()
    arrays, starts = sized[: len(sized) // 2], sized[len(sized) // 2 :]
    if [dtype for dtype, _ in arrays] != [dtype for dtype, _ in starts] or len({sizes for _, sizes in arrays}) != 1:
        return None
    if not set(gone) <= set(range(len(arrays[0][1]))):
        return None
    results = [ArrayShape(dtype, tuple(size for i, size in enumerate(sizes) if i not in gone)) for dtype, sizes in arrays]
    return TupleShape(tuple(results)) if len(results) > 1 else results[0]


def _reduce_window(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    arrays, window = _of_one_type(operands, 2), instruction.attr("window") or ()
    if not arrays or len(window) != len(arrays[0][1]):
        return None
    dtype, dimensions = arrays[0]
    return ArrayShape(dtype, tuple(map(_windows, dimensions, window)))


def _convolution(instruction: Instruction, operands: Sequence[Shape]) -> ArrayShape | None:
    arrays, labels = _of_one_type(operands, 2), instruction.attr("dim_labels")
    if not arrays or labels is None:
        return None
    (dtype, image), (_, kernel) = arrays
    if len(labels.input) != len(image) or len(labels.kernel) != len(kernel):
        return None
    inputs = dict(zip(labels.input, image, strict=True))
    sizes = {str(i): _windows(inputs.get(str(i), 0), step) for i, step in enumerate(instruction.attr("window") or ())}
    sizes["b"] = inputs.get("b", 0) // max(instruction.attr("batch_group_count") or 1, 1)
    sizes["f"] = dict(zip(labels.kernel, kernel, strict=True)).get("o", 0)
    return ArrayShape(dtype, tuple(sizes[label] for label in labels.output)) if sizes.keys() >= set(labels.output) else None


def _windows(size: int, step: WindowDimension) -> int:
    """Return the number of windows that fit into a dimension (`InferWindowOutputShape`)."""
    padded = step.pad_low + max(0, (size - 1) * step.base_dilation + 1) + step.pad_high
    window = (step.size - 1) * step.window_dilation + 1
    return (padded - window) // max(step.stride, 1) + 1 if 0 < padded >= window else 0


_TYPED = opcodes_that_give("same") | {"bitcast-convert", "stochastic-convert"}
"""Opcodes that may change the element type: XLA refuses them without a shape, except copies and marks on values."""

_RULES: dict[str, _Rule] = dict.fromkeys(ELEMENTWISE - _TYPED, _elementwise)
_RULES |= dict.fromkeys(DEVICE_NUMBERS, _constant(ArrayShape("u32")))
_RULES |= {
    "abs": _real,
    "add-dependency": _operand(0),
    "after-all": _constant(ArrayShape("token")),
    "clamp": _operand(1),
    "compare": _predicate,
    "complex": _complex,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "copy": _operand(0),
    "domain": _operand(0),
    "dot": _dot,
    "get-tuple-element": _element,
    "imag": _real,
    "is-finite": _predicate,
    "opt-barrier": _operand(0),
    "pad": _pad,
    "real": _real,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "reverse": _operand(0),
    "select": _operand(1),
    "sort": lambda _, operands: operands[0] if len(operands) == 1 else TupleShape(tuple(operands)),
    "transpose": _transpose,
    "tuple": lambda _, operands: TupleShape(tuple(operands)),
    "while": _operand(0),
}

INFERABLE = frozenset(_RULES)
"""Opcodes whose shape operands and attributes may give."""
