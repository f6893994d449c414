"""Makes more dumps of `optimizers/`: optimizers by the equations of their papers, in the spellings of several libraries.

Run as make_optimizers.py is. Programs have twins in which one thing is wrong, so that no rule explains them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from make_optimizers import HERE, WEIGHTS, X, Y, jax, jnp, loss_of, write

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
COUNTER = jax.ShapeDtypeStruct((), jnp.int32)
Arrays = tuple[Any, ...]
Leaf = Callable[[Any, Any, Arrays, Arrays], Arrays]
"""The gradient, the weight, its own states, and what all weights share -> the new weight and its new states."""


def step_of(leaf: Leaf, states: int, shared: Arrays = (), after: Callable[..., Any] | None = None) -> Any:
    """Return a step of two weights with `states` states each. `after` makes the new values of their shared states."""

    def step(state: Any, x: Any, y: Any, *handed: Any) -> Any:
        weights, own, common = state
        gradient = jax.grad(loss_of)(weights, x, y)
        new = {key: leaf(gradient[key], weights[key], own[key], (*common, *handed)) for key in weights}
        common = after(*common) if after is not None else common
        return {key: one[0] for key, one in new.items()}, {key: one[1:] for key, one in new.items()}, common

    return step, (WEIGHTS, {key: (shape,) * states for key, shape in WEIGHTS.items()}, shared)


def moments(g: Any, m: Any, v: Any) -> tuple[Any, Any]:
    """Those of Adam with betas of 0.9 and 0.98."""
    return 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g


# -- bias corrections that are handed in, or kept -----------------------------------------------------------------------


def adam_by_torch(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """PyTorch on XLA hands in every constant: `rate` is the negative one over the first correction."""
    (m, v), (rate, b1, b2, root, epsilon) = own, shared
    m, v = m + (g - m) * b1, v * b2 + g * g * (1 - b2)
    return w + rate * m / (jnp.sqrt(v) / root + epsilon), m, v


def adam_by_powers(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """TensorFlow 1 keeps the powers of the betas, and updates them after the step."""
    (m, v), (p1, p2) = moments(g, *own), shared
    return w - 0.002 * jnp.sqrt(1 - p2) / (1 - p1) * m / (jnp.sqrt(v) + 1e-7), m, v


def adam_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use the weight in the correction."""
    (m, v), (p1, p2) = moments(g, *own), shared
    return w - 0.002 * jnp.sqrt(1 - p2 * w) / (1 - p1) * m / (jnp.sqrt(v) + 1e-7), m, v


def powers(p1: Any, p2: Any) -> tuple[Any, Any]:
    return p1 * 0.9, p2 * 0.98


# -- spellings ----------------------------------------------------------------------------------------------------------


def adamax(g: Any, w: Any, own: Arrays, shared: Arrays, *, epsilon: Any = 1e-7) -> Arrays:
    """Epsilon beside u, as in Keras and the paper's later version."""
    (m, u), (t,) = own, shared
    m, u = 0.9 * m + 0.1 * g, jnp.maximum(0.98 * u, jnp.abs(g))
    return w - 0.002 * m / ((1 - 0.9 ** (t + 1)) * (u + epsilon)), m, u


def adamax_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    return adamax(g, w, own, shared, epsilon=1e-7 * jnp.abs(w))


def lamb(g: Any, w: Any, own: Arrays, shared: Arrays, *, top: Any = None) -> Arrays:
    """Two choices, one for each norm."""
    (m, v), (t,) = moments(g, *own), shared
    step = m / (1 - 0.9 ** (t + 1)) / (jnp.sqrt(v / (1 - 0.98 ** (t + 1))) + 1e-6) + 0.01 * w
    above, below = jnp.linalg.norm(w if top is None else top), jnp.linalg.norm(step)
    return w - 0.001 * jnp.where(above > 0, jnp.where(below > 0, above / below, 1.0), 1.0) * step, m, v


def lamb_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use the norm of the gradient in the numerator."""
    return lamb(g, w, own, shared, top=g)


def lamb_of_keras(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Decay the weight before the step, which has the norm of the rest."""
    (m, v), (t,) = moments(g, *own), shared
    w = w - w * 0.004 * 0.001
    step = m / (1 - 0.9 ** (t + 1)) / (jnp.sqrt(v / (1 - 0.98 ** (t + 1))) + 1e-6)
    above, below = jnp.linalg.norm(w), jnp.linalg.norm(step)
    return w - 0.001 * jnp.where(above > 0, jnp.where(below > 0, above / below, 1.0), 1.0) * step, m, v


def lars(g: Any, w: Any, own: Arrays, _: Arrays, *, decay: float = 1e-4) -> Arrays:
    """Use the trust ratio of the paper, with separate norms of gradient and weight."""
    (m,) = own
    above, below = jnp.linalg.norm(w), jnp.linalg.norm(g)
    ratio = 0.001 * above / (below + decay * above + 1e-9)
    m = 0.9 * m + 0.5 * jnp.where((above > 0) & (below > 0), ratio, 1.0) * (g + 1e-4 * w)
    return w - m, m


def lars_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Another decay below than in the step."""
    return lars(g, w, own, shared, decay=2e-4)


def schedule(t: Any) -> Any:
    return 0.9 * (1 - 0.5 * 0.96**t)


def nadam(g: Any, w: Any, own: Arrays, shared: Arrays, *, late: float = 2.0) -> Arrays:
    """Use a schedule of the momentum, and its product."""
    (m, v), (t, kept) = moments(g, *own), shared
    now, coming = schedule(t + 1.0), schedule(t + late)
    kept = kept * now
    ahead = coming * m / (1 - kept * coming) + (1 - now) * g / (1 - kept)
    return w - 0.002 * ahead / (jnp.sqrt(v / (1 - 0.98 ** (t + 1))) + 1e-7), m, v


def nadam_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Half of the gradient's share."""
    m, v = moments(g, *own)
    new, *_ = nadam(g, w, own, shared)
    return new - 0.001 * g * (1 - schedule(shared[0] + 1.0)) / (jnp.sqrt(v) + 1e-7), m, v


def rmsprop(g: Any, w: Any, own: Arrays, shared: Arrays, *, base: Any = 0.9) -> Arrays:
    """With Adam's correction."""
    (v,), (t,) = own, shared
    v = 0.9 * v + 0.1 * g * g
    return w - 0.001 * g / (jnp.sqrt(v / (1 - base ** (t + 1.0))) + 1e-8), v


def rmsprop_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    return rmsprop(g, w, own, shared, base=jnp.abs(w))


def lion(g: Any, w: Any, own: Arrays, _: Arrays, *, least: float = 0.0) -> Arrays:
    """Choose the sign by two conditions."""
    (m,) = own
    mixed = 0.9 * m + 0.1 * g
    sign = jnp.where(mixed > 0, 1.0, jnp.where(mixed < least, -1.0, 0.0))
    return w - 1e-4 * (sign + 0.1 * w), 0.99 * m + 0.01 * g


def lion_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    return lion(g, w, own, shared, least=-0.5)


def counted(t: Any) -> tuple[Any]:
    return (t + 1,)


def product_of(t: Any, kept: Any) -> tuple[Any, Any]:
    return t + 1, kept * schedule(t + 1.0)


def accumulated(g: Any, w: Any, own: Arrays, shared: Arrays, *, share: float = 1.0) -> Arrays:
    """Momentum of the mean of several gradients, which is kept until the momentum takes it in."""
    (m, total), (t,) = own, shared
    m = 0.9 * m + (total + share * (g - total) / (t + 1))
    return w - 0.1 * m, m, jnp.zeros_like(total)


# -- rules that optax has otherwise, or not -----------------------------------------------------------------------------


def mars(g: Any, w: Any, own: Arrays, shared: Arrays, *, weight: bool = False) -> Arrays:
    (m, v, last), (t,) = own, shared
    c = g + 0.025 * 0.95 / 0.05 * (g - last)
    norm = jnp.linalg.norm(c)
    c = jnp.where(norm > 1, c / norm, c)
    m, v = 0.95 * m + 0.05 * c, 0.99 * v + 0.01 * c * c
    step = m / (1 - 0.95 ** (t + 1)) / (jnp.sqrt(v / (1 - 0.99 ** (t + 1))) + 1e-8) + 0.01 * w
    return w - 0.003 * step, m, v, w if weight else g


def mars_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Keep something other than the gradient."""
    return mars(g, w, own, shared, weight=True)


def adopt(g: Any, w: Any, own: Arrays, shared: Arrays, *, other: Any = 1.0) -> Arrays:
    (m, v), (t,) = own, shared
    u = jnp.clip(g / jnp.maximum(jnp.sqrt(v), 1e-6), -(t**0.25), t**0.25)
    m = 0.9 * m + 0.1 * u
    return w - 0.001 * m, m, 0.9999 * v + 0.0001 * g * g * other


def adopt_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Another moment."""
    return adopt(g, w, own, shared, other=jnp.abs(w))


def adabound(g: Any, w: Any, own: Arrays, shared: Arrays, *, limit: Any = 1.0) -> Arrays:
    (m, v), (t,) = moments(g, *own), shared
    low, high = 0.1 * (1 - 1 / (0.001 * t + 1)), 0.1 * (1 + 1 / (0.001 * t)) * limit
    size = 0.002 * jnp.sqrt(1 - 0.98**t) / (1 - 0.9**t) / (jnp.sqrt(v) + 1e-8)
    return w - jnp.clip(size, low, high) * m, m, v


def adabound_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use a limit that is made of the weight."""
    return adabound(g, w, own, shared, limit=w)


def sophia(g: Any, w: Any, own: Arrays, shared: Arrays, *, kept: Any = 0.99) -> Arrays:
    """Estimate by the square of the gradient, in each tenth step."""
    (m, h), (t,) = own, shared
    m = 0.96 * m + 0.04 * g
    step = jnp.clip(m / jnp.maximum(0.01 * h, 1e-12), -1, 1)
    return w * (1 - 0.001 * 0.1) - 0.001 * step, m, jnp.where(t % 10 == 0, kept * h + 0.32 * g * g, h)


def sophia_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use a decay of the estimate that is made of the weight."""
    return sophia(g, w, own, shared, kept=jnp.abs(w))


def rprop(g: Any, w: Any, own: Arrays, _: Arrays, *, looked_at: Any = None) -> Arrays:
    last, size = own
    turn = jnp.sign((g if looked_at is None else looked_at) * last)
    size = jnp.clip(size * jnp.where(turn > 0, 1.2, jnp.where(turn < 0, 0.5, 1.0)), 1e-6, 50.0)
    g = jnp.where(turn < 0, 0.0, g)
    return w - jnp.sign(g) * size, g, size


def rprop_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use the sign of the weight."""
    return rprop(g, w, own, shared, looked_at=w)


def rprop_by_torch(g: Any, w: Any, own: Arrays, shared: Arrays, *, looked_at: Any = None) -> Arrays:
    """PyTorch makes the factor of the sign, step by step, and hands in the two factors."""
    (last, size), (up, down) = own, shared
    factor = jnp.sign((g if looked_at is None else looked_at) * last)
    factor = jnp.where(factor > 0, up, factor)
    factor = jnp.where(factor < 0, down, factor)
    factor = jnp.where(factor == 0, 1.0, factor)
    size = jnp.clip(size * factor, 1e-6, 50.0)
    g = jnp.where(factor == down, 0.0, g)
    return w - jnp.sign(g) * size, g, size


def rprop_by_torch_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use the sign of the weight."""
    return rprop_by_torch(g, w, own, shared, looked_at=w)


def ftrl(g: Any, w: Any, own: Arrays, _: Arrays, *, rate: float = 0.1) -> Arrays:
    n, z = own
    new = n + g * g
    z = z + g - (jnp.sqrt(new) / 0.1 - jnp.sqrt(n) / rate) * w
    w = jnp.where(jnp.abs(z) <= 0.01, 0.0, -(z - jnp.sign(z) * 0.01) / ((1.0 + jnp.sqrt(new)) / 0.1 + 0.02))
    return w, new, z


def ftrl_twin(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Two rates."""
    return ftrl(g, w, own, shared, rate=0.2)


# -- rates that are an estimate of a distance, over all weights ----------------------------------------------------------


def by_distance(total: Callable[..., Any], *, is_prodigy: bool, factor: float = 1.0) -> Any:
    """Prodigy or D-Adaptation of AdamW; `total` is what the numerator adds up, `factor` is 1 in the sum of gradients."""

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, own, (d, r, t) = state
        gradient = jax.grad(loss_of)(weights, x, y)
        rate = 0.5 * d * jnp.sqrt(1 - 0.98 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        scale = rate * d / 1e-4 if is_prodigy else 0.1 * rate
        new, sums = {}, 0.0
        for key, g in gradient.items():
            m, v, s, w0 = own[key]
            sums += jnp.sum(total(g, weights[key], w0, s, v, 0.98 * v + 0.02 * g * g))
            moved = (d if is_prodigy else rate) * g
            squared = d * g if is_prodigy else g
            new[key] = (0.9 * m + 0.1 * moved, 0.98 * v + 0.02 * squared**2, 0.9 * s + factor * scale * g, w0)
        r = 0.9 * r + scale * sums
        size = sum(jnp.sum(jnp.abs(one[2])) for one in new.values())
        after = jnp.maximum(d, r / size if is_prodigy else r / (0.1 * size))
        for key, (m, v, _, _) in new.items():
            root = jnp.sqrt(v) + (after * 1e-6 if is_prodigy else 1e-6)
            weights = weights | {key: weights[key] - (rate if is_prodigy else 1.0) * m / root - 0.03 * rate * weights[key]}
        return weights, new, (after, r, t + 1)

    return step, (WEIGHTS, {key: (shape,) * 4 for key, shape in WEIGHTS.items()}, (SCALAR, SCALAR, COUNTER))


def moved_by(g: Any, w: Any, w0: Any, *_: Any) -> Any:
    return g * (w0 - w)


def moved_back(g: Any, w: Any, w0: Any, *_: Any) -> Any:
    """Use the opposite direction."""
    return g * (w - w0)


def scaled_sum(g: Any, w: Any, w0: Any, s: Any, v: Any, _: Any) -> Any:
    return g * s / (jnp.sqrt(v) + 1e-6)


def scaled_after(g: Any, w: Any, w0: Any, s: Any, _: Any, v: Any) -> Any:
    """By the second moment of after the step."""
    return g * s / (jnp.sqrt(v) + 1e-6)


# -- averages of the weights ---------------------------------------------------------------------------------------------


def falling(t: Any, slope: float = 0.002 * 0.1) -> Any:
    """Return the rate of averaged SGD after t steps, with a decay of 0.002."""
    return 0.1 / (1.0 + slope * t) ** 0.75


def share_of(t: Any) -> Any:
    return 1.0 / jnp.maximum(1.0, t - 10.0)


def averaged(g: Any, w: Any, own: Arrays, eta: Any, share: Any) -> Arrays:
    (x,) = own
    w = w * (1.0 - 0.002 * eta) - eta * g
    return w, x + share * (w - x)


def asgd(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Make the rate of the counter."""
    return averaged(g, w, own, falling(shared[0]), share_of(shared[0]))


def asgd_kept(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Rate and share are kept from the step before, as in PyTorch."""
    return averaged(g, w, own, *shared[1:])


def after_asgd(t: Any, *_: Any) -> Arrays:
    return t + 1.0, falling(t + 1.0), share_of(t + 1.0)


def sgd_steady(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """SGD with a moving average for evaluation."""
    return averaged(g, w, own, falling(shared[0]), 0.01)


def sgd_steeper(g: Any, w: Any, own: Arrays, shared: Arrays) -> Arrays:
    """Use a schedule that has nothing to do with the decay."""
    return averaged(g, w, own, falling(shared[0], 0.01), share_of(shared[0]))


PROGRAMS: dict[str, tuple[Any, Arrays]] = {
    "adam_handed_in": (step_of(adam_by_torch, 2), (SCALAR,) * 5),
    "adam_powers": (step_of(adam_by_powers, 2, (SCALAR, SCALAR), powers), ()),
    "adam_powers_twin": (step_of(adam_twin, 2, (SCALAR, SCALAR), powers), ()),
    "adamax_beside": (step_of(adamax, 2, (COUNTER,), counted), ()),
    "adamax_twin": (step_of(adamax_twin, 2, (COUNTER,), counted), ()),
    "lamb_of_keras": (step_of(lamb_of_keras, 2, (COUNTER,), counted), ()),
    "lamb_twice": (step_of(lamb, 2, (COUNTER,), counted), ()),
    "lamb_twin": (step_of(lamb_twin, 2, (COUNTER,), counted), ()),
    "lars_paper": (step_of(lars, 1), ()),
    "lars_twin": (step_of(lars_twin, 1), ()),
    "nadam_scheduled": (step_of(nadam, 2, (COUNTER, SCALAR), product_of), ()),
    "nadam_twin": (step_of(nadam_twin, 2, (COUNTER, SCALAR), product_of), ()),
    "rmsprop_corrected": (step_of(rmsprop, 1, (COUNTER,), counted), ()),
    "rmsprop_twin": (step_of(rmsprop_twin, 1, (COUNTER,), counted), ()),
    "lion_chosen": (step_of(lion, 1), ()),
    "lion_twin": (step_of(lion_twin, 1), ()),
    "mars": (step_of(mars, 3, (COUNTER,), counted), ()),
    "mars_twin": (step_of(mars_twin, 3, (COUNTER,), counted), ()),
    "adopt": (step_of(adopt, 2, (SCALAR,), counted), ()),
    "adopt_twin": (step_of(adopt_twin, 2, (SCALAR,), counted), ()),
    "adabound": (step_of(adabound, 2, (SCALAR,), counted), ()),
    "adabound_twin": (step_of(adabound_twin, 2, (SCALAR,), counted), ()),
    "sophia": (step_of(sophia, 2, (COUNTER,), counted), ()),
    "sophia_twin": (step_of(sophia_twin, 2, (COUNTER,), counted), ()),
    "rprop": (step_of(rprop, 2), ()),
    "rprop_twin": (step_of(rprop_twin, 2), ()),
    "rprop_handed_in": (step_of(rprop_by_torch, 2), (SCALAR,) * 2),
    "rprop_handed_in_twin": (step_of(rprop_by_torch_twin, 2), (SCALAR,) * 2),
    "ftrl": (step_of(ftrl, 2), ()),
    "ftrl_twin": (step_of(ftrl_twin, 2), ()),
    "prodigy_by_hand": (by_distance(moved_by, is_prodigy=True), ()),
    "prodigy_back_twin": (by_distance(moved_back, is_prodigy=True), ()),
    "prodigy_twin": (by_distance(moved_by, is_prodigy=True, factor=2.0), ()),
    "dadapt_adamw_by_hand": (by_distance(scaled_sum, is_prodigy=False), ()),
    "dadapt_adamw_after_twin": (by_distance(scaled_after, is_prodigy=False), ()),
    "dadapt_adamw_twin": (by_distance(scaled_sum, is_prodigy=False, factor=2.0), ()),
    "asgd": (step_of(asgd, 1, (SCALAR,), counted), ()),
    "asgd_kept": (step_of(asgd_kept, 1, (SCALAR,) * 3, after_asgd), ()),
    "sgd_averaged_steadily": (step_of(sgd_steady, 1, (SCALAR,), counted), ()),
    "sgd_averaged_steeper": (step_of(sgd_steeper, 1, (SCALAR,), counted), ()),
    "sgd_accumulated": (step_of(accumulated, 2, (COUNTER,), counted), ()),
}


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        (step, state), handed = PROGRAMS[name]
        lowered = jax.jit(step, donate_argnums=(0,), keep_unused=True).lower(state, X, Y, *handed)
        write(f"{name}.before.hlo", lowered.compiler_ir("hlo").as_hlo_text())
        write(f"{name}.after.hlo", lowered.compile().as_text())


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    main()
