"""Holds `watch` against the newest jax, which needs Python 3.12: `python -m tests.watching.newest`.

Each compile is one callback, the facts of its module are those of `as_text()`, and a compile takes at most `MOST_MS` longer.
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import numpy as np

import hlo_inspect

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
sharding: Any = import_module("jax.sharding")

MOST_MS = 5.0
_PASSES = ("collectives", "memory")
_COMPILES = 20


def step(weight: Any, batch: Any) -> Any:
    """Return a weight after a step of gradient descent through a loop of 3 layers."""

    def loss(weight: Any) -> Any:
        state, _ = jax.lax.scan(lambda state, _: (jnp.tanh(state @ weight), None), batch, None, length=3)
        return jnp.sum(state**2)

    return weight - 0.1 * jax.grad(loss)(weight)


def sharded_array(shape: tuple[int, ...], mesh: Any, *axes: str | None) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes)))


def programs() -> dict[str, Callable[[], Any]]:
    """Return functions that compile a program: on one device, sharded over 8, and a second time with another shape."""
    mesh = sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    sharded = sharded_array((64, 64), mesh, "data", "model")
    batch = sharded_array((32, 64), mesh, "data", None)
    plain, others = jax.ShapeDtypeStruct((64, 64), jnp.float32), jax.ShapeDtypeStruct((16, 16), jnp.float32)
    jitted = jax.jit(step, donate_argnums=0)
    return {
        "sharded": lambda: jitted.lower(sharded, batch).compile(),
        "plain": lambda: jitted.lower(plain, plain).compile(),
        "smaller": lambda: jitted.lower(others, others).compile(),
        "again": lambda: (jax.clear_caches(), jitted.lower(others, others).compile())[1],
    }


def differences() -> list[str]:
    """Return the facts that differ from those of `as_text()`."""
    stream = io.StringIO()
    with hlo_inspect.watch(stream=stream) as watch:
        texts = {name: compile_().as_text() for name, compile_ in programs().items()}
    if len(watch.reports) != len(texts) or watch.warnings:
        return [f"{len(watch.reports)} reports of {len(texts)} compiles; {watch.warnings}"]
    if "4 compiles of 1 function, 1 avoidable" not in stream.getvalue():
        return [f"the table of compiles is {stream.getvalue()}"]
    differing = []
    for (name, text), report in zip(texts.items(), watch.reports, strict=True):
        expected = hlo_inspect.inspect(text, _PASSES).facts
        differing += [f"{name}: {fact}" for fact in expected if report.facts[fact] != expected[fact]]
    return differing


def milliseconds() -> list[float]:
    """Return the CPU time of this process for each of some small compiles."""
    times = []
    for number in range(_COMPILES):
        jitted = jax.jit(lambda array, number=number: jnp.tanh(array @ array) * number)
        begin = time.process_time()
        jitted.lower(jax.ShapeDtypeStruct((16, 16), jnp.float32)).compile()
        times.append(1e3 * (time.process_time() - begin))
    return times


def main() -> None:
    """Print what differs, and by how much a compile is slowed. Exit with 1 if it is too much."""
    differing = differences()
    alone, watched = milliseconds(), []
    for _ in range(3):
        with hlo_inspect.watch(stream=io.StringIO()):
            watched += milliseconds()
        alone += milliseconds()
    slower = statistics.median(watched) - statistics.median(alone)
    differs = f"{len(differing)} facts differ; a compile takes {slower:.1f} ms longer"
    sys.stdout.write(f"watch under jax {jax.__version__}: {differs}\n")
    sys.stdout.write("".join(f"{line}\n" for line in differing))
    sys.exit(bool(differing) or slower > MOST_MS)


if __name__ == "__main__":
    main()
