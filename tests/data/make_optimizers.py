"""Makes the dumps of `optimizers/`: training steps of optax and of hand-written optimizers, before and after optimization.

Run with jax 0.10.2 and optax 0.2.8; nothing is run on a device, and no test needs either of them. Metadata is left out, so that
the texts are small and only data flow is left to tell what they do. What each program is stands in its call below; the tests
repeat these numbers by hand.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
optax: Any = import_module("optax")
contrib: Any = import_module("optax.contrib")
flatten_util: Any = import_module("jax.flatten_util")

HERE = Path(__file__).resolve().parent / "optimizers"
WEIGHTS = {"b": jax.ShapeDtypeStruct((4,), jnp.float32), "w": jax.ShapeDtypeStruct((8, 4), jnp.float32)}
X, Y = jax.ShapeDtypeStruct((16, 8), jnp.float32), jax.ShapeDtypeStruct((16, 4), jnp.float32)
tree_map = jax.tree_util.tree_map


def loss_of(weights: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ weights["w"] + weights["b"]) - y) ** 2)


def step_of(optimizer: Any, gradient: Callable[..., Any] | None = None) -> tuple[Any, Any]:
    """Return a step of the optimizer, and its state."""
    gradient = gradient or jax.grad(loss_of)
    state = (WEIGHTS, jax.eval_shape(optimizer.init, WEIGHTS))

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, inner = state
        updates, inner = optimizer.update(gradient(weights, x, y), inner, weights)
        return optax.apply_updates(weights, updates), inner

    return step, state


def with_average(optimizer: Any) -> tuple[Any, Any]:
    step, state = step_of(optimizer)

    def averaged(state: Any, x: Any, y: Any) -> Any:
        inner, average = state
        inner = step(inner, x, y)
        return inner, tree_map(lambda a, w: 0.99 * a + 0.01 * w, average, inner[0])

    return averaged, (state, WEIGHTS)


def ensemble(optimizer: Any) -> tuple[Any, Any]:
    """Return a step of three members, each with weights, state and counter of its own."""
    step, _ = step_of(optimizer)
    weights = tree_map(lambda leaf: jax.ShapeDtypeStruct((3, *leaf.shape), leaf.dtype), WEIGHTS)
    return jax.vmap(step, in_axes=(0, None, None)), (weights, jax.eval_shape(jax.vmap(optimizer.init), weights))


def delayed(optimizer: Any) -> tuple[Any, Any]:
    """Return a step that applies the gradient of the step before, and returns its own."""

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, inner, gradient = state
        updates, inner = optimizer.update(gradient, inner, weights)
        weights = optax.apply_updates(weights, updates)
        return weights, inner, jax.grad(loss_of)(weights, x, y)

    return step, (WEIGHTS, jax.eval_shape(optimizer.init, WEIGHTS), WEIGHTS)


def adapted(optimizer: Any) -> tuple[Any, Any]:
    """Return a step that learns additions of rank 2 to three layers of a network (LoRA). It only reads the layers."""
    layers = jax.ShapeDtypeStruct((3, 8, 8), jnp.float32)
    additions = (jax.ShapeDtypeStruct((3, 8, 2), jnp.float32), jax.ShapeDtypeStruct((3, 2, 8), jnp.float32))

    def loss(additions: Any, layers: Any, x: Any, y: Any) -> Any:
        def layer(h: Any, matrices: Any) -> tuple[Any, None]:
            w, (a, b) = matrices
            return jnp.tanh(h @ w + 2.0 * ((h @ a) @ b)), None

        h, _ = jax.lax.scan(layer, x, (layers, additions))
        return jnp.mean((h[:, :4] - y) ** 2)

    def step(state: Any, x: Any, y: Any) -> Any:
        additions, inner, layers = state
        updates, inner = optimizer.update(jax.grad(loss)(additions, layers, x, y), inner, additions)
        return optax.apply_updates(additions, updates), inner

    return step, (additions, jax.eval_shape(optimizer.init, additions), layers)


def lion_by_choice() -> tuple[Any, Any]:
    """Return Lion with a choice between 1 and -1 as its sign."""

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, average = state
        gradient = jax.grad(loss_of)(weights, x, y)
        directions = tree_map(lambda m, g: jnp.where(0.9 * m + 0.1 * g >= 0, 1.0, -1.0), average, gradient)
        average = tree_map(lambda m, g: 0.99 * m + 0.01 * g, average, gradient)
        return tree_map(lambda w, d: w - 1e-4 * (d + 0.01 * w), weights, directions), average

    return step, (WEIGHTS, WEIGHTS)


def several_steps(optimizer: Any) -> tuple[Any, Any]:
    step, state = step_of(optimizer)
    return lambda state, x, y: jax.lax.fori_loop(0, 3, lambda _, inner: step(inner, x, y), state), state


def accumulated(optimizer: Any) -> tuple[Any, Any]:
    def gradient(weights: Any, x: Any, y: Any) -> Any:
        def add(total: Any, batch: Any) -> Any:
            return tree_map(jnp.add, total, jax.grad(loss_of)(weights, *batch)), None

        batches = (x.reshape(4, 4, 8), y.reshape(4, 4, 4))
        total, _ = jax.lax.scan(add, tree_map(jnp.zeros_like, weights), batches)
        return tree_map(lambda g: g / 4, total)

    return step_of(optimizer, gradient)


def bf16_master(optimizer: Any) -> tuple[Any, Any]:
    copies = tree_map(lambda w: jax.ShapeDtypeStruct(w.shape, jnp.bfloat16), WEIGHTS)

    def step(state: Any, x: Any, y: Any) -> Any:
        masters, weights, inner = state
        gradient = jax.grad(lambda w: 128.0 * loss_of(w, x.astype(jnp.bfloat16), y).astype(jnp.float32))(weights)
        updates, inner = optimizer.update(tree_map(lambda g: g.astype(jnp.float32) / 128.0, gradient), inner, masters)
        masters = optax.apply_updates(masters, updates)
        return masters, tree_map(lambda w: w.astype(jnp.bfloat16), masters), inner

    return step, (WEIGHTS, copies, jax.eval_shape(optimizer.init, WEIGHTS))


def torch_adamw() -> tuple[Any, Any]:
    """PyTorch's order of operations, the counter a float."""

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, m, v, t = state
        gradient, t = jax.grad(loss_of)(weights, x, y), t + 1
        m = tree_map(lambda m, g: m + (g - m) * 0.1, m, gradient)
        v = tree_map(lambda v, g: v * 0.999 + g * g * 0.001, v, gradient)
        rate, root = 1e-3 / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        kept = tree_map(lambda w: w * (1 - 1e-3 * 0.01), weights)
        return tree_map(lambda w, m, v: w - rate * (m / (jnp.sqrt(v) / root + 1e-8)), kept, m, v), m, v, t

    return step, (WEIGHTS, WEIGHTS, WEIGHTS, jax.ShapeDtypeStruct((), jnp.float32))


def velocity() -> tuple[Any, Any]:
    """Momentum with the rate inside, and clipping by `min(1, limit / (norm + epsilon))`."""

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, m = state
        gradient = jax.grad(loss_of)(weights, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree_util.tree_leaves(gradient)))
        scale = jnp.minimum(1.0, 2.0 / (norm + 1e-6))
        m = tree_map(lambda m, g: 0.9 * m - 0.05 * (g * scale), m, gradient)
        return tree_map(jnp.add, weights, m), m

    return step, (WEIGHTS, WEIGHTS)


def matrix_only(optimizer: Any) -> tuple[Any, Any]:
    """Return a step of the matrix alone, without the bias."""
    weights = {"w": WEIGHTS["w"]}
    state = (weights, jax.eval_shape(optimizer.init, weights))

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, inner = state
        gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w["w"]) - y) ** 2))(weights)
        updates, inner = optimizer.update(gradient, inner, weights)
        return optax.apply_updates(weights, updates), inner

    return step, state


def muon_by_hand(*, looped: bool = False) -> tuple[Any, Any]:
    """Muon as PyTorch programs have it: a sum as momentum, the iteration in bfloat16, the decay before the step."""

    def iterate(x: Any) -> Any:
        a = x @ x.T
        return 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x

    def step(state: Any, x: Any, y: Any) -> Any:
        w, m = state
        gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
        m = 0.9 * m + gradient
        ahead = (gradient + 0.9 * m).astype(jnp.bfloat16).T
        ahead = ahead / (jnp.linalg.norm(ahead) + 1e-7)
        for _ in range(0 if looped else 5):
            ahead = iterate(ahead)
        ahead = jax.lax.fori_loop(0, 5, lambda _, x: iterate(x), ahead) if looped else ahead
        return w * (1 - 0.02 * 0.01) - 0.02 * max(1, 8 / 4) ** 0.5 * ahead.T.astype(jnp.float32), m

    return step, (WEIGHTS["w"], WEIGHTS["w"])


def parted() -> tuple[Any, Any]:
    """AdamW on the matrix, plain descent on the bias."""
    return step_of(optax.multi_transform({"a": optax.adamw(1e-3), "s": optax.sgd(0.1)}, {"w": "a", "b": "s"}))


def guarded(optimizer: Any) -> tuple[Any, Any]:
    """Dynamic loss scale, updates only where all gradients are finite."""
    _, state = step_of(optimizer)

    def step(state: Any, x: Any, y: Any) -> Any:
        inner, scale = state
        weights, kept = inner
        gradient = tree_map(lambda g: g / scale, jax.grad(lambda w: scale * loss_of(w, x, y))(weights))
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(g)) for g in jax.tree_util.tree_leaves(gradient)]))
        updates, new = optimizer.update(gradient, kept, weights)
        new_state = tree_map(lambda a, b: jnp.where(finite, a, b), (optax.apply_updates(weights, updates), new), inner)
        return new_state, jnp.where(finite, scale * 2, scale * 0.5)

    return step, (state, jax.ShapeDtypeStruct((), jnp.float32))


def state_first(optimizer: Any) -> tuple[Any, Any]:
    """Return the results in another order than the arguments, so that most use the buffer of something else."""
    step, state = step_of(optimizer)
    return lambda state, x, y: step(state, x, y)[::-1], state


def raveled(optimizer: Any) -> tuple[Any, Any]:
    """All weights are updated as one vector, and cut out of it again."""
    size = sum(jnp.zeros(w.shape).size for w in jax.tree_util.tree_leaves(WEIGHTS))
    inner = jax.eval_shape(optimizer.init, jax.ShapeDtypeStruct((size,), jnp.float32))

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, inner = state
        vector, cut = flatten_util.ravel_pytree(weights)
        gradient, _ = flatten_util.ravel_pytree(jax.grad(loss_of)(weights, x, y))
        updates, inner = optimizer.update(gradient, inner, vector)
        return cut(optax.apply_updates(vector, updates)), inner

    return step, (WEIGHTS, inner)


def with_first_layer(optimizer: Any, *, teacher: bool = False) -> tuple[Any, Any]:
    """Below the trained layer stands one whose weights get no gradient; as a teacher they follow others by an average."""
    first = {"b": jax.ShapeDtypeStruct((8,), jnp.float32), "w": jax.ShapeDtypeStruct((8, 8), jnp.float32)}
    weights = {"first": first, "last": WEIGHTS}

    def loss(weights: Any, x: Any, y: Any) -> Any:
        below = jax.lax.stop_gradient(weights["first"])
        return loss_of(weights["last"], jnp.tanh(x @ below["w"] + below["b"]), y)

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, inner = state
        updates, inner = optimizer.update(jax.grad(loss)(weights, x, y), inner, weights)
        return optax.apply_updates(weights, updates), inner

    def taught(state: Any, x: Any, y: Any) -> Any:
        (weights, average), inner = state

        def loss(weights: Any) -> Any:
            return loss_of(weights, x, jnp.tanh(x @ average["w"] + average["b"]) + y)

        updates, inner = optimizer.update(jax.grad(loss)(weights), inner, weights)
        weights = optax.apply_updates(weights, updates)
        return (weights, tree_map(lambda a, w: 0.99 * a + 0.01 * w, average, weights)), inner

    if teacher:
        return taught, ((WEIGHTS, WEIGHTS), jax.eval_shape(optimizer.init, WEIGHTS))
    return step, (weights, jax.eval_shape(optimizer.init, weights))


def constrained(kind: str) -> tuple[Any, Any]:
    """Descent, and after it a step that keeps the weights within bounds or small."""

    def proximal_step(w: Any) -> Any:
        if kind == "proximal":
            return jnp.sign(w) * jnp.maximum(jnp.abs(w) - 0.001, 0.0)
        return w * jnp.minimum(1.0, 2.0 / jnp.maximum(jnp.sqrt(jnp.sum(w * w, 0, keepdims=True)), 1e-7))

    def step(state: Any, x: Any, y: Any) -> Any:
        return tree_map(lambda w, g: proximal_step(w - 0.1 * g), state, jax.grad(loss_of)(state, x, y))

    return step, WEIGHTS


def layer_by_layer() -> tuple[Any, Any]:
    """Adam on stacked layers within a scan, each with a loss of its own, and descent on the head behind it."""
    stack = jax.ShapeDtypeStruct((3, 8, 8), jnp.float32)

    def step(state: Any, x: Any, y: Any) -> Any:
        head, w, m, v = state

        def layer(x: Any, one: Any) -> Any:
            w, m, v = one
            gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - x) ** 2))(w)
            m, v = 0.9 * m + 0.1 * gradient, 0.99 * v + 0.01 * gradient**2
            return jnp.tanh(x @ w), (w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v)

        x, layers = jax.lax.scan(layer, x, (w, m, v))
        return tree_map(lambda w, g: w - 0.1 * g, head, jax.grad(loss_of)(head, x, y)), *layers

    return step, (WEIGHTS, stack, stack, stack)


def no_update(kind: str) -> tuple[Any, Any]:
    """Return a step with state and without an optimizer."""
    cell = jax.ShapeDtypeStruct((16, 8), jnp.float32)
    kernel = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    if kind == "average":
        return lambda s, x, y: (0.99 * s[0] + 0.01 * s[1], s[1]), (kernel, kernel)
    if kind == "batch_norm":
        row = jax.ShapeDtypeStruct((8,), jnp.float32)
        return lambda s, x, y: (0.9 * s[0] + 0.1 * x.mean(0), 0.9 * s[1] + 0.1 * x.var(0)), (row, row)
    if kind == "gru":

        def cell_step(s: Any, x: Any, y: Any) -> Any:
            gate = jax.nn.sigmoid(x @ s[1] + s[0] @ s[2])
            return (1 - gate) * s[0] + gate * jnp.tanh(x @ s[1] + (gate * s[0]) @ s[2]), s[1], s[2]

        return cell_step, (cell, kernel, kernel)
    if kind == "residual":
        return lambda s, x, y: (s[0] + jnp.tanh(s[0] @ s[1]) @ s[2], s[1], s[2]), (cell, kernel, kernel)
    return lambda s, x, y: tree_map(jnp.add, s, jax.grad(loss_of)(tree_map(jnp.ones_like, s), x, y)), WEIGHTS  # accumulator


def of_matrices(kind: str) -> tuple[Any, Any]:
    """Return a step on two matrices that no optimizer updates, in the form of one that an optimizer updates."""
    matrix = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    steps: dict[str, Callable[..., Any]] = {
        "clipped": lambda s, x, y: (jnp.clip(s[0] @ s[1] / jnp.sqrt(jnp.sum(s[0] * s[0])), -1.0, 1.0), s[1]),
        "frozen": lambda s, x, y: (s[0], 0.9 * s[1] + 0.1 * (x.T @ jnp.tanh(x @ s[0]))),
        "history": lambda s, x, y: (x.T @ x, 0.9 * s[1] + 0.1 * (x.T @ x - s[0])),
        "raveled": lambda s, x, y: tuple(
            part.reshape(8, 8)
            for part in jnp.split(0.9 * jnp.concatenate([s[0].ravel(), s[1].ravel()]) + 0.1 * jnp.tile(x.ravel()[:64], 2), 2)
        ),
        "reordered": lambda s, x, y: (0.9 * s[1] + 0.1 * (x.T @ x), 0.5 * s[0] + 0.5 * s[1]),
    }
    return steps[kind], (matrix, matrix)


def layers_of_sums() -> tuple[Any, Any]:
    """Averages of products within a scan."""
    stack = jax.ShapeDtypeStruct((3, 8, 8), jnp.float32)
    return lambda s, x, y: jax.lax.scan(lambda h, m: (h, 0.9 * m + 0.1 * (h.T @ h)), x, s)[1], stack


def simulated(kind: str) -> tuple[Any, Any]:
    """Return a step that takes something away from a state, or writes into it."""
    kernel = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    if kind == "cache":
        cache = jax.ShapeDtypeStruct((16, 8), jnp.float32)
        return lambda s, x, y: jax.lax.dynamic_update_slice(s, jax.nn.softmax(x @ s.T)[:1] @ s, (3, 0)), cache
    if kind == "euler":
        return lambda s, x, y: (s[0] - 0.01 * jnp.tanh(s[1] @ s[0]), s[1]), (kernel, kernel)

    def step(s: Any, x: Any, y: Any) -> Any:
        velocity = 0.9 * s[1] + s[2] @ s[0]
        return s[0] - 0.1 * velocity, velocity, s[2]

    return step, (kernel, kernel, kernel)


def chained(*parts: Any) -> tuple[Any, Any]:
    return step_of(optax.chain(*parts))


def scheduled(*parts: Any, ends: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """Descent with a rate that follows schedules, each from one of `ends` on."""
    return step_of(optax.sgd(optax.join_schedules(parts, list(ends)) if ends else parts[0]))


def noam(count: Any) -> Any:
    """Warm-up over 4000 steps to `512 ** -0.5 * 4000 ** -0.5`, then the inverse root of the step's number, from 1 on."""
    step = jnp.asarray(count + 1, jnp.float32)
    return 512**-0.5 * jnp.minimum(step**-0.5, step * 4000**-1.5)


def slow_decay(count: Any) -> Any:
    """AdEMAMix's schedule of b3, from 0.9 to 0.999 over 500 steps: linear in the half-life of the average."""
    start, end = jnp.log(0.9), jnp.log(0.999)
    share = jnp.minimum(count / 500, 1.0)
    return jnp.exp(start * end / ((1 - share) * end + share * start))


warm_up = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)
PROGRAMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "adabelief": lambda: step_of(optax.adabelief(1e-3)),
    "adadelta": lambda: step_of(optax.adadelta(0.5, rho=0.95, eps=1e-6)),
    "adafactor": lambda: step_of(optax.adafactor(1e-3, min_dim_size_to_factor=4)),
    "adagrad": lambda: step_of(optax.adagrad(0.01)),
    "adam": lambda: step_of(optax.adam(2e-3, b1=0.85, b2=0.98, eps=1e-6)),
    "adam_l2": lambda: chained(optax.add_decayed_weights(1e-4), optax.adam(1e-3)),
    "adam_inject": lambda: step_of(optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)),
    "adam_guarded": lambda: guarded(optax.adam(1e-3)),
    "adamax": lambda: step_of(optax.adamax(2e-3)),
    "ademamix": lambda: step_of(contrib.ademamix(2e-3, b1=0.8, b2=0.98, b3=0.995, alpha=4.0, eps=1e-6, weight_decay=0.03)),
    "ademamix_scheduled": lambda: step_of(contrib.ademamix(1e-3, b3=slow_decay, alpha=optax.linear_schedule(0.0, 6.0, 500))),
    "adamw": lambda: step_of(optax.adamw(1e-3, weight_decay=0.05, mask=lambda p: tree_map(lambda a: a.ndim > 1, p))),
    "adamw_clip": lambda: chained(optax.clip_by_global_norm(0.5), optax.adamw(warm_up, weight_decay=0.1)),
    "adamw_multistep": lambda: step_of(optax.MultiSteps(optax.adamw(1e-3), 4)),
    "adamw_average": lambda: with_average(optax.adamw(1e-3)),
    "adamw_lora": lambda: adapted(optax.adamw(1e-3, weight_decay=0.05)),
    "adamw_loop": lambda: several_steps(optax.adamw(1e-3)),
    "adamw_accumulated": lambda: accumulated(optax.adamw(1e-3)),
    "adamw_bf16_moment": lambda: step_of(optax.adamw(1e-3, mu_dtype=jnp.bfloat16)),
    "adamw_bf16_master": lambda: bf16_master(optax.adamw(1e-3)),
    "adamw_if_finite": lambda: step_of(optax.apply_if_finite(optax.adamw(1e-3), 5)),
    "adamw_frozen": lambda: with_first_layer(optax.adamw(1e-3, weight_decay=0.05)),
    "adamw_raveled": lambda: raveled(optax.adamw(1e-3, weight_decay=0.05)),
    "adamw_state_first": lambda: state_first(optax.adamw(1e-3, weight_decay=0.05)),
    "adamw_teacher": lambda: with_first_layer(optax.adamw(1e-3, weight_decay=0.05), teacher=True),
    "adamw_torch": torch_adamw,
    "amsgrad": lambda: step_of(optax.amsgrad(1e-3)),
    "dadapt_adamw": lambda: step_of(contrib.dadapt_adamw(0.5, (0.85, 0.98), eps=1e-7, estim_lr0=1e-5, weight_decay=0.02)),
    "dadapt_adamw_scheduled": lambda: step_of(contrib.dadapt_adamw(warm_up)),
    "lamb": lambda: step_of(optax.lamb(1e-3, weight_decay=0.01)),
    "lars": lambda: step_of(optax.lars(0.1, weight_decay=1e-4)),
    "adam_delayed": lambda: delayed(optax.adam(1e-3)),
    "adam_ensemble": lambda: ensemble(optax.adam(1e-3)),
    "lion_delayed": lambda: delayed(optax.lion(1e-4, weight_decay=0.01)),
    "sgd_delayed": lambda: delayed(optax.sgd(0.1)),
    "lion_by_choice": lion_by_choice,
    "muon_delayed": lambda: delayed(contrib.muon(0.02)),
    "lion": lambda: step_of(optax.lion(1e-4, weight_decay=0.01)),
    "mixed": parted,
    "mixed_layers": layer_by_layer,
    "muon": lambda: step_of(contrib.muon(0.02)),
    "muon_by_hand": muon_by_hand,
    "muon_looped": lambda: muon_by_hand(looped=True),
    "muon_plain": lambda: matrix_only(contrib.muon(1e-3, nesterov=False, weight_decay=0.1, consistent_rms=0.2)),
    "nadam": lambda: step_of(optax.nadam(1e-3)),
    "nadamw": lambda: step_of(optax.nadamw(1e-3, weight_decay=0.01)),
    "novograd": lambda: step_of(optax.novograd(1e-3, weight_decay=1e-3)),
    "prodigy": lambda: step_of(contrib.prodigy(0.5, (0.85, 0.98), eps=1e-7, estim_lr0=1e-5, weight_decay=0.02)),
    "prodigy_safeguard": lambda: step_of(contrib.prodigy(warm_up, beta3=0.97, estim_lr_coef=2.0, safeguard_warmup=True)),
    "radam": lambda: step_of(optax.radam(1e-3)),
    "rmsprop": lambda: step_of(optax.rmsprop(1e-3, decay=0.95)),
    "rmsprop_centered": lambda: step_of(optax.rmsprop(1e-3, centered=True, momentum=0.8, nesterov=True)),
    "schedule_free": lambda: step_of(contrib.schedule_free_sgd(0.1)),
    "schedule_free_adamw": lambda: step_of(contrib.schedule_free_adamw(1e-3)),
    "sgd": lambda: chained(optax.add_decayed_weights(1e-3), optax.sgd(0.1)),
    "sgd_nesterov": lambda: chained(optax.add_decayed_weights(1e-3), optax.sgd(0.1, momentum=0.9, nesterov=True)),
    "sgd_max_norm": lambda: constrained("max_norm"),
    "sgd_proximal": lambda: constrained("proximal"),
    "sgd_velocity": velocity,
    "sign_sgd": lambda: chained(optax.scale_by_sign(), optax.scale(-1e-3)),
    "sign_sgd_decayed": lambda: chained(
        optax.add_decayed_weights(0.04), optax.scale_by_sign(), optax.add_decayed_weights(0.02), optax.scale(-3e-3)
    ),
    "signum": lambda: step_of(optax.signum(2e-3, beta=0.85)),
    "signum_scheduled": lambda: chained(
        optax.clip_by_global_norm(0.5), optax.trace(0.8), optax.scale_by_sign(), optax.scale_by_learning_rate(warm_up)
    ),
    "sm3": lambda: step_of(optax.sm3(0.01)),
    "yogi": lambda: step_of(optax.yogi(0.01)),
    "schedule_cosine": lambda: step_of(optax.adamw(optax.cosine_decay_schedule(3e-4, 9000, alpha=0.1))),
    "schedule_cosine_squared": lambda: scheduled(optax.cosine_decay_schedule(0.2, 5000, exponent=2.0)),
    "schedule_exponential": lambda: scheduled(optax.exponential_decay(0.001, 1000, 0.96)),
    "schedule_inject": lambda: step_of(optax.inject_hyperparams(optax.adam)(optax.linear_schedule(0.0, 0.002, 250))),
    "schedule_joined": lambda: scheduled(
        optax.constant_schedule(0.01),
        optax.linear_schedule(0.01, 0.1, 400),
        optax.exponential_decay(0.05, 200, 0.5),
        ends=(100, 500),
    ),
    "schedule_noam": lambda: scheduled(noam),
    "schedule_polynomial": lambda: scheduled(optax.polynomial_schedule(0.1, 0.001, 2, 300, transition_begin=50)),
    "schedule_sine": lambda: scheduled(lambda count: 0.01 + 0.001 * jnp.sin(count)),
    "schedule_staircase": lambda: scheduled(optax.exponential_decay(0.1, 500, 0.5, staircase=True, end_value=0.002)),
    "schedule_steps": lambda: scheduled(optax.piecewise_constant_schedule(0.1, {100: 0.1, 250: 0.5})),
    "schedule_warm_up": lambda: scheduled(optax.warmup_cosine_decay_schedule(0.0, 0.004, 1000, 10000, end_value=1e-5)),
    "none_accumulator": lambda: no_update("accumulator"),
    "none_average": lambda: no_update("average"),
    "none_batch_norm": lambda: no_update("batch_norm"),
    "none_cache": lambda: simulated("cache"),
    "none_euler": lambda: simulated("euler"),
    "none_gru": lambda: no_update("gru"),
    "none_clipped": lambda: of_matrices("clipped"),
    "none_frozen": lambda: of_matrices("frozen"),
    "none_history": lambda: of_matrices("history"),
    "none_layers": layers_of_sums,
    "none_raveled": lambda: of_matrices("raveled"),
    "none_reordered": lambda: of_matrices("reordered"),
    "none_residual": lambda: no_update("residual"),
    "none_velocity": lambda: simulated("velocity"),
}
NOT_DONATED = ("adam", "adamw_clip", "lion", "sgd_nesterov", "sm3")

_METADATA = re.compile(r', metadata=\{[^{}"]*(?:"[^"]*"[^{}"]*)*\}')
_TABLES = re.compile(r"\n\n(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*")


def write(name: str, text: str) -> None:
    text = _METADATA.sub("", text)
    while _TABLES.search(text):
        text = _TABLES.sub("\n", text)
    (HERE / name).write_text(text, encoding="utf-8")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PROGRAMS:
        step, state = PROGRAMS[name]()
        for ending in ("", ".kept") if name in NOT_DONATED else ("",):
            lowered = jax.jit(step, donate_argnums=() if ending else (0,), keep_unused=True).lower(state, X, Y)
            write(f"{name}{ending}.before.hlo", lowered.compiler_ir("hlo").as_hlo_text())
            write(f"{name}{ending}.after.hlo", lowered.compile().as_text())


if __name__ == "__main__":
    main()
