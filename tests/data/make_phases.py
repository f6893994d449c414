"""Writes the dumps of tests/data/phases: training steps, and programs like them that train nothing.

By construction the phase of each instruction of a step is known: forward, backward, recompute or optimizer.

    python -m venv /tmp/jax && /tmp/jax/bin/pip install jax==0.10.2
    /tmp/jax/bin/python tests/data/make_phases.py [NAME…]

Each is compiled for 8 CPU devices. The names in the text are JAX's; tests hide them, and `scan_hidden` has none.
"""

from __future__ import annotations

import lzma
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

OUT = Path(__file__).parent / "phases"
MESH = jax.make_mesh((8,), ("data",))
SPLIT, WHOLE = PartitionSpec("data"), PartitionSpec()
WIDTH, LAYERS = 32, 3
METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

Weights = Any
Array = jax.Array


def array(*shape: int, spec: PartitionSpec = WHOLE) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, spec))


NET = {"a": array(WIDTH, WIDTH), "b": array(WIDTH, WIDTH)}
SHARDED = {"a": array(WIDTH, WIDTH, spec=SPLIT), "b": array(WIDTH, WIDTH, spec=SPLIT)}
STACK = {"a": array(LAYERS, WIDTH, WIDTH, spec=PartitionSpec(None, "data")), "b": array(WIDTH, WIDTH)}
BATCH = array(64, WIDTH, spec=SPLIT)


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return added


def descend(weights: Weights, gradients: Weights) -> Weights:
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def net(weights: Weights, x: Array) -> Array:
    return jnp.tanh(x @ weights["a"]) @ weights["b"]


def square(weights: Weights, x: Array, y: Array) -> Array:
    return jnp.mean((net(weights, x) - y) ** 2)


@program(NET, BATCH, BATCH)
def two_layers(w: Weights, x: Array, y: Array) -> Any:
    loss, g = jax.value_and_grad(square)(w, x, y)
    return descend(w, g), loss


@program(NET, BATCH, BATCH)
def gradients_returned(w: Weights, x: Array, y: Array) -> Any:
    return jax.value_and_grad(square)(w, x, y)


@program(NET, BATCH)
def inference(w: Weights, x: Array) -> Any:
    return net(w, x), jnp.mean(net(w, x))


@program(SHARDED, BATCH, BATCH)
def remat(w: Weights, x: Array, y: Array) -> Any:
    layer = jax.checkpoint(lambda w, x: jnp.sin(jnp.tanh(x @ w["a"]) @ w["b"]))
    loss, g = jax.value_and_grad(lambda w: jnp.mean((layer(w, layer(w, x)) - y) ** 2))(w)
    return descend(w, g), loss


@program(SHARDED, BATCH, BATCH)
def remat_gradients_returned(w: Weights, x: Array, y: Array) -> Any:
    layer = jax.checkpoint(lambda w, x: jnp.sin(jnp.tanh(x @ w["a"]) @ w["b"]))
    return jax.value_and_grad(lambda w: jnp.mean((layer(w, layer(w, x)) - y) ** 2))(w)


def accumulated(w: Weights, x: Array, y: Array) -> Any:
    def add(total: Any, batch: Any) -> Any:
        loss, g = jax.value_and_grad(square)(w, *batch)
        return (total[0] + loss, jax.tree.map(jnp.add, total[1], g)), None

    none = jax.tree.map(jnp.zeros_like, w)
    return lax.scan(add, (0.0, none), (x, y))[0]


@program(NET, array(4, 64, WIDTH, spec=PartitionSpec(None, "data")), array(4, 64, WIDTH, spec=PartitionSpec(None, "data")))
def microbatches(w: Weights, x: Array, y: Array) -> Any:
    loss, g = accumulated(w, x, y)
    return descend(w, jax.tree.map(lambda one: one / 4, g)), loss / 4


@program(NET, array(4, 64, WIDTH, spec=PartitionSpec(None, "data")), array(4, 64, WIDTH, spec=PartitionSpec(None, "data")))
def microbatches_gradients_returned(w: Weights, x: Array, y: Array) -> Any:
    return accumulated(w, x, y)


@program(NET, BATCH, BATCH)
def loss_not_returned(w: Weights, x: Array, y: Array) -> Any:
    return descend(w, jax.grad(square)(w, x, y))


@program(array(WIDTH, WIDTH), BATCH, BATCH)
def one_weight_loss_not_returned(w: Array, x: Array, y: Array) -> Any:
    return descend(w, jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w))


@program(NET, BATCH, BATCH)
def metrics(w: Weights, x: Array, y: Array) -> Any:
    """Beside the loss the size of an activation, a norm of cotangents and the norm of the gradients."""

    def loss_of(w: Weights, shift: Array) -> Any:
        h = jnp.tanh(x @ w["a"]) + shift
        return jnp.mean((h @ w["b"] - y) ** 2), jnp.mean(jnp.abs(h))

    zero = jnp.zeros(x.shape)
    (loss, size), (g, cotangent) = jax.value_and_grad(loss_of, (0, 1), has_aux=True)(w, zero)
    norm = jnp.sqrt(sum(jnp.sum(one * one) for one in jax.tree.leaves(g)))
    return descend(w, g), loss, size, jnp.sqrt(jnp.sum(cotangent**2)), norm


@program(NET, BATCH, BATCH)
def metrics_alone(w: Weights, x: Array, y: Array) -> Any:
    """Compute the same numbers, and update nothing."""
    loss, g = jax.value_and_grad(square)(w, x, y)
    return loss, jnp.sqrt(sum(jnp.sum(one * one) for one in jax.tree.leaves(g)))


@program({**NET, "frozen": array(WIDTH, WIDTH)}, BATCH, BATCH)
def frozen_layer(w: Weights, x: Array, y: Array) -> Any:
    rest = {name: w[name] for name in ("a", "b")}
    loss, g = jax.value_and_grad(lambda rest: square(rest, jnp.tanh(x @ w["frozen"]), y))(rest)
    return {**descend(rest, g), "frozen": w["frozen"]}, loss


@program({"value": NET, "policy": NET}, NET, BATCH, BATCH)
def actor_critic(w: Weights, target: Weights, x: Array, later: Array) -> Any:
    """Two losses of two networks, of which one is returned; the other one's target is made of both networks."""
    expected = net(target, net(w["policy"], later))
    g = jax.grad(square)(w["value"], x, expected)
    loss, policy = jax.value_and_grad(lambda one: jnp.mean(net(w["value"], net(one, x)) ** 2))(w["policy"])
    return {"value": descend(w["value"], g), "policy": descend(w["policy"], policy)}, loss


@program({**NET, "frozen": array(WIDTH, WIDTH)}, BATCH, BATCH)
def all_frozen(w: Weights, x: Array, y: Array) -> Any:
    return w, square(w, jnp.tanh(x @ w["frozen"]), y)


def layers(w: Weights, x: Array) -> Array:
    return lax.scan(jax.checkpoint(lambda h, a: (jnp.tanh(h @ a) + h, None)), x, w["a"])[0] @ w["b"]


@program(STACK, BATCH, BATCH)
def scan(w: Weights, x: Array, y: Array) -> Any:
    loss, g = jax.value_and_grad(lambda w: jnp.mean((layers(w, x) - y) ** 2))(w)
    return descend(w, g), loss


@program(STACK, BATCH)
def scan_forward(w: Weights, x: Array) -> Any:
    return layers(w, x), jnp.mean(layers(w, x))


def attention(w: Weights, x: Array) -> Array:
    q, k, v = (x @ w[name] for name in "qkv")
    ring = [(one, (one + 1) % 8) for one in range(8)]

    def turn(state: Any, _: None) -> Any:
        k, v, top, bottom = state
        scores = jnp.exp(q @ k.T / WIDTH)
        top, bottom = top + scores @ v, bottom + jnp.sum(scores, -1, keepdims=True)
        return (lax.ppermute(k, "data", ring), lax.ppermute(v, "data", ring), top, bottom), None

    zero = jnp.zeros_like(q)
    (_, _, top, bottom), _ = lax.scan(jax.checkpoint(turn), (k, v, zero, zero[:, :1]), None, length=8)
    return top / bottom


@program(BATCH, {"a": STACK["a"], "c": STACK["a"], "scale": array(LAYERS, WIDTH), "b": STACK["b"]})
def remat_gradients(x: Array, w: Weights) -> Any:
    """Return gradients alone. The loop backward through the layers carries a cotangent."""

    def norm(h: Array, scale: Array) -> Array:
        return h * lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-6) * scale

    def layer(h: Array, own: Weights) -> tuple[Array, None]:
        h += jnp.tanh(norm(h, own["scale"]) @ own["a"])
        return h + jnp.tanh(norm(h, own["scale"]) @ own["c"]), None

    def loss(w: Weights) -> Array:
        layers = {name: own for name, own in w.items() if name != "b"}
        return jnp.mean((lax.scan(jax.checkpoint(layer), x @ w["b"], layers)[0]) ** 2)

    return jax.grad(loss)(w)


QKV = {name: array(WIDTH, WIDTH) for name in "qkv"}


@program(QKV, BATCH, BATCH)
def ring_attention(w: Weights, x: Array, y: Array) -> Any:
    def step(w: Weights, x: Array, y: Array) -> Any:
        loss, g = jax.value_and_grad(lambda w: jnp.mean((attention(w, x) - y) ** 2))(w)
        return descend(w, lax.pmean(g, "data")), lax.pmean(loss, "data")

    specs = (WHOLE, SPLIT, SPLIT)
    return jax.shard_map(step, mesh=MESH, in_specs=specs, out_specs=(WHOLE, WHOLE), check_vma=False)(w, x, y)


@program(QKV, BATCH)
def ring_attention_forward(w: Weights, x: Array) -> Any:
    return jax.shard_map(attention, mesh=MESH, in_specs=(WHOLE, SPLIT), out_specs=SPLIT, check_vma=False)(w, x)


@program([array(WIDTH, WIDTH)] * 3, BATCH, BATCH)
def stage(w: list[Array], x: Array, cotangent: Array) -> Any:
    """Run a stage of a pipeline, which takes and gives activations and takes cotangents."""

    def forward(w: list[Array]) -> Array:
        h = x
        for one in w:
            h = jnp.tanh(h @ one)
        return h

    y, back = jax.vjp(forward, w)
    return descend(w, back(cotangent)[0]), y


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PROGRAMS:
        function, arguments = PROGRAMS[name]
        compiled = jax.jit(function, donate_argnums=0).lower(*arguments).compile()
        text = compiled.as_text().replace(str(Path(__file__).parent), "/train")
        write(name, text)
        if name == "scan":
            write("scan_hidden", METADATA.sub("", text))


def write(name: str, text: str) -> None:
    (OUT / f"{name}.txt.xz").write_bytes(lzma.compress(text.encode()))


if __name__ == "__main__":
    main()
