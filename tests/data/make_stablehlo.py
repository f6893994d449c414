"""Write stablehlo/step.mlir: a training step on a mesh, as JAX lowers it. Needs jax 0.10.2; nothing is compiled or run.

XLA_FLAGS=--xla_force_host_platform_device_count=8 python make_stablehlo.py
"""

from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HIDDEN, BATCH = 4, 512, 2048, 1024

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def array(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*axes)))


def loss(weights: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Stack layers, each with a hidden layer that is sharded over `model`."""

    def layer(x: jax.Array, own: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        up, down = own
        return x + jax.nn.relu(x @ up) @ down, None

    out, _ = jax.lax.scan(layer, x, (weights["up"], weights["down"]))
    return jnp.mean((out - y) ** 2)


@jax.jit
def step(weights: dict[str, jax.Array], momentum: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> object:
    """SGD with momentum."""
    gradients = jax.grad(loss)(weights, x, y)
    momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, gradients)
    return jax.tree.map(lambda old, moved: old - 0.01 * moved, weights, momentum), momentum


weights = {
    "up": array((LAYERS, WIDTH, HIDDEN), None, None, "model"),
    "down": array((LAYERS, HIDDEN, WIDTH), None, "model", None),
}
batch = array((BATCH, WIDTH), "data", None)
text = step.lower(weights, weights, batch, batch).as_text(debug_info=True)
here = Path(__file__).parent
folder = here / "stablehlo"
folder.mkdir(exist_ok=True)
(folder / "step.mlir").write_text(text.replace(str(here), "/train") + "\n", encoding="utf-8")
