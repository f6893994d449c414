"""Writes the pairs of tests/data/planted: for each rule on what a program does for nothing a fault and its mended twin.

    python make_planted.py cpu|tpu|gpu [NAME…]

in the environments of README.md; nothing is run. Each stake is worked out by hand beside its program, for one step on one
device. It goes into `planted/expected.json` with the working. Bytes sent are the least of any algorithm: an all-gather over
8 sends 7 times its operand, an all-reduce 2 x 7/8 of it. A compiler may remove a fault. `off` names the passes of CPU that are
off then; `targets` names the machines whose compilers leave the fault in the text.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = str("double-precision" in sys.argv)
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_gpu_autotune_level=0"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"
os.environ["TPU_WORKER_ID"] = "0"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if sys.argv[1:2] not in (["cpu"], ["tpu"], ["gpu"]):
    sys.exit("usage: python make_planted.py cpu|tpu|gpu [NAME…]")
TARGET = sys.argv[1]
HERE = Path(__file__).resolve().parent
NEWEST = "0.10.2"
OUT = HERE / "planted" / ("" if jax.__version__ == NEWEST else f"jax_{jax.__version__.replace('.', '_')}")
KIB, MIB = 1 << 10, 1 << 20
P, WHOLE = PartitionSpec, PartitionSpec()
f32, bf16, f64 = jnp.float32, jnp.bfloat16, jnp.float64
Array = Any


def devices() -> Any:
    if TARGET == "cpu":
        return jax.devices()
    topologies: Any = import_module("jax.experimental.topologies")
    if TARGET == "tpu":
        return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    h100 = import_module("make_dumps").H100
    return topologies.get_topology_desc("", "cuda", target_config=h100, topology="1x1x8").devices


def mesh_of(*sizes: int) -> Mesh:
    numpy: Any = import_module("numpy")
    return Mesh(numpy.array(devices()).reshape(sizes), ("d",) if len(sizes) == 1 else ("a", "b"))


LINE, GRID = mesh_of(8), mesh_of(2, 4)


def array(*shape: int, spec: PartitionSpec = WHOLE, dtype: Any = f32, mesh: Mesh = LINE, memory: str = "device") -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec, memory_kind=memory))


def mapped(function: Callable[..., Any], arguments: tuple[Any, ...], out: Any, mesh: Mesh = LINE) -> Any:
    """Lower a function that runs on each device; its arguments are split as they say."""
    specs = jax.tree.map(lambda leaf: leaf.sharding.spec, arguments)
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)).lower(*arguments)


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return jax.jit(function, **options).lower(*arguments)


class Pair(NamedTuple):
    """A fault and its twin; `stake` by target if the targets differ. `rule` is the part of `name` before a dot."""

    name: str
    stake: int
    working: str
    targets: tuple[str, ...]
    off: str
    make: Callable[[], tuple[Any, Any]]


PAIRS: list[Pair] = []


def pair(
    name: str, stake: int, working: str, targets: str = "cpu", off: str = ""
) -> Callable[[Callable[[], tuple[Any, Any]]], None]:
    def add(make: Callable[[], tuple[Any, Any]]) -> None:
        PAIRS.append(Pair(name, stake, working, tuple(targets.split()), off, make))

    return add


def own_part(x: Array) -> Array:
    """Return the eighth of an array that belongs to this device."""
    rows = x.shape[0] // 8
    return lax.dynamic_slice_in_dim(x, lax.axis_index("d") * rows, rows, 0)


# -- collectives --------------------------------------------------------------------------------------------------------------


@pair("sliced-all-reduce", 7 * MIB, "two means of f32[1024,1024], 4 MiB each, of which a device reads 1/8", "cpu tpu gpu")
def _() -> Any:  # Momentum sharded by hand: the mean of each gradient is sliced. A reduce-scatter sends the slices alone.
    def loss(weights: Any, x: Array) -> Array:
        return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - x) ** 2)

    def step(mean: Callable[[Array], Array]) -> Any:
        def run(weights: Any, momentum: Any, x: Array) -> Any:
            parts = jax.tree.map(mean, jax.grad(loss)(weights, x))
            return jax.tree.map(lambda m, g: 0.9 * m + g, momentum, parts)

        weights = {name: array(1024, 1024) for name in ("in", "out")}
        momentum = {name: array(1024, 1024, spec=P("d")) for name in ("in", "out")}
        return mapped(run, (weights, momentum, array(4096, 1024, spec=P("d"))), P("d"))

    return step(lambda g: own_part(lax.pmean(g, "d"))), step(lambda g: lax.psum_scatter(g, "d", tiled=True) / 8)


@pair("sliced-all-gather", 5 * 7 * MIB, "in 5 iterations f32[8,256,1024], 8 MiB, of which a device reads 1/8", "cpu tpu")
def _() -> Any:  # A ring made of gathers: each device reads the array of its neighbor alone.
    def ring(neighbor: Callable[[Array], Array]) -> Any:
        def run(x: Array) -> Array:
            return lax.scan(lambda x, _: (x + neighbor(jnp.sin(x)), None), x, None, length=5)[0]

        return mapped(run, (array(2048, 1024, spec=P("d")),), P("d"))

    def gathered(x: Array) -> Array:
        return lax.dynamic_index_in_dim(lax.all_gather(x, "d"), (lax.axis_index("d") + 1) % 8, 0, keepdims=False)

    return ring(gathered), ring(lambda x: lax.ppermute(x, "d", [(i, (i - 1) % 8) for i in range(8)]))


@pair("wide-collective", 6 * 7 * 512 * KIB // 2, "in 6 layers 7 x f32[128,1024], 512 KiB; bf16 sends half of it")
def _() -> Any:  # Sharded f32 weights are gathered, and the gathered weights converted.
    def layers(gather: Callable[[Array], Array]) -> Any:
        def run(weights: Array, x: Array) -> Array:
            return lax.scan(lambda x, w: (jnp.tanh(x @ gather(w)), None), x, weights)[0]

        return mapped(run, (array(6, 1024, 1024, spec=P(None, "d")), array(512, 1024, spec=P("d"), dtype=bf16)), P("d"))

    return (
        layers(lambda w: lax.all_gather(w, "d", tiled=True).astype(bf16)),
        layers(lambda w: lax.all_gather(w.astype(bf16), "d", tiled=True)),
    )


@pair("wide-collective.all-to-all", 7 * 4 * MIB // 8 // 2, "7/8 of f32[1024,1024], 4 MiB; bf16 sends half of it")
def _() -> Any:  # CPU cuts the operand into an array for each device.
    def exchange(before: Any, behind: Any) -> Any:
        def run(x: Array) -> Array:
            return lax.all_to_all(jnp.sin(x).astype(before), "d", 0, 1, tiled=True).astype(behind)

        return mapped(run, (array(8192, 1024, spec=P("d")),), P("d"))

    return exchange(f32, bf16), exchange(bf16, bf16)


@pair("constant-collective", 7 * 2 * MIB, "7 x f32[256,2048], 2 MiB: each device knows the table of positions")
def _() -> Any:  # A table of positions is sharded and then needed whole.
    def step(spec: PartitionSpec) -> Any:
        def run(x: Array) -> Array:
            angles = lax.broadcasted_iota(f32, (2048, 2048), 0) * (1 + lax.broadcasted_iota(f32, (2048, 2048), 1))
            table = lax.with_sharding_constraint(jnp.sin(angles), NamedSharding(LINE, spec))
            return x + lax.with_sharding_constraint(table, NamedSharding(LINE, P()))

        return lowered(run, array(2048, 2048), out_shardings=NamedSharding(LINE, P()))

    return step(P("d")), step(P())


@pair("accumulated-all-reduce", 7 * 2 * 7 * MIB, "2 gradients of 4 MiB send 2 x 7/8 of that, 8 times; once is enough")
def _() -> Any:  # The mean over devices of each microbatch is added up, with a factor.
    def loss(weights: Any, x: Array) -> Array:
        return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - x) ** 2)

    def step(of_microbatch: Callable[[Array], Array], of_sum: Callable[[Array], Array]) -> Any:
        def run(weights: Any, batches: Array) -> Any:
            def add(total: Any, x: Array) -> Any:
                return jax.tree.map(lambda t, g: t + of_microbatch(g), total, jax.grad(loss)(weights, x)), None

            total, _ = lax.scan(add, jax.tree.map(jnp.zeros_like, weights), batches)
            return jax.tree.map(lambda w, g: w - 0.1 * of_sum(g), weights, total)

        weights = {name: array(1024, 1024) for name in ("in", "out")}
        return mapped(run, (weights, array(8, 512, 1024, spec=P(None, "d"))), P())

    return step(lambda g: lax.pmean(g, "d") / 8, lambda g: g), step(lambda g: g / 8, lambda g: lax.pmean(g, "d"))


@pair("accumulated-all-reduce.layers", (8 - 1) * 4 * 7 * MIB // 4, "4 gradients of 1 MiB send 2 x 7/8 of that, 8 times")
def _() -> Any:  # The backward pass over scanned layers sums over devices and stacks; microbatches add up the stacks.
    def loss(weights: Array, x: Array) -> Array:
        return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0] ** 2)

    def run(weights: Array, batches: Array) -> Array:
        def add(total: Array, x: Array) -> Any:
            return total + jax.grad(loss)(weights, x), None

        return lax.scan(add, jnp.zeros_like(weights), batches)[0]

    weights, batches = array(4, 512, 512), array(8, 512, 512, spec=P(None, "d"))
    fault = lowered(run, weights, batches, out_shardings=NamedSharding(LINE, WHOLE))
    return fault, mapped(lambda weights, batches: lax.pmean(run(weights, batches), "d"), (weights, batches), P())


@pair("repeated-collective", 5 * 2 * 7 * MIB, "2 of 3 sums of f32[1024,1024] send 2 x 7/8 of 4 MiB in 5 iterations", off="cse")
def _() -> Any:
    def loop(is_fault: bool) -> Any:
        def body(x: Array, _: None) -> Any:
            y = jnp.sin(x)
            total = lax.psum(y, "d")
            again = (lax.psum(y, "d"), lax.psum(y, "d")) if is_fault else (total, total)
            return x + total * jnp.cos(again[0]) + jnp.tanh(again[1]), None

        return mapped(lambda x: lax.scan(body, x, None, length=5)[0], (array(8192, 1024, spec=P("d")),), P("d"))

    return loop(True), loop(False)


@pair("small-collectives", 12 * 7 * 128 * KIB, "12 gathers of f32[128,256], 128 KiB, over 8")
def _() -> Any:  # Small sharded weights are gathered one by one, and one instruction reads them all.
    def step(gather: Callable[[Any], Any]) -> Any:
        def run(weights: list[Array], x: Array) -> Array:
            return sum(jnp.sin(w) * x for w in gather(weights))

        return mapped(run, ([array(1024, 256, spec=P("d")) for _ in range(12)], array(1024, 256)), P())

    def each(weights: list[Array]) -> list[Array]:
        return [lax.all_gather(w, "d", tiled=True) for w in weights]

    def joined(weights: list[Array]) -> list[Array]:
        whole = lax.all_gather(jnp.stack(weights, 1), "d", tiled=True)
        return [whole[:, i] for i in range(12)]

    return step(each), step(joined)


@pair(
    "small-collectives.sums",
    16 * 2 * 7 * 256 * KIB // 8,
    "16 gradients of f32[256,256], 256 KiB, send 2 x 7/8 of it",
    off="cpu-all-reduce-combiner",
)
def _() -> Any:
    def loss(weights: list[Array], x: Array) -> Array:
        for w in weights:
            x = jnp.tanh(x @ w)
        return jnp.mean(x**2)

    def step(total: Callable[[Any], Any]) -> Any:
        def run(weights: list[Array], x: Array) -> Any:
            return total(jax.grad(loss)(weights, x))

        return mapped(run, ([array(256, 256) for _ in range(16)], array(1024, 256, spec=P("d"))), P())

    return (
        step(lambda gradients: [lax.psum(g, "d") for g in gradients]),
        step(lambda gradients: lax.psum(jnp.stack(gradients), "d")),
    )


@pair("invariant-collective", 11 * 3 * 512 * KIB, "12 gathers of bf16[256,1024], 512 KiB, over 4; the first is enough", "tpu")
def _() -> Any:  # A loop gathers the same weights in each iteration; TPU leaves the gather in the loop.
    def step(is_fault: bool) -> Any:
        def run(w: Array, batches: Array) -> Array:
            before = lax.all_gather(w, "b", tiled=True)

            def body(total: Array, x: Array) -> Any:
                whole = lax.all_gather(w, "b", tiled=True) if is_fault else before
                return total + jnp.tanh(x @ whole).astype(f32), None

            return lax.scan(body, jnp.zeros((256, 1024)), batches)[0]

        w = array(1024, 1024, spec=P("b"), dtype=bf16, mesh=GRID)
        return mapped(run, (w, array(12, 256, 1024, dtype=bf16, mesh=GRID)), P(), GRID)

    return step(True), step(False)


@pair(
    "invariant-collective.sum",
    9 * 2 * 7 * 2 * MIB // 8,
    "10 sums of f32[512,1024], 2 MiB, send 2 x 7/8 of it; the first is enough",
    off="while-loop-invariant-code-motion",
)
def _() -> Any:
    def step(is_fault: bool) -> Any:
        def run(x: Array, w: Array, factors: Array) -> Array:
            before = lax.psum(x @ w, "d")

            def body(c: Array, y: Array) -> Any:
                return c * jnp.tanh((lax.psum(x @ w, "d") if is_fault else before) * y), None

            return lax.scan(body, jnp.ones((512, 1024)), factors)[0]

        return mapped(run, (array(512, 2048, spec=P(None, "d")), array(2048, 1024, spec=P("d")), array(10, 1024)), P())

    return step(True), step(False)


@pair("involuntary-rematerialization", 7 * MIB, "the array is made whole: a gather of f32[256,1024], 1 MiB, over 8")
def _() -> Any:  # The partitioner knows no way from 8 rows to 2 columns. Rows over one axis it knows.
    def step(spec: PartitionSpec) -> Any:
        def run(x: Array, w: Array) -> Array:
            rows = lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(GRID, P(("a", "b"))))
            return jnp.sin(lax.with_sharding_constraint(rows, NamedSharding(GRID, spec))) * 2

        return lowered(run, array(2048, 1024, spec=P("a"), mesh=GRID), array(1024, 1024, mesh=GRID))

    return step(P(None, "a")), step(P("a"))


# -- memory -------------------------------------------------------------------------------------------------------------------


@pair("replicated-weight", 7 * 64 * MIB // 8, "f32[4096,4096], 64 MiB; the others are divided by 8", "cpu gpu")
def _() -> Any:
    def loss(weights: Any, x: Array) -> Array:
        return jnp.mean((jnp.tanh(jnp.tanh(x @ weights["in"]) @ weights["mid"]) @ weights["out"] - x) ** 2)

    def step(spec: PartitionSpec) -> Any:
        weights = {
            "in": array(2048, 4096, spec=P("a", "b"), mesh=GRID),
            "mid": array(4096, 4096, spec=spec, mesh=GRID),
            "out": array(4096, 2048, spec=P("b", "a"), mesh=GRID),
        }

        def run(weights: Any, momentum: Any, x: Array) -> Any:
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, jax.grad(loss)(weights, x))
            return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum), momentum

        shardings = jax.tree.map(lambda leaf: leaf.sharding, weights)
        x = array(256, 2048, spec=P("a"), mesh=GRID)
        return lowered(run, weights, weights, x, out_shardings=(shardings, shardings), donate_argnums=(0, 1))

    return step(P()), step(P("a", "b"))


@pair("unsharded-batch", 34 * MIB * 2 * 7 // 8, "1,024 rows: 3 layers of 1024 and 512 columns and 4096 logits: 12 + 6 + 16 MiB")
def _() -> Any:  # The rows of an embedding that is sharded by columns are those of all examples.
    def step(constrained: Callable[[Array], Array]) -> Any:
        def loss(weights: Any, embedding: Array, tokens: Array) -> Array:
            x = constrained(embedding[tokens])
            for up, down in weights:
                x = x + jax.nn.relu(x @ up) @ down
            return jnp.mean((x @ embedding.T) ** 2)

        def run(weights: Any, embedding: Array, tokens: Array) -> Any:
            gradients = jax.grad(loss, (0, 1))(weights, embedding, tokens)
            return jax.tree.map(lambda w, g: w - 0.1 * g, (weights, embedding), gradients)

        weights = [(array(512, 1024, spec=P("d")), array(1024, 512, spec=P("d")))] * 3
        embedding = array(4096, 512, spec=P(None, "d"))
        shardings = jax.tree.map(lambda leaf: leaf.sharding, (weights, embedding))
        return lowered(run, weights, embedding, array(64, 16, spec=P("d"), dtype=jnp.int32), out_shardings=shardings)

    return step(lambda x: x), step(lambda x: lax.with_sharding_constraint(x, NamedSharding(LINE, P("d"))))


@pair("replicated-weight.gradients", 3 * 64 * MIB // 4, "f32[4096,4096], 64 MiB; the others are divided by 4")
def _() -> Any:  # The gradients are returned, and the caller updates the weights.
    def loss(weights: Any, x: Array) -> Array:
        return jnp.mean((jnp.tanh(jnp.tanh(x @ weights["in"]) @ weights["mid"]) @ weights["out"] - x) ** 2)

    def step(spec: PartitionSpec) -> Any:
        weights = {
            "in": array(2048, 4096, spec=P(None, "b"), mesh=GRID),
            "mid": array(4096, 4096, spec=spec, mesh=GRID),
            "out": array(4096, 2048, spec=P("b"), mesh=GRID),
        }
        shardings = jax.tree.map(lambda leaf: leaf.sharding, weights)
        x = array(256, 2048, spec=P("a"), mesh=GRID)
        return lowered(jax.value_and_grad(loss), weights, x, out_shardings=(None, shardings))

    return step(P()), step(P(None, "b"))


@pair("missing-recomputation", (4 + 3) * 8 * MIB, "f32[2048,1024], 8 MiB: 4 products, and the 3 sines between the layers")
def _() -> Any:  # CPU merges recomputation with the forward pass, but not in the body of a scan.
    def layer(x: Array, w: Array) -> Array:
        return jnp.sin(x @ w)

    def unrolled(weights: list[Array], x: Array) -> Array:
        for w in weights:
            x = jax.checkpoint(layer)(x, w)
        return jnp.mean(x**2)

    def scanned(weights: Array, x: Array) -> Array:
        return jnp.mean(lax.scan(jax.checkpoint(lambda x, w: (layer(x, w), None)), x, weights)[0] ** 2)

    def step(loss: Callable[..., Any], weights: Any) -> Any:
        def run(weights: Any, x: Array) -> Any:
            value, gradients = jax.value_and_grad(loss)(weights, x)
            return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

        return lowered(run, weights, array(8 * 2048, 1024, spec=P("d")))

    return step(unrolled, [array(1024, 1024) for _ in range(4)]), step(scanned, array(4, 1024, 1024))


@pair("missing-offload", 4 * MIB, "momentum f32[8192,1024], 32 MiB over 8 devices, is put into host memory; CPU has none")
def _() -> Any:  # The twin leaves the momentum on the device.
    def step(memory: str) -> Any:
        host, device = (NamedSharding(LINE, P("d"), memory_kind=kind) for kind in (memory, "device"))

        def run(w: Array, momentum: Array, g: Array) -> Any:
            momentum = 0.9 * jax.device_put(momentum, device) + g
            return w - 0.1 * momentum, jax.device_put(momentum, host)

        w = array(8192, 1024, spec=P("d"))
        momentum = array(8192, 1024, spec=P("d"), memory=memory)
        return lowered(run, w, momentum, w, out_shardings=(device, host), donate_argnums=(0, 1))

    return step("pinned_host"), step("device")


# -- loops --------------------------------------------------------------------------------------------------------------------


@pair("copied-loop-carry", 10 * 3 * 4 * MIB, "3 copies of f32[1024,1024], 4 MiB, in 10 iterations")
def _() -> Any:  # Two arrays change places. Two iterations in one body need no exchange.
    def swapped(_: Any, state: Any) -> Any:
        x, y = state
        return y, x * 0.5 + jnp.roll(y, 1, 0)

    def in_place(_: Any, state: Any) -> Any:
        x, y = state
        x = x * 0.5 + jnp.roll(y, 1, 0)
        return x, y * 0.5 + jnp.roll(x, 1, 0)

    arguments = array(1024, 1024), array(1024, 1024)
    return (
        lowered(lambda x, y: lax.fori_loop(0, 10, swapped, (x, y)), *arguments, donate_argnums=(0, 1)),
        lowered(lambda x, y: lax.fori_loop(0, 5, in_place, (x, y)), *arguments, donate_argnums=(0, 1)),
    )


@pair("host-callback", 4 * MIB, "f32[512,512], 1 MiB, is printed in each of 4 iterations")
def _() -> Any:  # A print that was forgotten in a scan over layers. The twin returns the sums.
    def step(prints: bool) -> Any:
        def run(weights: Array, x: Array) -> Any:
            def layer(x: Array, w: Array) -> Any:
                x = jnp.tanh(x @ w)
                if prints:
                    jax.debug.print("{x}", x=x)
                return x, jnp.sum(x)

            x, sums = lax.scan(layer, x, weights)
            return x, sums[None]

        return mapped(run, (array(4, 512, 512), array(8 * 512, 512, spec=P("d"))), (P("d"), P("d")))

    return step(True), step(False)


@pair("copied-update-slice", 16 * 2 * 4 * MIB, "2 copies of f32[1024,1024], 4 MiB, in 16 iterations", "cpu gpu")
def _() -> Any:  # The buffer before the update is read behind it. The twin reads the buffer behind the update.
    def loop(is_fault: bool) -> Any:
        def body(buffer: Array, row: Any) -> Any:
            i, x = row
            new = lax.dynamic_update_slice(buffer, x[None], (i, 0))
            return new, ((buffer if is_fault else new) * new).sum(1)

        def run(buffer: Array, rows: Array) -> Any:
            return lax.scan(body, buffer, (jnp.arange(16), rows))

        return lowered(run, array(1024, 1024), array(16, 1024), donate_argnums=0)

    return loop(True), loop(False)


# -- numerics -----------------------------------------------------------------------------------------------------------------


@pair("widened-matmul", 2 * 1024 * 1024 * 8192, "2 x 1024 x 1024 x 8192 FLOPs in f32 of two bf16 operands", "cpu gpu")
def _() -> Any:  # Logits in f32. The product can add up in f32 without wide operands.
    def wide(x: Array, w: Array) -> Array:
        return jax.nn.log_softmax(x.astype(f32) @ w.astype(f32).T)

    def narrow(x: Array, w: Array) -> Array:
        return jax.nn.log_softmax(jnp.einsum("td,vd->tv", x, w, preferred_element_type=f32))

    arguments = array(8192, 1024, spec=P("d"), dtype=bf16), array(8192, 1024, dtype=bf16)
    return lowered(wide, *arguments), lowered(narrow, *arguments)


@pair(
    "double-precision",
    64 * (2 * 128 * 1024 - 1) + 64 * 2,
    "64 x 128 x 1024 conversions and one addition less a batch; in each batch 1 addition of devices, and 1 to the total",
)
def _() -> Any:  # A metric in f64: needs `jax_enable_x64`, and is written when this pair is asked for alone.
    def total(dtype: Any) -> Any:
        def run(batches: Array) -> Array:
            return lax.scan(lambda c, x: (c + jnp.sum(x.astype(dtype)), None), jnp.zeros((), dtype), batches)[0]

        return lowered(run, array(64, 1024, 1024, spec=P(None, "d")))

    return total(f64), total(f32)


# -- texts --------------------------------------------------------------------------------------------------------------------


@contextmanager
def captured_errors() -> Iterator[list[str]]:
    """Collect the lines that the compiler writes to standard error."""
    lines: list[str] = []
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode().splitlines(keepends=True)


def with_log(program: Any, off: str) -> str:
    """Return the optimized text behind the lines of the partitioner's log, with another time and thread."""
    with captured_errors() as lines:
        text: str = program.compile(compiler_options={"xla_disable_hlo_passes": off} if off else None).as_text()
    log = (line for line in lines if "rematerialization" in line)
    return "".join(re.sub(r"^W\d+ [\d:.]+ +\d+", "W0101 00:00:00.000000 1", line) for line in log) + text


def write(name: str, text: str) -> None:
    path = OUT / f"{name}.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.replace(str(HERE), "/train").encode(), preset=9))
    sys.stdout.write(f"{path.stat().st_size:6} {name}\n")


def main(names: list[str]) -> None:
    """Write the pairs of these names, all without names; of an older jax the faults alone, to compare them."""
    path = OUT / "expected.json"
    expected = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for each in PAIRS:
        is_wanted = each.name in names if names else each.name != "double-precision"
        if TARGET not in each.targets or not is_wanted:
            continue
        kinds = ("fault", "mended") if jax.__version__ == NEWEST else ("fault",)
        for kind, program in zip(kinds, each.make(), strict=False):
            write(f"{each.name}.{TARGET}.{kind}.hlo", with_log(program, each.off))
            if each.name == "missing-offload":
                write(f"{each.name}.{TARGET}.{kind}.before.hlo", program.compiler_ir("hlo").as_hlo_text())
        made = f"compiled without {each.off}" if each.off else "compiled"
        expected[f"{each.name}.{TARGET}"] = {"stake": each.stake, "working": each.working, "made": made}
    if jax.__version__ == NEWEST:
        path.write_text(json.dumps(dict(sorted(expected.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[2:])
