"""The order in which the arrays of a step are looked at decides nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hlo_inspect.graph.parameters import find_interface
from hlo_inspect.optimizer import elementwise_inputs
from hlo_inspect.optimizer.matching import training_steps
from hlo_inspect.optimizer.matching.training_steps import WeightUpdates, find_updates
from hlo_inspect.optimizer.step.state_arrays import TrainingStep, find_state_arrays
from tests.optimizer.programs import adam_of, module_of, rules_of, step_of, text_of

DUMPS = ("adam.before", "adamw_frozen.after", "adamw_loop.before", "lamb.after", "mixed_layers.before", "muon.before")


def updates_of(text: str) -> WeightUpdates:
    module = module_of(text)
    return find_updates(module, find_interface(module))


def described(updates: WeightUpdates) -> set[tuple[object, ...]]:
    """Describe each weight by its parameter, its rule, the parameters of its states, and how it is learnt."""
    weights: set[tuple[object, ...]] = set()
    for weight in updates.weights:
        roles = weight.claim.roles if weight.claim is not None else {}
        states = frozenset((role, updates.parameters[array.source]) for role, array in roles.items())
        weights.add((updates.parameters[weight.array.source], weight.rule, states, weight.is_learnt, weight.is_linear))
    return weights


def in_random_order(text: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> set[tuple[object, ...]]:
    """Describe the weights of a text whose steps have their arrays in a random order."""

    def find_shuffled(*arguments: object) -> TrainingStep:
        step = find_state_arrays(*arguments)  # type: ignore[arg-type]
        arrays = random.Random(seed).sample(step.arrays, len(step.arrays))  # noqa: S311 - no secret
        return replace(step, arrays=arrays)

    with monkeypatch.context() as patch:
        patch.setattr(training_steps, "find_state_arrays", find_shuffled)
        return described(updates_of(text))


@pytest.mark.parametrize("name", DUMPS)
def test_any_order_of_arrays_gives_the_same_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = described(updates_of(text_of(name)))
    assert expected
    assert all(in_random_order(text_of(name), seed, monkeypatch) == expected for seed in range(6))


def test_any_weight_can_show_that_the_step_trains() -> None:
    """The gradient of the bias, which comes first, is a sum over rows, and no product as that of the matrix is."""
    updates = updates_of(text_of("adam.before"))
    holds = updates.expressions[0].backward_passes.holds
    claimed = [(weight.update, weight.claim.gradient) for weight in updates.weights if weight.claim is not None]
    assert [holds(update, gradient) for update, gradient in claimed] == [None, True]
    assert [weight.is_learnt for weight in updates.weights] == [True, True]


@pytest.mark.parametrize("gradients", ["g k", "k g"])
def test_either_of_two_matrices_shows_that_the_step_trains(gradients: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`k` is the gradient of an unknown kernel, `g` a product; whether the text has the one or the other first."""
    first, second = gradients.split()
    kernel = 'k = f32[4,4]{1,0} custom-call(%m3, %w), custom_call_target="gradient"'
    text = step_of(
        kernel,
        *adam_of(0, "w", first),
        "y = f32[9,4]{1,0} dot(%x, %m3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "g2 = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        *adam_of(1, "m3", "g2" if second == "g" else second),
        outputs="new_0 m_0 v_0 new_1 m_1 v_1",
        states=5,
    )
    updates = updates_of(text)
    assert [(weight.rule, weight.is_learnt) for weight in updates.weights] == [("adam", True)] * 2
    assert in_random_order(text, 1, monkeypatch) == in_random_order(text, 2, monkeypatch) == described(updates)


def test_unread_inputs_may_be_those_of_a_cofactor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field is known as one because its factors are: if these are too large to look into, it may be a gradient."""
    field = (
        "f = f32[4,4]{1,0} dot(%w, %m1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "a = tanh f",
        "o = f32[4,4]{1,0} dot(%a, %m2), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    text = step_of(*field, "u = multiply o rate", "new = add w u", states=2)
    assert rules_of(text) == []
    monkeypatch.setattr(elementwise_inputs, "MAX_HOLDING", 0)
    assert rules_of(text) == ["sgd"]
