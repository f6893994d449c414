"""Makes the programs of `memory/` with what XLA says of their memory: `python make_memory.py cpu|tpu|gpu`, under jax 0.10.2.

One network is trained in ways that differ in what has to be kept: with checkpointing or without, as a loop or unrolled, with
its state donated or not, in bfloat16 or float32, with activations kept on the host. Nothing is run. `expected.json` gets the
figures of `compiled.memory_analysis()` by file. The environments are those of README.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "memory"
LAYERS, WIDTH, BATCH = 4, 512, 2048
WAYS: dict[str, dict[str, Any]] = {
    "scan": {},
    "scan_remat": {"remat": True},
    "scan_bf16": {"dtype": "bfloat16"},
    "scan_not_donated": {"donate": False},
    "unrolled": {"scan": False},
    "unrolled_remat": {"scan": False, "remat": True},
    "scan_offload": {"offload": True},
}


def step_of(jax: Any, *, scan: bool = True, remat: bool = False, offload: bool = False) -> Any:
    """One step of gradient descent: weights and inputs -> new weights, loss."""
    jnp: Any = import_module("jax.numpy")
    checkpoint_name = import_module("jax.ad_checkpoint").checkpoint_name
    policy = None
    if offload:
        policy = jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["kept"],
            offload_src="device",
            offload_dst="pinned_host",
        )

    def layer(x: Any, weights: Any) -> tuple[Any, None]:
        inner, outer = weights
        x = checkpoint_name(x, "kept")
        return x + jnp.tanh(x @ inner) @ outer, None

    one = jax.checkpoint(layer, policy=policy) if remat or offload else layer

    def loss(weights: Any, x: Any) -> Any:
        if scan:
            x, _ = jax.lax.scan(one, x, weights)
        else:
            for i in range(LAYERS):
                x, _ = one(x, jax.tree.map(lambda one, i=i: one[i], weights))
        return (x.astype("float32") ** 2).mean()

    def step(weights: Any, x: Any) -> tuple[Any, Any]:
        found, gradients = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - (0.1 * g).astype(w.dtype), weights, gradients), found

    return step


def compiled(jax: Any, device: Any, *, dtype: str = "float32", donate: bool = True, **way: Any) -> Any:
    jnp: Any = import_module("jax.numpy")
    array = partial(jax.ShapeDtypeStruct, dtype=getattr(jnp, dtype), sharding=jax.sharding.SingleDeviceSharding(device))
    weights = array((LAYERS, WIDTH, 4 * WIDTH)), array((LAYERS, 4 * WIDTH, WIDTH))
    step = step_of(jax, **way)
    return jax.jit(step, donate_argnums=(0,) if donate else ()).lower(weights, array((BATCH, WIDTH))).compile()


def device_of(target: str, jax: Any) -> Any:
    if target == "cpu":
        return jax.devices()[0]
    topologies: Any = import_module("jax.experimental.topologies")
    if target == "tpu":
        return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0]
    h100 = import_module("make_dumps").H100
    return topologies.get_topology_desc("", "cuda", target_config=h100, topology="1x1x1").devices[0]


def without_metadata(text: str) -> str:
    """Return the text without metadata, which is half of it."""
    header, _, computations = re.sub(r", metadata=\{[^}]*\}", "", text).partition("\n\nFileNames\n")
    return f"{header}\n\n{computations[re.search(r'^(%|ENTRY)', computations, re.M).start() :]}" if computations else header


def main(target: str) -> None:
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0")
    if target == "gpu":
        os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
    jax: Any = import_module("jax")
    device = device_of(target, jax)
    path = FOLDER / "expected.json"
    expected = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    FOLDER.mkdir(exist_ok=True)
    for name, way in WAYS.items():
        if name == "scan_offload" and target != "tpu":
            continue
        program = compiled(jax, device, **way)
        (FOLDER / f"{target}_{name}.hlo").write_text(without_metadata(program.as_text()), encoding="utf-8")
        found = program.memory_analysis()
        expected[f"{target}_{name}"] = {
            figure: getattr(found, f"{figure}_in_bytes")
            for figure in ("argument_size", "output_size", "alias_size", "temp_size", "peak_memory", "host_temp_size")
        }
    path.write_text(json.dumps(dict(sorted(expected.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
