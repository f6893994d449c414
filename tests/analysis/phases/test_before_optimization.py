"""Phases of training steps before optimization, which have no names: FLOPs of products worked out by hand, and by jaxpr.

The texts are of tests/data/make_phases_before.py.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[2] / "data" / "phases_before"
BY_JAXPR: dict[str, int] = json.loads((DATA / "flops.json").read_text(encoding="utf-8"))

LAYER = 2 * 32 * 16 * 16
SCAN = 5 * LAYER
"""A product of 32 rows and a layer of 16 x 16, in 5 layers; each has two products in the backward pass."""

ADAPTER = 5 * 2 * 32 * 16 * 2
"""A product with one factor of rank 2. The forward pass has two of them a layer, the backward pass four."""

ACTOR = 2 * 16 * (6 * 32 + 32 * 2)
CRITIC = 2 * 16 * (8 * 32 + 32)
"""Both layers of a network for a batch of 16."""

ACTOR_BACK = 2 * 16 * (6 * 32 + 2 * 32 * 2)
CRITIC_BACK = 2 * 16 * (8 * 32 + 2 * 32)
"""The gradient of the first layer, and gradient and input of the second one."""

TD3 = {
    "forward": 2 * ACTOR + 5 * CRITIC,  # both actors, four critics, and the critic of the actor's loss
    "backward": 2 * CRITIC_BACK + ACTOR_BACK + CRITIC,  # through that critic go two products, to its input
}

STEPS = {
    "scan": {"forward": SCAN, "backward": 2 * SCAN},
    "scan_sum": {"forward": SCAN, "backward": 2 * SCAN},
    "scan_mean_remat": {"forward": SCAN, "recompute": SCAN, "backward": 2 * SCAN},
    "recurrent_sum": {"forward": 2 * SCAN, "recompute": 2 * SCAN, "backward": 3 * SCAN},  # no cotangent of the inputs
    "scan_remat": {"forward": SCAN, "recompute": SCAN, "backward": 2 * SCAN},
    "scan_head": {"forward": SCAN + LAYER, "backward": 2 * SCAN + 2 * LAYER},
    "lora": {"forward": SCAN + 2 * ADAPTER, "backward": SCAN + 4 * ADAPTER},  # the layers themselves are frozen
    "zero3_scan": {"forward": SCAN, "backward": 2 * SCAN},  # of 256 rows a device has 32
    "zero3_remat": {"forward": SCAN, "recompute": SCAN, "backward": 2 * SCAN},
    "offload": {"forward": SCAN, "backward": 2 * SCAN},
    "vmapped_adam": {"forward": 6 * LAYER, "backward": 6 * LAYER},  # the input of the only layer needs no cotangent
    "td3": TD3,
    "td3_targets_in_cond": TD3,
    # the constant cotangent of a mean needs no value of it: the last product of the actor's critic is gone
    "td3_losses_not_returned": TD3 | {"forward": TD3["forward"] - 2 * 16 * 32},
}


def products_of(text: str) -> dict[str, int]:
    """Return the FLOPs of products by phase, as far as they are known."""
    rows = hlo_inspect.inspect(text, "cost").table("cost_by_phase").records()
    return {str(row["phase"]): int(str(row["matmul_flops_lower_bound"])) for row in rows if row["matmul_flops_lower_bound"]}


def text_of(name: str) -> str:
    return lzma.decompress((DATA / f"{name}.txt.xz").read_bytes()).decode()


def test_each_program_is_worked_out() -> None:
    assert STEPS.keys() == BY_JAXPR.keys()
    unused = {"td3_losses_not_returned": 2 * 16 * 32}
    assert {name: sum(phases.values()) + unused.get(name, 0) for name, phases in STEPS.items()} == BY_JAXPR


@pytest.mark.parametrize("name", STEPS)
def test_products_by_phase(name: str) -> None:
    assert products_of(text_of(name)) == STEPS[name]


def test_a_prediction_of_an_ensemble_is_no_loss() -> None:
    """Without its reduction the output of one float a member may be a prediction: nothing shows the forward pass."""
    text = text_of("vmapped_adam")
    lines = [line for line in text.splitlines() if " reduce(" in line and "f32[6]" in line]
    assert len(lines) == 1
    name, _, rest = lines[0].partition(" = ")
    operand = rest[rest.index("(") + 1 :].partition(",")[0]
    shapeless = f'{name} = f32[6]{{0}} custom-call({operand}), custom_call_target="first_norm"'
    assert products_of(text.replace(lines[0], shapeless)).keys() == {"unknown"}
