"""Labels of rows: fusions in the short spelling, and labels that layers share. tests/cases/analysis has costs by label."""

from __future__ import annotations

from hlo_inspect.analysis.provenance import NOT_PRINTED, Labeller, Labels, Provenances
from hlo_inspect.hlo.values.op_names import StackFrames
from tests.analysis.cost.small import view_of

P = "%p = f32[8] parameter(0)"


def labels(line: str) -> Labels:
    return Labeller(Provenances(StackFrames())).get(view_of(P, line), 1)


def test_a_fusion_in_the_short_spelling() -> None:
    assert labels("%s = ((f32[8]), f32[8]) fusion-start(%p), kind=kLoop, calls=%twice").kind == "kLoop"
    assert labels("%s = f32[8] fusion(%p), kind=kLoop").kind == NOT_PRINTED


def test_layers_share_labels() -> None:
    """Labels of rows are one object if names differ in a layer's number only: not in the function, the scope or the line."""
    metadata = [
        'op_name="jit(f_1)/layers_0/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_1)/layers_1/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_2)/layers_1/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_1)/layers_1/mlp/dot" source_file="m_1.py" source_line=7',
        'op_name="jit(f_1)/layers_1/attention/dot" source_file="m_0.py" source_line=7',
    ]
    view = view_of(P, *(f"%a{number} = f32[8] negate(%p), metadata={{{text}}}" for number, text in enumerate(metadata)))
    labeller = Labeller(Provenances(StackFrames()))
    shared = [labeller.shared(view, row) for row in range(1, 6)]
    assert [shared[0] is other for other in shared] == [True, view.rows.extent is not None, False, False, False]
