"""Windows of convolutions as they are written, and the pairs of inputs and kernel elements that meet."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.analysis.cost.work import valid_positions
from hlo_inspect.hlo.values.attributes import WindowDimension
from tests.analysis.cost.small import operation


def window(text: str) -> tuple[WindowDimension, ...]:
    return operation(f"%r = f32[] reduce-window(), window={text}").window


def test_a_window() -> None:
    text = "{size=3x1 stride=2x1 pad=-1_2x0_0 lhs_dilate=1x4 rhs_dilate=5x1 rhs_reversal=1x0}"
    assert window(text) == (WindowDimension(3, 2, -1, 2, 5, 1, is_reversed=True), WindowDimension(1, 1, 0, 0, 1, 4))
    assert window("{size=7}") == (WindowDimension(7),)
    assert operation("%r = f32[] reduce-window()").window == ()


@given(
    st.integers(0, 7),
    st.integers(0, 6),
    st.integers(0, 9),
    st.builds(
        WindowDimension,
        stride=st.integers(1, 5),
        pad_low=st.integers(-4, 6),
        window_dilation=st.integers(1, 4),
        base_dilation=st.integers(1, 5),
    ),
)
def test_positions_as_the_definition_has_them(inputs: int, kernel: int, outputs: int, step: WindowDimension) -> None:
    """Each pair of a kernel position and an output, looked at."""
    count = 0
    for k, o in itertools.product(range(kernel), range(outputs)):
        place = o * step.stride - step.pad_low + k * step.window_dilation
        count += place % step.base_dilation == 0 and 0 <= place // step.base_dilation < inputs
    assert valid_positions(inputs, kernel, outputs, step) == count


def test_every_window_field_is_read() -> None:
    names = re.findall(r"(\w+)=", "size= stride= pad= lhs_dilate= rhs_dilate=")
    texts = [f"{{size=1 {name}={'2_3' if name == 'pad' else 2}}}" for name in names]
    assert len({window(text) for text in texts}) == len(names)
