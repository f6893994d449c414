"""Places of subshapes: depth first, as `ShapeUtil::ForEachSubshape` visits them."""

from __future__ import annotations

from hlo_inspect.analysis.memory.hlo_values import ShapeTrees
from hlo_inspect.hlo.values.shape_text import parse_shape

INDEXES = [(), (0,), (0, 0), (0, 1), (1,), (2,), (2, 0), (2, 1), (2, 1, 0), (3,)]


def test_each_place_has_the_index_that_a_walk_of_the_shape_gives() -> None:
    """`((f32[2], ()), f32[], (s32[], (f32[1])), f32[3])`: 10 subshapes, four of them tuples."""
    shape = parse_shape("((f32[2], ()), f32[], (s32[], (f32[1])), f32[3])")
    trees = ShapeTrees()
    assert trees.size(shape) == len(INDEXES)
    assert [trees.index(shape, place) for place in range(len(INDEXES))] == INDEXES
    assert [trees.place(shape, index) for index in INDEXES] == list(range(len(INDEXES)))
    assert str(trees.part(shape, 8)) == "f32[1]"
