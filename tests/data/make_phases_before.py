"""Writes tests/data/phases_before: training steps before optimization, without names, and the FLOPs of their products.

    python -m venv /tmp/jax && /tmp/jax/bin/pip install jax==0.10.2
    /tmp/jax/bin/python tests/data/make_phases_before.py [NAME…]

Nothing is compiled. `flops.json` has the FLOPs of all products by jaxpr; tests have them by phase, worked out by hand.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

OUT = Path(__file__).parent / "phases_before"
MESH = jax.make_mesh((8,), ("data",))
P, WHOLE = PartitionSpec, PartitionSpec()
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
Array = Any


def array(*shape: int, spec: PartitionSpec = WHOLE, memory: str = "device") -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, spec, memory_kind=memory))


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return added


def descend(weights: Any, gradients: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def adam(w: Array, m: Array, v: Array, g: Array) -> tuple[Array, Array, Array]:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.01 * m / (jnp.sqrt(v) + 1e-8), m, v


# -- scans over layers with the loss right behind them -----------------------------------------------------------------------


def layer(x: Array, w: Array) -> tuple[Array, None]:
    return jnp.sin(x @ w), None


STACK, BATCH = array(5, 16, 16), array(32, 16)


@program(STACK, BATCH)
def scan(w: Array, x: Array) -> Any:
    loss, g = jax.value_and_grad(lambda w: jnp.mean(lax.scan(layer, x, w)[0] ** 2))(w)
    return descend(w, g), loss


@program(STACK, BATCH, BATCH)
def scan_remat(w: Array, x: Array, y: Array) -> Any:
    loss, g = jax.value_and_grad(lambda w: jnp.mean((lax.scan(jax.checkpoint(layer), x, w)[0] - y) ** 2))(w)
    return descend(w, g), loss


@program(STACK, STACK, STACK, BATCH)
def scan_head(w: Array, m: Array, v: Array, x: Array) -> Any:
    """Behind the loop is another product: the loop's last state is no tail of the forward pass."""
    loss, g = jax.value_and_grad(lambda w: jnp.mean((lax.scan(layer, x, w)[0] @ w[0]) ** 2))(w)
    return *adam(w, m, v, g), loss


# the cotangent of a sum is a constant
@program(STACK, BATCH)
def scan_sum(w: Array, x: Array) -> Any:
    loss, g = jax.value_and_grad(lambda w: jnp.sum(lax.scan(layer, x, w)[0]))(w)
    return descend(w, g), loss


@program(STACK, BATCH)
def scan_mean_remat(w: Array, x: Array) -> Any:
    loss, g = jax.value_and_grad(lambda w: jnp.mean(lax.scan(jax.checkpoint(layer), x, w)[0]))(w)
    return descend(w, g), loss


# a recurrent network that begins with zeros, recomputed as a whole
@program(array(16, 16), array(16, 16), array(5, 32, 16))
def recurrent_sum(w: Array, u: Array, xs: Array) -> Any:
    def loss_of(weights: Any) -> Array:
        def cell(h: Array, x: Array) -> tuple[Array, None]:
            return jnp.tanh(x @ weights[0] + h @ weights[1]), None

        return jnp.sum(jax.checkpoint(lambda start: lax.scan(cell, start, xs)[0])(jnp.zeros((32, 16))))

    loss, g = jax.value_and_grad(loss_of)((w, u))
    return *descend((w, u), g), loss


@program(STACK, {"a": array(5, 16, 2), "b": array(5, 2, 16)}, BATCH)
def lora(w: Array, adapters: Any, x: Array) -> Any:
    def loss_of(adapters: Any) -> Array:
        def adapted(x: Array, weights: Any) -> tuple[Array, None]:
            w, own = weights
            return jnp.sin(x @ w + x @ own["a"] @ own["b"]), None

        return jnp.mean(lax.scan(adapted, x, (w, adapters))[0] ** 2)

    loss, g = jax.value_and_grad(loss_of)(adapters)
    return descend(adapters, g), loss


def zero3(checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    def gathered(x: Array, w: Array) -> tuple[Array, None]:
        return jnp.sin(x @ lax.all_gather(w, "data", axis=0, tiled=True)), None

    def run(w: Array, x: Array) -> Any:
        loss, g = jax.value_and_grad(lambda w: jnp.mean(lax.scan(checkpoint(gathered), x, w)[0] ** 2))(w)
        return w - 0.1 * g / 8, lax.pmean(loss, "data")

    specs = (P(None, "data"), P("data"))
    return jax.shard_map(run, mesh=MESH, in_specs=specs, out_specs=(P(None, "data"), P()), check_vma=False)


SHARDED = array(5, 16, 16, spec=P(None, "data")), array(256, 16, spec=P("data"))


@program(*SHARDED)
def zero3_scan(w: Array, x: Array) -> Any:
    return zero3(lambda layer: layer)(w, x)


@program(*SHARDED)
def zero3_remat(w: Array, x: Array) -> Any:
    return zero3(jax.checkpoint)(w, x)


@program(STACK, array(5, 16, 16, memory="pinned_host"), BATCH)
def offload(w: Array, m: Array, x: Array) -> Any:
    host, device = (NamedSharding(MESH, P(), memory_kind=kind) for kind in ("pinned_host", "device"))
    loss, g = jax.value_and_grad(lambda w: jnp.mean(lax.scan(layer, x, w)[0] ** 2))(w)
    m = 0.9 * jax.device_put(m, device) + g
    return w - 0.1 * m, jax.device_put(m, host), loss


# -- ensembles and target networks -------------------------------------------------------------------------------------------


@program(*[array(6, 16, 16)] * 3, array(6, 32, 16))
def vmapped_adam(w: Array, m: Array, v: Array, x: Array) -> Any:
    def of_member(w: Array, m: Array, v: Array, x: Array) -> Any:
        loss, g = jax.value_and_grad(lambda w: jnp.mean(jnp.sin(x @ w) ** 2))(w)
        return *adam(w, m, v, g), loss

    return jax.vmap(of_member)(w, m, v, x)


def net(inputs: int, outputs: int) -> Any:
    return {"a": array(inputs, 32), "b": array(32, outputs)}


def mlp(weights: Any, x: Array) -> Array:
    return jnp.tanh(x @ weights["a"]) @ weights["b"]


def value(weights: Any, state: Array, action: Array) -> Array:
    return mlp(weights, jnp.concatenate([state, action], 1))


def averaged(target: Any, weights: Any) -> Any:
    return jax.tree.map(lambda t, w: 0.99 * t + 0.01 * w, target, weights)


TD3 = (
    *(net(6, 2), net(8, 1), net(8, 1), net(6, 2), net(8, 1), net(8, 1)),
    *(array(16, 6), array(16, 2), array(16, 1), array(16, 6)),
)


def td3_step(actor: Any, first: Any, second: Any, targets: Any, batch: Any) -> Any:
    """Twin critics of one loss, an actor of another, and target networks of all three (Fujimoto et al. 2018)."""
    state, action, reward, following = batch
    next_action = jnp.tanh(mlp(targets[0], following))
    y = reward + 0.99 * jnp.minimum(*(value(target, following, next_action) for target in targets[1:]))

    def critics_loss(critics: Any) -> Array:
        return sum(jnp.mean((value(critic, state, action) - y) ** 2) for critic in critics)

    loss, g = jax.value_and_grad(critics_loss)((first, second))
    critics = descend((first, second), g)
    actor_loss = lambda actor: -jnp.mean(value(critics[0], state, jnp.tanh(mlp(actor, state))))  # noqa: E731
    other_loss, g = jax.value_and_grad(actor_loss)(actor)
    actor = descend(actor, g)
    new = [averaged(target, weights) for target, weights in zip(targets, (actor, *critics), strict=True)]
    return actor, *critics, *new, loss, other_loss


@program(*TD3)
def td3(*arguments: Any) -> Any:
    return td3_step(*arguments[:3], arguments[3:6], arguments[6:])


@program(*TD3, jax.ShapeDtypeStruct((), jnp.int32))
def td3_targets_in_cond(*arguments: Any) -> Any:
    """Target networks follow in every second step."""
    targets, second = arguments[3:6], arguments[-1] % 2 == 0
    done = td3_step(*arguments[:3], targets, arguments[6:-1])
    new = lax.cond(
        second,
        lambda old, weights: [averaged(*pair) for pair in zip(old, weights, strict=True)],
        lambda old, _: [*old],
        targets,
        done[:3],
    )
    return *done[:3], *new, *done[-2:]


@program(*TD3)
def td3_losses_not_returned(*arguments: Any) -> Any:
    return td3_step(*arguments[:3], arguments[3:6], arguments[6:])[:-2]


# -- texts -------------------------------------------------------------------------------------------------------------------


def flops_of(jaxpr: Any) -> int:
    """Return the FLOPs of all products of a jaxpr, those of a scan for each iteration."""
    flops = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            inner = math.prod(equation.invars[0].aval.shape[dimension] for dimension in contracted)
            flops += 2 * math.prod(equation.outvars[0].aval.shape) * inner
        times = equation.params.get("length", 1)
        for parameter in equation.params.values():
            inside = getattr(parameter, "jaxpr", parameter)
            flops += times * flops_of(inside) if hasattr(inside, "eqns") else 0
    return flops


def main(names: list[str]) -> None:
    """Write the texts of these programs, of all without names."""
    OUT.mkdir(exist_ok=True)
    path = OUT / "flops.json"
    flops = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, (function, arguments) in PROGRAMS.items():
        if names and name not in names:
            continue
        traced = jax.jit(function).trace(*arguments)
        text = traced.lower().compiler_ir("hlo").as_hlo_text()
        file = OUT / f"{name}.txt.xz"
        file.write_bytes(lzma.compress(text.encode(), preset=9))
        flops[name] = flops_of(traced.jaxpr.jaxpr)
        sys.stdout.write(f"{file.stat().st_size:6} {name} {flops[name]}\n")
    path.write_text(json.dumps(dict(sorted(flops.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
