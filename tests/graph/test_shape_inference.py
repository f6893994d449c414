"""Shapes that a text leaves out: those that XLA's parser infers, in jaxlib's print of the same text."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module

PARAMETERS = """
  a = f32[4,6]{0,1} parameter(0)
  b = f32[4,6]{1,0} parameter(1)
  i = s4[8]{0:E(4)} parameter(2)
  x = f32[] parameter(3)
  d = f32[6,5] parameter(4)
  image = f32[2,9,3] parameter(5)
  kernel = f32[3,3,7] parameter(6)
  i2 = s32[4,6] parameter(7)
  j = s32[] parameter(8)
"""
TEXT = """HloModule shapeless

sum {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = add(l, r)
}

both {
  l = f32[] parameter(0)
  m = s32[] parameter(1)
  r = f32[] parameter(2)
  n = s32[] parameter(3)
  ROOT t = tuple(l, m)
}

less {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT lt = compare(l, r), direction=LT
}

body {
  t = (f32[4,6]{0,1}, f32[]) parameter(0)
  t0 = get-tuple-element(t), index=0
  t1 = get-tuple-element(t), index=1
  more = add(t1, t1)
  ROOT again = tuple(t0, more)
}

condition {
  t = (f32[4,6]{0,1}, f32[]) parameter(0)
  t1 = get-tuple-element(t), index=1
  ROOT done = is-finite(t1)
}

ENTRY e {PARAMETERS
  ROW
}
"""

ROWS = {
    "add": ("add(a, b)", "f32[4,6]"),
    "negate": ("negate(i)", "s4[8]"),
    "compare": ("compare(i, i), direction=EQ", "pred[8]"),
    "complex": ("complex(a, b)", "c64[4,6]"),
    "imag": ("imag(complex(a, b))", "f32[4,6]"),
    "abs": ("abs(complex(a, b))", "f32[4,6]"),
    "select": ("select(is-finite(b), a, b)", "f32[4,6]"),
    "clamp": ("clamp(x, a, x)", "f32[4,6]"),
    "copy": ("copy(a)", "f32[4,6]"),
    "tuple": ("tuple(a, tuple(i, x))", "(f32[4,6], (s4[8], f32[]))"),
    "get-tuple-element": ("get-tuple-element(tuple(a, i)), index=1", "s4[8]"),
    "while": ("while(tuple(a, x)), condition=condition, body=body", "(f32[4,6], f32[])"),
    "after-all": ("after-all()", "token[]"),
    "partition-id": ("partition-id()", "u32[]"),
    "sort": ("sort(a, b), dimensions={0}, to_apply=less", "(f32[4,6], f32[4,6])"),
    "reverse": ("reverse(a), dimensions={0}", "f32[4,6]"),
    "transpose": ("transpose(a), dimensions={1,0}", "f32[6,4]"),
    "concatenate": ("concatenate(a, b), dimensions={1}", "f32[4,12]"),
    "dot": ("dot(a, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[4,5]"),
    "pad": ("pad(a, x), padding=1_2x0_-1_1", "f32[7,10]"),
    "reduce": ("reduce(a, x), dimensions={1}, to_apply=sum", "f32[4]"),
    "reduce of two": ("reduce(a, i2, x, j), dimensions={0}, to_apply=both", "(f32[6], s32[6])"),
    "reduce-window": ("reduce-window(a, x), window={size=2x3 stride=2x1 pad=0_0x1_1}, to_apply=sum", "f32[2,6]"),
    "convolution": ("convolution(image, kernel), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f", "f32[2,5,7]"),
}
"""A row of each rule without its shape, and the shape by hand."""


def text_of(row: str) -> str:
    return TEXT.replace("PARAMETERS", PARAMETERS).replace("ROW", row)


def root_shape(text: str) -> str:
    """Return the shape of the entry's root, with its bytes and layout."""
    entry = module(text, Wants(graph=True)).entry
    assert entry is not None
    view = View(entry)
    assert view.root is not None
    shape = view.shapes[view.root]
    return "None" if shape is None else f"{shape} {shape.bytes}"


@pytest.mark.parametrize(("row", "expected"), ROWS.values(), ids=ROWS)
def test_the_only_possible_shape_is_inferred(row: str, expected: str) -> None:
    """XLA's print of the same text has the same shape."""
    hlo = pytest.importorskip("jaxlib._hlo")
    text = text_of(f"ROOT r = {row}")
    assert root_shape(text).rpartition(" ")[0] == expected
    assert root_shape(text) == root_shape(hlo.hlo_module_from_text(text).to_string())


OPEN_ROWS = {
    "another shape": "r = add(a, d)",
    "another type": "r = add(i, x)",
    "any type": "r = convert(a)",
    "an undefined operand": "r = negate(nothing)",
    "an open operand": "c = convert(a)\n  r = negate(c)",
    "no such element": "r = get-tuple-element(tuple(a, b)), index=2",
    "a negative element": "r = get-tuple-element(tuple(a, b)), index=-9",
    "a negative dimension": "r = concatenate(a, b), dimensions={-9}",
    "a negative dimension of a product": "r = dot(a, d), lhs_batch_dims={-9}, rhs_batch_dims={0}",
    "a negative dimension of a sum": "r = reduce(a, x), dimensions={-1}, to_apply=sum",
    "a dimension too many": "r = reduce(a, x), dimensions={2}, to_apply=sum",
    "no padding": "r = pad(a, x)",
    "a negative size": "r = pad(a, x), padding=0_-9x0_0",
    "no labels": "r = convolution(image, kernel), window={size=3}",
    "a bounded dimension": "g = f32[<=4,6] parameter(9)\n  r = reduce(g, x), dimensions={0}, to_apply=sum",
    "an unknown type": "r = q9[4] negate(a)",
}


@pytest.mark.parametrize("row", OPEN_ROWS.values(), ids=OPEN_ROWS)
def test_a_shape_with_several_possibilities_stays_unknown(row: str) -> None:
    assert root_shape(text_of(row)) == "None"


@pytest.mark.parametrize("row", ["tuple(t{0}, t{0})", "tuple(t{0})", "concatenate(t{0}, t{0}), dimensions={{0}}"])
def test_shapes_that_grow_with_each_row_stop_being_inferred(row: str) -> None:
    """2,000 rows would nest 2,000 tuples, or double a size 2,000 times; time and depth stay small."""
    rows = "".join(f"  t{number + 1} = {row.format(number)}\n" for number in range(2000))
    text = text_of("t0 = copy(kernel)\n" + rows + "  ROOT r = tuple(t2000)")
    assert root_shape(text) == "None"
    assert hlo_inspect.inspect(text, "cost").facts["cost.bytes_accessed"] is None
