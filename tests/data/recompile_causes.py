"""Compile one tiny function for sixteen causes, and print JAX's own messages about each call as JSON.

    python recompile_causes.py DIRECTORY

XLA dumps to the directory. Each call is a name, the number of compiles that `jax_log_compiles` reports, and the reasons of
JAX_EXPLAIN_CACHE_MISSES=1, which JAX gives for misses of its tracing cache only.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def compile_all(directory: str) -> list[tuple[str, int, list[str]]]:
    """Return the calls in order."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={directory} --xla_force_host_platform_device_count=4"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_EXPLAIN_CACHE_MISSES"] = "1"
    jax: Any = import_module("jax")
    np: Any = import_module("numpy")
    sharding: Any = import_module("jax.sharding")
    jax.config.update("jax_log_compiles", True)
    calls: list[tuple[str, int, list[str]]] = []

    class Messages(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            name, compiles, reasons = calls[-1]
            compiles += text.startswith("Finished XLA compilation of jit(f)")
            reasons += [text.partition("\n")[2]] if text.startswith("TRACING CACHE MISS") else []
            calls[-1] = name, compiles, reasons

    logging.getLogger("jax").addHandler(Messages())
    logging.getLogger("jax").propagate = False

    def make(factor: float = 2.0, *, with_sine: bool = False) -> Callable[..., Any]:
        def f(x: Any, y: Any, more: Any = None) -> Any:
            result = (x @ x.T) * factor + y
            return jax.numpy.sin(result) if with_sine else result if more is None else result + more

        return f

    def call(name: str, function: Callable[..., Any], *arguments: Any) -> None:
        calls.append((name, 0, []))
        jax.block_until_ready(function(*arguments))

    x, y, devices = np.ones((4, 8), np.float32), np.float32(1), jax.devices()
    mesh = sharding.Mesh(np.array(devices), ("d",))
    f = make()
    jitted = jax.jit(f)
    call("first", jitted, x, y)
    call("shape", jitted, x[:2], y)
    square = np.ones((4, 4), np.float32)
    call("shape", jitted, x, square)
    call("dtype", jitted, x.astype(np.int32), y)
    call("weak type", jitted, x, 1.0)
    call("made anew", jax.jit(make()), x, y)
    call("constant", jax.jit(make(3.0)), x, y)
    call("program", jax.jit(make(with_sine=True)), x, y)
    call("donation", jax.jit(f, donate_argnums=1), x, square)
    call("committed", jitted, jax.device_put(x, devices[0]), y)
    call("devices", jitted, jax.device_put(x, devices[1]), y)
    call("sharding", jitted, jax.device_put(x, sharding.NamedSharding(mesh, sharding.PartitionSpec("d"))), y)
    call("arguments", jitted, x, y, y)
    call("flag", jax.jit(f, compiler_options={"xla_cpu_enable_fast_math": True}), x, y)
    with jax.default_matmul_precision("highest"):
        call("precision", jitted, x, y)
    jax.config.update("jax_memory_fitting_level", "O1")
    call("option", jax.jit(make()), x, y)
    return calls


if __name__ == "__main__":
    json.dump(compile_all(sys.argv[1]), sys.stdout)
