"""Record programs on a GPU: `python -m benchmarks.on_gpu OUT.zip [--small] [--seconds 480]`.

It needs JAX alone. The archive holds the text of each compiled program and a profile of some of its runs, and why a program did
not run. `python -m benchmarks.estimates_on_gpu OUT.zip` compares them with the estimates.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import SingleDeviceSharding

RUNS, WARM_RUNS = 5, 2
FAILED = "failed.txt"


class Sizes(NamedTuple):
    """Sizes of the programs: sides of products, attention, layers of an MLP, images and repeated layers."""

    side: int
    attention: tuple[int, int, int, int]
    width: int
    batch: int
    images: int
    layers: int


FULL = Sizes(8192, (4, 4096, 16, 128), 8192, 4096, 128, 16)
SMALL = Sizes(256, (1, 128, 2, 64), 128, 64, 2, 3)

Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""


def _product(dtype: Any) -> Callable[[Sizes], Program]:  # noqa: ANN401 - types of JAX are no classes
    def make(sizes: Sizes) -> Program:
        result = jnp.bfloat16 if dtype == jnp.float8_e4m3fn else dtype
        matrix = jnp.ones((sizes.side, sizes.side), jnp.float32).astype(dtype)
        return lambda a, b: jnp.matmul(a, b, preferred_element_type=result), (matrix, matrix)

    return make


def _attention(sizes: Sizes) -> Program:
    on_gpu = jax.default_backend() == "gpu"
    heads = jnp.ones(sizes.attention, jnp.bfloat16)

    def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:  # noqa: ANN401 - as of JAX
        return jax.nn.dot_product_attention(query, key, value, is_causal=True, implementation="cudnn" if on_gpu else "xla")

    return attention, (heads, heads, heads)


def _mlp_step(sizes: Sizes) -> Program:
    def loss(weights: tuple[jax.Array, jax.Array], batch: jax.Array) -> jax.Array:
        hidden = jax.nn.gelu(batch @ weights[0])
        return jnp.mean(jnp.square(hidden @ weights[1] - batch).astype(jnp.float32))

    def step(weights: tuple[jax.Array, jax.Array], batch: jax.Array) -> tuple[jax.Array, ...]:
        gradients = jax.grad(loss)(weights, batch)
        return tuple(weight - 0.01 * gradient for weight, gradient in zip(weights, gradients, strict=True))

    wide = jnp.ones((sizes.width, 4 * sizes.width), jnp.bfloat16)
    return step, ((wide, wide.T), jnp.ones((sizes.batch, sizes.width), jnp.bfloat16))


def _convolution_step(sizes: Sizes) -> Program:
    def loss(filters: jax.Array, images: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        maps = lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=layout)
        return jnp.mean(jnp.square(jax.nn.relu(maps)).astype(jnp.float32))

    def step(filters: jax.Array, images: jax.Array) -> Any:  # noqa: ANN401 - as of JAX
        return filters - 0.01 * jax.grad(loss)(filters, images)

    return step, (jnp.ones((3, 3, 128, 128), jnp.bfloat16), jnp.ones((sizes.images, 56, 56, 128), jnp.bfloat16))


def _scan(sizes: Sizes) -> Program:
    def layers(batch: jax.Array, weights: jax.Array) -> Any:  # noqa: ANN401 - as of JAX
        return lax.scan(lambda hidden, weight: (jnp.tanh(hidden @ weight), None), batch, weights)[0]

    weights = jnp.ones((sizes.layers, sizes.width // 2, sizes.width // 2), jnp.bfloat16)
    return layers, (jnp.ones((sizes.batch, sizes.width // 2), jnp.bfloat16), weights)


def _host_copy(sizes: Sizes) -> Program:
    device = jax.devices()[0]
    of_host, of_device = (SingleDeviceSharding(device, memory_kind=kind) for kind in ("pinned_host", "device"))

    def fetch(array: jax.Array, matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.device_put(array, of_device) + 1, matrix @ matrix

    array = jax.device_put(jnp.ones((sizes.side, sizes.side), jnp.float32), of_host)
    return fetch, (array, jnp.ones((sizes.side // 2, sizes.side // 2), jnp.bfloat16))


PROGRAMS: Mapping[str, Callable[[Sizes], Program]] = {
    "product_bf16": _product(jnp.bfloat16),
    "product_f8": _product(jnp.float8_e4m3fn),
    "product_f32": _product(jnp.float32),
    "product_f64": _product(jnp.float64),
    "attention": _attention,
    "mlp_step": _mlp_step,
    "convolution_step": _convolution_step,
    "scan": _scan,
    "host_copy": _host_copy,
}


def record(program: Program, folder: Path) -> tuple[str, bytes]:
    """Compile and run a program; return its text and the profile of its runs."""
    function, arguments = program
    compiled = jax.jit(function).lower(*arguments).compile()
    for _ in range(WARM_RUNS):
        _run(compiled, arguments)
    with jax.profiler.trace(str(folder)):
        for _ in range(RUNS):
            _run(compiled, arguments)
    (profile,) = folder.rglob("*.xplane.pb")
    return str(compiled.as_text()), profile.read_bytes()


def _run(compiled: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    for array in jax.tree.leaves(compiled(*arguments)):
        array.block_until_ready()


def record_all(sizes: Sizes, seconds: float) -> Iterator[tuple[str, str | bytes]]:
    """Yield the files of all programs by name; the last one says which failed. None begins after `seconds`."""
    start, failed = time.monotonic(), []
    for name, make in PROGRAMS.items():
        if time.monotonic() - start > seconds:
            failed.append(f"{name}: no time left")
            continue
        try:
            with tempfile.TemporaryDirectory() as folder, jax.enable_x64(name.endswith("f64")):
                text, profile = record(make(sizes), Path(folder))
        except Exception as error:
            failed.append(f"{name}: {error!r}")
            continue
        yield f"{name}.hlo", text
        yield f"{name}.xplane.pb", profile
    yield FAILED, "".join(f"{line}\n" for line in failed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Record programs on a GPU")
    parser.add_argument("archive", type=Path, metavar="OUT.zip")
    parser.add_argument("--small", action="store_true", help="sizes for a trial on a CPU")
    parser.add_argument("--seconds", type=float, default=420, help="begin no program after so many seconds (420)")
    options = parser.parse_args()
    with zipfile.ZipFile(options.archive, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in record_all(SMALL if options.small else FULL, options.seconds):
            archive.writestr(name, content)
            print(name, content if name == FAILED else len(content), flush=True)


if __name__ == "__main__":
    main()
