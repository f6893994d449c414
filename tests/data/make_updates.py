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
    """A step of two weights with so many states each; `after` makes the new values of what they share."""

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
    """The weight is in the correction."""
    (m, v), (p1, p2) = moments(g, *own), shared
    return w - 0.002 * jnp.sqrt(1 - p2 * w) / (1 - p1) * m / (jnp.sqrt(v) + 1e-7), m, v


def powers(p1: Any, p2: Any) -> tuple[Any, Any]:
    return p1 * 0.9, p2 * 0.98


PROGRAMS: dict[str, tuple[Any, Arrays]] = {
    "adam_handed_in": (step_of(adam_by_torch, 2), (SCALAR,) * 5),
    "adam_powers": (step_of(adam_by_powers, 2, (SCALAR, SCALAR), powers), ()),
    "adam_powers_twin": (step_of(adam_twin, 2, (SCALAR, SCALAR), powers), ()),
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
