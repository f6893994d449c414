"""The small JAX programs that the dumps are made from, and what is known about each because it was written that way.

They run under jax 0.4.13 to 0.10.2, whose types differ, so jax is imported without its types. The programs here are for a mesh
of data=2 and model=4; those for one device are in `operators.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
lax: Any = import_module("jax.lax")

MESH_AXES = {"data": 2, "model": 4}


@dataclass(frozen=True)
class Arg:
    """One array argument: its shape, element type and the mesh axes (or `None`) of each dimension."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    spec: tuple[str | tuple[str, ...] | None, ...] = ()


@dataclass(frozen=True)
class Program:
    """A function to lower with `args` (trees of `Arg`).

    The first output gets the shardings of the first argument when `state_out` is set. `truth` holds what the source of the
    program says, in the words of the report's facts.
    """

    step: Callable[..., Any]
    args: tuple[Any, ...]
    donate: tuple[int, ...] = ()
    state_out: bool = False
    truth: dict[str, Any] = field(default_factory=dict)


def shard_map(step: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any) -> Any:
    """`jax.shard_map` without its replication check, whose name and place changed with jax's versions."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(step, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    old: Any = import_module("jax.experimental.shard_map")
    return old.shard_map(step, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_rep=False)


def spec(*axes: str | tuple[str, ...] | None) -> Any:
    return jax.sharding.PartitionSpec(*axes)


def specs_of(args: tuple[Arg, ...]) -> tuple[Any, ...]:
    return tuple(spec(*arg.spec) for arg in args)


def adamw_step(_mesh: Any) -> Program:
    """Tensor-parallel two-layer MLP, data-parallel batch, AdamW by hand, all of the state donated."""
    rate, beta1, beta2, epsilon, decay = 0.001, 0.9, 0.95, 1e-8, 0.1

    def loss_of(params: Any, x: Any, y: Any) -> Any:
        hidden = jnp.maximum(x @ params["w1"], 0.0)
        return jnp.mean((hidden @ params["w2"] - y) ** 2)

    def step(state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(state["params"], x, y)
        count = state["count"] + 1
        new: dict[str, Any] = {"count": count, "params": {}, "mu": {}, "nu": {}}
        for name, grad in grads.items():
            mu = beta1 * state["mu"][name] + (1 - beta1) * grad
            nu = beta2 * state["nu"][name] + (1 - beta2) * grad * grad
            update = (mu / (1 - beta1**count)) / (jnp.sqrt(nu / (1 - beta2**count)) + epsilon)
            weight = state["params"][name]
            new["params"][name] = weight - rate * (update + decay * weight)
            new["mu"][name], new["nu"][name] = mu, nu
        return new, loss

    weights = {"w1": Arg((8, 32), spec=(None, "model")), "w2": Arg((32, 8), spec=("model", None))}
    state = {"count": Arg((), "int32"), "params": weights, "mu": weights, "nu": weights}
    batch = Arg((16, 8), spec=("data", None))
    truth = {
        "optimizer.name": "adamw",
        "optimizer.learning_rate": rate,
        "optimizer.beta1": beta1,
        "optimizer.beta2": beta2,
        "optimizer.epsilon": epsilon,
        "optimizer.weight_decay": decay,
        "optimizer.update_count": 2,
        "params.count": 9,
        "params.donated_count": 7,
        "params.unused_count": 0,
        "mesh.shape": "2x4",
    }
    return Program(step, (state, batch, batch), donate=(0,), state_out=True, truth=truth)


def sgd_unused(_mesh: Any) -> Program:
    """Plain SGD on one weight and a bias; nothing is donated and the argument `mask` is not read."""

    def step(params: Any, x: Any, y: Any, mask: Any) -> Any:
        def loss_of(params: Any) -> Any:
            return jnp.sum((x @ params["kernel"] + params["bias"] - y) ** 2)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return jax.tree_util.tree_map(lambda p, g: p - 0.5 * g, params, grads), loss

    params = {"bias": Arg((8,)), "kernel": Arg((16, 8))}
    args = (params, Arg((32, 16), spec=("data", None)), Arg((32, 8), spec=("data", None)), Arg((32,), "bool", ("data",)))
    truth = {
        "optimizer.name": "sgd",
        "optimizer.learning_rate": 0.5,
        "optimizer.update_count": 2,
        "params.count": 5,
        "params.donated_count": 0,
        "params.unused_count": 1,
    }
    return Program(step, args, state_out=True, truth=truth)


def bf16_master(_mesh: Any) -> Program:
    """bfloat16 weights with float32 masters, momentum 0.9; donated without output shardings, so jax writes `buffer_donor`."""

    def step(state: Any, x: Any) -> Any:
        def loss_of(weight: Any) -> Any:
            return jnp.mean((x @ weight).astype(jnp.float32) ** 2)

        grad = jax.grad(loss_of)(state["weight"]).astype(jnp.float32)
        trace = 0.9 * state["trace"] + grad
        master = state["master"] - 0.01 * trace
        return {"master": master, "trace": trace, "weight": master.astype(jnp.bfloat16)}

    single = Arg((8, 16), spec=(None, "model"))
    state = {"master": single, "trace": single, "weight": Arg((8, 16), "bfloat16", (None, "model"))}
    truth = {
        "optimizer.name": "sgd",
        "optimizer.learning_rate": 0.01,
        "optimizer.momentum": 0.9,
        "optimizer.update_count": 1,
        "params.count": 4,
        "params.donated_count": 3,
        "params.unused_count": 0,
    }
    return Program(step, (state, Arg((32, 8), "bfloat16", ("data", None))), donate=(0,), truth=truth)


def loss_of_layers(stack: Any, x: Any) -> Any:
    """Equal layers under `lax.scan`, each gathered over data when it is used; for use inside `shard_map`."""

    def layer(carry: Any, shard: Any) -> Any:
        weight = lax.all_gather(shard, "data", axis=0, tiled=True)
        return jnp.tanh(carry @ weight), None

    out, _ = lax.scan(jax.checkpoint(layer), x, stack)
    return lax.psum(jnp.sum(out * out), ("data", "model"))


LAYERS = (Arg((3, 8, 8), spec=(None, "data", None)), Arg((16, 8), spec=(("data", "model"), None)))


def scan_fsdp(mesh: Any) -> Program:
    """Gradient of three rematerialised layers and SGD; the weights are donated."""

    def step(stack: Any, x: Any) -> Any:
        return stack - 0.1 * jax.grad(shard_map(loss_of_layers, mesh, specs_of(LAYERS), spec()))(stack, x)

    truth = {
        "optimizer.name": "sgd",
        "optimizer.learning_rate": 0.1,
        "params.count": 2,
        "params.donated_count": 1,
        "loops.trip_count": 3,
    }
    return Program(step, LAYERS, donate=(0,), state_out=True, truth=truth)


def scan_forward(mesh: Any) -> Program:
    """Return the loss of three layers alone: one loop with an all-gather in it."""
    truth = {"optimizer.name": "none", "params.count": 2, "params.donated_count": 0, "loops.trip_count": 3}
    return Program(shard_map(loss_of_layers, mesh, specs_of(LAYERS), spec()), LAYERS, truth=truth)


def collectives(mesh: Any) -> Program:
    """One call of each collective under `shard_map`, over the data axis, the model axis and both."""

    def step(x: Any, y: Any) -> Any:
        total = lax.psum(x, "model")
        largest = lax.pmax(x, "data")
        norm = lax.psum(jnp.sum(y * y), ("data", "model"))
        whole = lax.all_gather(y, "data", axis=0, tiled=True)
        part = lax.psum_scatter(y, "model", scatter_dimension=0, tiled=True)
        swapped = lax.all_to_all(y, "model", split_axis=1, concat_axis=0, tiled=True)
        ring = lax.ppermute(y, "model", [(i, (i + 1) % 4) for i in range(4)])
        return total + largest, norm, whole * 2.0, part + 1.0, swapped - 1.0, ring * 3.0

    rows = spec(("data", "model"), None)
    outs = (spec("data", None), spec(), spec("model", None), rows, rows, rows)
    args = (Arg((16, 8), spec=("data", None)), Arg((128, 16), spec=(("data", "model"), None)))
    truth = {
        "collectives.all-reduce.count": 3,
        "collectives.all-gather.count": 1,
        "collectives.reduce-scatter.count": 1,
        "collectives.all-to-all.count": 1,
        "collectives.collective-permute.count": 1,
        "mesh.shape": "2x4",
    }
    return Program(shard_map(step, mesh, specs_of(args), outs), args, truth=truth)


def gathered_matmul(mesh: Any) -> Program:
    """Two matrix products between a gather and a reduce-scatter, large enough for TPU to overlap its collectives with them."""

    def step(x: Any, first: Any, second: Any) -> Any:
        hidden = jnp.tanh(x @ lax.all_gather(first, "model", axis=1, tiled=True))
        out = hidden @ lax.all_gather(second, "model", axis=1, tiled=True)
        return lax.psum_scatter(out, "model", scatter_dimension=0, tiled=True)

    args = (
        Arg((8192, 2048), "bfloat16", ("data", None)),
        Arg((2048, 8192), "bfloat16", (None, "model")),
        Arg((8192, 2048), "bfloat16", (None, "model")),
    )
    truth = {
        "collectives.all-gather.count": 2,
        "collectives.reduce-scatter.count": 1,
        "cost.matmul_flops": 2 * 2 * 4096 * 2048 * 8192,
    }
    return Program(shard_map(step, mesh, specs_of(args), spec(("data", "model"), None)), args, truth=truth)


def between_slices(mesh: Any) -> Program:
    """Sum over two slices three times in a loop; then sum in a slice, scatter and rotate between slices."""

    def step(x: Any) -> Any:
        def layer(carry: Any, _: Any) -> Any:
            return jnp.tanh(lax.psum(carry, "slice")), None

        out, _ = lax.scan(layer, x, None, length=3)
        total = lax.psum(out, "model")
        part = lax.psum_scatter(out * 2.0, "slice", scatter_dimension=0, tiled=True)
        turned = lax.ppermute(out * 3.0, "slice", [(0, 1), (1, 0)])
        return total, part, turned

    rows = spec(("slice", "data", "model"), None)
    args = (Arg((16 * 64, 128), spec=(("slice", "data", "model"), None)),)
    outs = (spec(("slice", "data"), None), rows, rows)
    truth = {"loops.trip_count": 3, "params.count": 1, "params.donated_count": 0}
    return Program(shard_map(step, mesh, specs_of(args), outs), args, truth=truth)
