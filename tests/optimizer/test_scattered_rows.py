"""Updates of the rows that a step looked up: an embedding's gradient is scattered into it."""

from __future__ import annotations

from tests.optimizer.programs import DONATED, entry_of, overview_of

LINES = (
    "%w = f32[10,4] parameter(0)",
    "%i = s32[6,1] parameter(1)",
    "%rows = f32[6,4] gather(%w, %i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,4}",
    "%t = f32[6,4] tanh(%rows)",
    "%d = f32[6,4] cosine(%rows)",
    "%u = f32[6,4] multiply(%t, %d)",
    "ROOT %new = f32[10,4] scatter(%w, %i, %u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add",
)


def test_a_weight_whose_rows_are_scaled_before_the_scatter_has_a_row() -> None:
    """Compilers multiply the rows by the rate, and by other factors too. So neither sign nor rate shows."""
    overview = overview_of(entry_of(*LINES, header=DONATED))
    assert [(row.rule, overview.number(row.weight)) for row in overview.rows] == [("unknown", 0)]
    assert overview.name == "unknown"
