"""Makes `shardings`: dumps of steps whose parameters are sharded in many ways, by jax 0.12, whose optimized texts print none.

In `expected.json` jax says for each parameter the part of one device and the number of devices that hold the same part.

`python make_shardings.py PARTITIONER` with `shardy` or `gspmd`, in the environment of `make_newest.py`. Nothing is run.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STAGES = (".before_optimizations.txt", ".cpu_after_optimizations.txt")


def step(state: Any, batch: Any) -> Any:
    """Return new weights and momenta of a product of two weights."""
    jax: Any = import_module("jax")
    weights, momenta = state

    def loss(weights: Any) -> Any:
        return jax.numpy.sum(jax.numpy.tanh(batch @ weights["whole"]) @ weights["split"])

    momenta = jax.tree.map(lambda old, new: 0.9 * old + new, momenta, jax.grad(loss)(weights))
    return jax.tree.map(lambda weight, momentum: weight - 0.1 * momentum, weights, momenta), momenta


def mixed(one: Any, two: Any, line: Any, free: Any, whole: Any, middle: Any) -> Any:
    return one @ two, line * 2, free + one, whole + 1, middle - 1


def programs(jax: Any) -> dict[str, tuple[Any, list[Any]]]:
    """Return the programs with their arguments: arrays over a mesh of 4 x 2 and one of 2 x 2 x 2 devices in another order."""
    sharding: Any = import_module("jax.sharding")
    devices = import_module("numpy").array(jax.devices())

    def arrays(mesh: Any, *arguments: tuple[tuple[int, ...], Any]) -> list[Any]:
        types = (sharding.AxisType.Auto,) * len(mesh)
        named = sharding.Mesh(devices.reshape(tuple(mesh.values())), tuple(mesh), axis_types=types)
        specs = [
            spec if spec is None else sharding.NamedSharding(named, sharding.PartitionSpec(*spec)) for _, spec in arguments
        ]
        shapes = (shape for shape, _ in arguments)
        return [jax.ShapeDtypeStruct(shape, "float32", sharding=spec) for shape, spec in zip(shapes, specs, strict=True)]

    split, whole, split_too, whole_too, batch = arrays(
        {"data": 4, "model": 2},
        ((4096, 2048), (None, "model")),
        ((2048, 4096), ()),
        ((4096, 2048), (None, "model")),
        ((2048, 4096), ()),
        ((64, 2048), ("data", None)),
    )
    others = arrays(
        {"a": 2, "b": 2, "c": 2},
        ((16, 8), (("a", "c"), None)),
        ((8, 16), ("b", "c")),
        ((32,), (("c", "b", "a"),)),
        ((16, 8), None),
        ((8, 8), ()),
        ((8, 8, 8), (None, "b", None)),
    )
    states = ({"split": split, "whole": whole}, {"split": split_too, "whole": whole_too})
    return {"step": (step, [states, batch]), "mixed": (mixed, others)}


def parameters(jax: Any, lowered: Any, compiled: Any) -> list[dict[str, Any]]:
    """Return part and copies of each parameter as jax has them."""
    rows = []
    shapes = [argument.shape for argument in jax.tree.leaves(lowered.in_avals)]
    for shape, sharding in zip(shapes, jax.tree.leaves(compiled.input_shardings), strict=True):
        holders = Counter(map(str, sharding.devices_indices_map(shape).values()))
        rows.append({"whole": shape, "part": sharding.shard_shape(shape), "copies": max(holders.values())})
    return rows


def main(partitioner: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 --xla_dump_to={folder}"
        jax: Any = import_module("jax")
        jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
        target = HERE / "shardings" / partitioner
        target.mkdir(parents=True, exist_ok=True)
        expected = {}
        for name, (function, arguments) in programs(jax).items():
            donated = (0,) if name == "step" else ()
            lowered = jax.jit(function, donate_argnums=donated, keep_unused=True).lower(*arguments)
            expected[name] = parameters(jax, lowered, lowered.compile())
            (target / f"{name}.lowered.hlo.xz").write_bytes(lzma.compress(lowered.as_text(dialect="hlo").encode()))
            (target / f"{name}.lowered.mlir").write_text(lowered.as_text(), encoding="utf-8")
            for stage in STAGES:
                (found,) = Path(folder).glob(f"module_*.jit_{name}{stage}")
                text = found.read_text(encoding="utf-8").replace(str(HERE), "/train")
                (target / f"module_{len(expected):04}.jit_{name}{stage}.xz").write_bytes(lzma.compress(text.encode()))
        (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
