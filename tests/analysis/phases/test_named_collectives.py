"""Collectives whose names leave open if they are computed again. tests/cases/analysis/phases has those that names tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases.names import find_phases

OLD = "parallelize(train_step)/jit(main)"


def phases(entry: Callable[..., Context], *op_names: str) -> list[str]:
    """Return the phase of an all-reduce of each name."""
    lines = ["%p = f32[8] parameter(0)"]
    for n, name in enumerate(op_names):
        reduced = "all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
        lines.append(f'%c{n} = f32[8] {reduced}, metadata={{op_name="{name}"}}')
    return find_phases(entry(*lines).collectives)


def test_more_sums_than_the_forward_pass_has_are_unknown(entry: Callable[..., Context]) -> None:
    """The sum of a layer norm and that of its gradient have one name."""
    norm = "LayerNorm/reduce_sum[axes=(2,)]"
    again = f"{OLD}/transpose(jvp(Model))/remat(f)/{norm}"
    assert phases(entry, f"{OLD}/jvp(Model)/{norm}", again, again) == ["forward", "unknown", "unknown"]


@pytest.mark.parametrize("remat", ["remat", "remat(f)"])
def test_without_parameters_a_product_and_its_gradient_look_the_same(entry: Callable[..., Context], remat: str) -> None:
    """Jax 0.5.0 compiles the sum behind a layer's second product, needed once, and that of its input's gradient to these."""
    names = ["jit(step)/jit(main)/jvp(layer_1)/mlp/dot_general"]
    names += [f"jit(step)/jit(main)/transpose(jvp(layer_1))/{remat}/mlp/dot_general"]
    assert phases(entry, *names) == ["forward", "unknown"]
