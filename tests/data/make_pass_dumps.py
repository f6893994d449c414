"""Makes `pass_dumps`: the files of `--xla_dump_hlo_pass_re=.*` for a training step on 8 host devices, one a pass.

In `expected.json` XLA's own parser says what each file holds.

`python make_pass_dumps.py` in the environment `newest` of README.md. Nothing is run, only compiled.
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
TARGET = HERE / "pass_dumps"
TEXTS = "module_*jit_step*.txt"
LEFT_OUT = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")


def compile_step(folder: str) -> None:
    """Compile a scanned MLP with weights divided over two axes.

    The weights are gathered in the loop, and gradients reduced behind it.
    """
    passes = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_module_re=jit_step"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 {passes}"
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
    sharding: Any = import_module("jax.sharding")
    mesh = sharding.Mesh(import_module("numpy").array(jax.devices()).reshape(4, 2), ("data", "model"))

    def loss(weights: Any, batch: Any) -> Any:
        def layer(hidden: Any, weight: Any) -> Any:
            return jnp.tanh(hidden @ weight), None

        hidden, _ = jax.lax.scan(layer, batch, weights["layers"])
        return jnp.mean((hidden @ weights["head"] + weights["bias"]) ** 2)

    def step(weights: Any, batch: Any) -> Any:
        gradients = jax.grad(loss)(weights, batch)
        return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients)

    def array(shape: tuple[int, ...], *axes: str | None) -> Any:
        spec = sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=spec)

    weights = {"layers": array((3, 64, 64), None, "data", "model"), "head": array((64, 32)), "bias": array((32,))}
    jax.jit(step, donate_argnums=0).lower(weights, array((64, 64), "data", None)).compile()


def said_by_xla(text: str) -> dict[str, int]:
    """How many instructions of each opcode a text holds."""
    module = import_module("jaxlib._hlo").hlo_module_from_text(text)
    opcodes = [str(one.opcode) for computation in module.computations() for one in computation.instructions()]
    return dict(sorted(Counter(opcode.rpartition(".")[2] for opcode in opcodes).items()))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compile_step(folder)
        TARGET.mkdir(exist_ok=True)
        expected = {}
        for path in sorted(Path(folder).glob(TEXTS)):
            if path.name.endswith(LEFT_OUT):
                continue
            text = path.read_text(encoding="utf-8").replace(str(HERE), "/train")
            (TARGET / f"{path.name}.xz").write_bytes(lzma.compress(text.encode(), preset=9))
            expected[f"{path.name}.xz"] = said_by_xla(text)
    (TARGET / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(expected)} files\n")


if __name__ == "__main__":
    main()
