"""Roles of the parameters of compiled programs."""

from __future__ import annotations

from collections import Counter

import pytest

import hlo_inspect
from tests.optimizer.programs import DATA, STAGES, text_of
from tests.tables import columns


@pytest.mark.parametrize("stage", STAGES)
def test_the_counters_of_an_ensemble_are_one_array(stage: str) -> None:
    """Three members have a vector of three counters; the batch are the two arrays without a role."""
    table = hlo_inspect.inspect(text_of(f"adam_ensemble.{stage}"), ("optimizer", "params")).table("params")
    roles = Counter(role for (role,) in columns(table, "role"))
    assert roles == {"weight": 2, "first_moment": 2, "second_moment": 2, "counter": 1, None: 2}


@pytest.mark.parametrize("stage", STAGES)
def test_layers_of_a_loop_are_frozen(stage: str) -> None:
    """The matrices of three layers are one array; `adamw_lora` has no other array of three dimensions beside its state."""
    table = hlo_inspect.inspect(text_of(f"adamw_lora.{stage}"), "params").table("params")
    roles = {str(shape).partition("{")[0]: role for shape, role in columns(table, "shape", "role") if role in {None, "frozen"}}
    assert roles == {"f32[3,8,8]": "frozen", "f32[16,8]": None, "f32[16,4]": None}


def test_the_cotangent_of_a_loop_backward_is_no_weight() -> None:
    """The program returns gradients; neither its caller nor its results have the array that the loop changes."""
    report = hlo_inspect.inspect(DATA.parent / "phases" / "remat_gradients.txt.xz", "optimizer")
    assert (report.facts["optimizer.name"], report.facts["optimizer.update_count"]) == ("none", 0)
