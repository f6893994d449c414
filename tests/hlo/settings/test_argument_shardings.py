"""Shardings of StableHLO's arguments, in the spellings of Shardy and GSPMD."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.settings.argument_shardings import read_arguments

HEAD = """module @jit_f attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}]}}
  sdy.mesh @turned = <["a"=2, "b"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]> loc(#loc)
"""


def sharding_of(attributes: str) -> tuple[str, tuple[tuple[int, ...], ...] | None]:
    """Return the text of the second argument's sharding, and the devices that hold equal parts."""
    text = f'{HEAD}  func.func public @main(%arg0: tensor<f32> loc("x"), %arg1: tensor<8x16xf32>{attributes} loc("y, %arg"), '
    first, second, third = read_arguments(f"{text}%arg2: tensor<4x?xbf16>) -> (tensor<8x16xf32> {{}}) {{\n  }}\n}}\n", "jit_f")
    assert (first.dimensions, second.dimensions, first.sharding, third.sharding) == ((), (8, 16), None, None)
    assert second.sharding is not None
    return second.sharding.text, second.sharding.copies(8)


@pytest.mark.parametrize(
    ("attributes", "text", "copies"),
    [
        ('#sdy.sharding<@mesh, [{"a"}, {}]>', "{mesh['a'=2,'b'=4], [{'a'}, {}]}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ('#sdy.sharding<@mesh, [{"b", ?}p1, {"a"}p0]>', "{mesh['a'=2,'b'=4], [{'b'}, {'a'}]}", tuple((i,) for i in range(8))),
        (
            '#sdy.sharding<@mesh, [{}, {}], replicated={"a"}>',
            "{mesh['a'=2,'b'=4], [{}, {}], replicated={'a'}}",
            (tuple(range(8)),),
        ),
        ("#sdy.sharding<@mesh, []>", "{mesh['a'=2,'b'=4], replicated}", (tuple(range(8)),)),
        (
            '#sdy.sharding<@turned, [{"a"}, {}]>',
            "{mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7), [{'a'}, {}]}",
            ((0, 2, 4, 6), (1, 3, 5, 7)),
        ),
        ('#sdy.sharding<mesh<["x"=8]>, [{}, {"x"}]>', "{mesh['x'=8], [{}, {'x'}]}", tuple((i,) for i in range(8))),
        ('#sdy.sharding<@mesh, [{"b":(1)2}, {}]>', "{mesh['a'=2,'b'=4], [{'b':(1)2}, {}]}", None),
    ],
)
def test_shardings_of_shardy(attributes: str, text: str, copies: tuple[tuple[int, ...], ...] | None) -> None:
    assert sharding_of(f" {{sdy.sharding = {attributes}, tf.aliasing_output = 0 : i32}}") == (text, copies)


@pytest.mark.parametrize("name", ["mhlo.sharding", "xla.sharding"])
def test_shardings_of_gspmd(name: str) -> None:
    text = "{devices=[1,2,4]<=[8] last_tile_dim_replicate}"
    assert sharding_of(f' {{{name} = "{text}"}}') == (text, ((0, 1, 2, 3), (4, 5, 6, 7)))


def test_texts_without_arguments_to_read() -> None:
    text = f'{HEAD}  func.func public @main(%arg0: tensor<8xf32> {{mhlo.sharding = "none"}}) -> tensor<8xf32> {{\n'
    assert [argument.sharding for argument in read_arguments(text, "jit_f")] == [None]
    assert read_arguments(text, "jit_g") == []
    assert read_arguments(HEAD, "jit_f") == []
    assert read_arguments("HloModule jit_f\n", "jit_f") == []
