"""Makes the dumps `optimizers/net_*`: steps whose gradients have special forms.

The forms are scales of batch norm, standardized weights, gradients clipped one by one, and rows of embeddings. `*_other` are
their twins, in which one thing is wrong.

Run as make_optimizers.py is.
"""

from __future__ import annotations

import sys
from typing import Any

from make_optimizers import HERE, X, Y, jax, jnp, write

MATRIX, VECTOR = jax.ShapeDtypeStruct((8, 4), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)
TABLE, IDS = jax.ShapeDtypeStruct((30, 8), jnp.float32), jax.ShapeDtypeStruct((16,), jnp.int32)
tree_map = jax.tree_util.tree_map


def norm_loss(weights: Any, x: Any, y: Any) -> Any:
    hidden = x @ weights["w"]
    normed = (hidden - hidden.mean(0)) * jax.lax.rsqrt(hidden.var(0) + 1e-3)
    return jnp.mean((normed * weights["scale"] + weights["shift"] - y) ** 2)


def batch_norm(*, other: bool = False) -> Any:
    """Momentum of 0.9 and a rate of 0.05; the twin divides the gradient of the scale by its norm."""

    def step(weights: Any, momentum: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(norm_loss)(weights, x, y)
        if other:
            gradient["scale"] /= jnp.sqrt(jnp.sum(gradient["scale"] ** 2)) + 1e-8
        momentum = tree_map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return tree_map(lambda w, m: w - 0.05 * m, weights, momentum), momentum

    weights = {"w": MATRIX, "scale": VECTOR, "shift": VECTOR}
    return step, (weights, weights), (X, Y)


def standardized(*, other: bool = False) -> Any:
    """As above, with a weight without its mean and its deviation; the twin scales the gradient with the size of the weight."""

    def loss(weight: Any, x: Any, y: Any) -> Any:
        weight = weight - weight.mean(0)
        weight = weight * jax.lax.rsqrt(jnp.mean(weight**2, 0) + 1e-4)
        return jnp.mean((jnp.tanh(x @ weight) - y) ** 2)

    def step(weight: Any, momentum: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(loss)(weight, x, y)
        momentum = 0.9 * momentum + (gradient * (1 + jnp.abs(weight)) if other else gradient)
        return weight - 0.05 * momentum, momentum

    return step, (MATRIX, MATRIX), (X, Y)


def clipped(*, other: bool = False) -> Any:
    """Adam without corrections of a gradient whose own norm is at most 0.5; the twin squares what is not clipped."""

    def step(weight: Any, m: Any, v: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(weight)
        short = gradient * jnp.minimum(1.0, 0.5 / (jnp.sqrt(jnp.sum(gradient**2)) + 1e-6))
        m, v = 0.9 * m + 0.1 * short, 0.98 * v + 0.02 * (gradient if other else short) ** 2
        return weight - 0.002 * m / (jnp.sqrt(v) + 1e-8), m, v

    return step, (MATRIX,) * 3, (X, Y)


def embedding(*, other: bool = False) -> Any:
    """Adam of single rows, with all else zero; the twin adds the squares up in other rows."""

    def step(table: Any, m: Any, v: Any, ids: Any, y: Any) -> Any:
        rows = jax.grad(lambda r: jnp.mean((jnp.tanh(r) - y) ** 2))(table[ids])
        m = (0.9 * m).at[ids].add(0.1 * rows)
        v = (0.98 * v).at[ids[::-1] if other else ids].add(0.02 * rows**2)
        return table - 0.002 * m / (jnp.sqrt(v) + 1e-8), m, v

    return step, (TABLE,) * 3, (IDS, jax.ShapeDtypeStruct((16, 8), jnp.float32))


PROGRAMS = {"batch_norm": batch_norm, "standardized": standardized, "clipped": clipped, "embedding": embedding}


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        for ending, other in (("", False), ("_other", True)):
            step, state, batch = PROGRAMS[name](other=other)
            lowered = jax.jit(step, donate_argnums=tuple(range(len(state)))).lower(*state, *batch)
            write(f"net_{name}{ending}.before.hlo", lowered.compiler_ir("hlo").as_hlo_text())
            write(f"net_{name}{ending}.after.hlo", lowered.compile().as_text())


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    main()
