"""The backward pass: values that are not defined, and biases beside matrices."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.graph.frames import Frames, Place
from tests.optimizer.programs import STAGES, overview_of, text_of


@pytest.mark.parametrize("gradient", ["multiply(r, nobody)", "add(w, nobody)", "multiply(nobody, nobody)"])
def test_a_value_that_is_not_defined_is_no_sum_over_pairs(gradient: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undefined value has no row, and so no operands that could have the size of pairs."""
    lines = ["w = f32[8,4] parameter(0)", "l = f32[] parameter(1)", "r = f32[8,4] broadcast(l), dimensions={}"]
    lines += [f"g = f32[8,4] {gradient}", "n = f32[8,4] subtract(w, g)", "ROOT t = (f32[8,4]) tuple(n)"]
    asked: list[int] = []
    operands = Frames.operands

    def noted(frames: Frames, place: Place) -> tuple[Place, ...]:
        asked.append(place[1])
        return operands(frames, place)

    monkeypatch.setattr(Frames, "operands", noted)
    header = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }"
    report = hlo_inspect.inspect(f"{header}\n\nENTRY e {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n", "optimizer")
    assert report.facts["optimizer.name"] in {None, "unknown"}
    assert "HI008" in {finding.rule for finding in report.findings}
    assert min(asked, default=0) >= 0


@pytest.mark.parametrize("stage", STAGES)
def test_a_matrix_shows_that_biases_before_it_are_learnt_too(stage: str) -> None:
    """With decay on matrices alone: the rule of the bias is another one, and its gradient is a sum."""
    weights = overview_of(text_of(f"adamw.{stage}")).updates.weights
    learnt = [(weight.array.shape.dimensions, weight.rule, weight.is_learnt) for weight in weights]
    assert learnt == [((4,), "adam", True), ((8, 4), "adamw", True)]
