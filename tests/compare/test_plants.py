"""Changes that a script plants in dumps of every platform: each is found, and nothing else is."""

from __future__ import annotations

import pytest

from hlo_inspect.compare.changes import Aspect, ModuleChange
from tests.compare.plants import PLANTS, planted_in
from tests.compare.sides import changes, dump, module, words

DUMPS = (
    "cpu/adamw_step.after.txt",
    "cpu/adamw_step.before.txt",
    "cpu/bf16_master.after.txt",
    "cpu/collectives.after.txt",
    "cpu/collectives.before.txt",
    "cpu/control_flow.after.txt",
    "cpu/gathered_matmul.after.txt",
    "cpu/scan_forward.after.txt",
    "cpu/scan_fsdp.after.txt",
    "cpu/scan_fsdp.before.txt",
    "cpu/sgd_unused.after.txt",
    "gpu/bf16_master.after.txt",
    "gpu/collectives.after.txt",
    "gpu/gathered_matmul.after.txt",
    "gpu/scan_forward.after.txt",
    "gpu/sgd_unused.after.txt",
    "tpu/bf16_master.after.txt",
    "tpu/collectives.after.txt",
    "tpu/between_slices.after.txt",
    "tpu/scan_forward.after.txt",
    "jax_0_5_0/adamw_step.after.txt",
    "jax_0_5_0/collectives.after.txt",
    "jax_0_5_0/scan_fsdp.after.txt",
)


def _of_plant(label: str, found_changes: list[ModuleChange]) -> list[ModuleChange]:
    """Leave out a consequence: without donation nothing shows that one weight without a returned loss is trained."""
    consequences = [change for change in found_changes if label == "donation dropped" and change.area == "optimizer"]
    assert all("sgd" in words(change) and "unknown" in words(change) for change in consequences)
    return [change for change in found_changes if change not in consequences]


@pytest.mark.parametrize("name", DUMPS)
def test_each_planted_change_is_found_and_nothing_else(name: str) -> None:
    """The diff from NEW to OLD has one change too."""
    text = dump(name)
    old = module(text)
    planted = list(planted_in(text))
    for label, expected in planted:
        new = module(expected.text)
        assert old.program != new.program, label
        (change,) = _of_plant(label, changes(old, new))
        line = words(change)
        assert change.area == expected.area, (label, line)
        assert [word for word in expected.words if word not in line] == [], (label, line)
        assert expected.name in change.name or not expected.name, (label, line)
        (back,) = _of_plant(label, changes(new, old))
        assert back.area == change.area, label
        assert (back.size, back.flops) == tuple(
            None if figure is None else -figure for figure in (change.size, change.flops)
        ), label
    assert planted


def test_every_change_is_planted_somewhere() -> None:
    assert {label for label, plant in PLANTS.items() if not any(plant(dump(name)) for name in DUMPS)} == set()


def test_a_changed_learning_rate_is_an_optimizer_change() -> None:
    """The constants that hold it, -0.0001 in two fusions, are not told beside it."""
    text = dump("optimizers/lion.after.hlo")
    assert text.count("constant(-0.0001)") == 2
    old = module(text)
    for new, weights in (
        (text.replace("constant(-0.0001)", "constant(-0.0003)"), 2),
        (text.replace("-0.0001", "-0.0003", 1), 1),
    ):
        (change,) = changes(old, module(new))
        assert (change.area, change.aspects, len(change.names)) == (
            "optimizer",
            (Aspect("learning_rate", "0.0001", "0.0003"),),
            weights,
        )
