"""The comparison of what the graph tells with what names tell."""

from __future__ import annotations

from pathlib import Path

from benchmarks.phases import METADATA, Comparison, compare, modules, text_of, without_metadata

STEP = Path(__file__).parents[1] / "data" / "phases" / "two_layers.txt.xz"


def test_two_layers() -> None:
    """Two products forward and three backward, of which JAX names each."""
    text = text_of(STEP)
    (module,), (hidden,) = modules(text), modules(without_metadata(text))
    comparisons = compare(module, hidden)
    assert comparisons["matmuls"].sizes == {("forward", "forward"): 2, ("backward", "backward"): 3}
    assert not [what for _, what in comparisons["collectives"].wrong]


def test_metadata_is_taken_out_whole() -> None:
    line = '  %a = f32[] add(%x, %y), metadata={op_name="f{\\"}" source_line=3}, backend_config={"a":"b"}'
    assert METADATA.sub("", line) == '  %a = f32[] add(%x, %y), backend_config={"a":"b"}'


def test_shares() -> None:
    comparison = Comparison()
    comparison.add("forward", "forward", 6, "a")
    comparison.add("forward", "backward", 2, "b")
    comparison.add("unknown", "backward", 8, "c")
    assert comparison.row(is_loss_forward=False).split() == ["50.000%", "100.000%", "75.000%", "25.000%"]
