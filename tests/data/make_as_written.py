"""Makes `as_written`: training steps from before XLA's collective passes, compiled for eight chips of a TPU v5e.

`python make_as_written.py` needs jax 0.12 and libtpu 0.0.52, and no TPU. It compiles each program in a process of its own and
prints what XLA's optimized text has: the reduce-scatters of a step, and the bytes that one device sends for them.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAYERS, BATCH, WIDTH, HIDDEN = 4, 64, 1024, 4096
PROGRAMS = ("fsdp", "fsdp_bf16", "zero", "fsdp_scan", "sequence", "fsdp_tensor", "data", "manual", "odd")
TPU = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


def compile_program(name: str) -> None:  # noqa: C901 - a function for each program
    """Compile one program; XLA dumps its passes."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    devices = np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)
    both = name in ("sequence", "fsdp_tensor")
    mesh = Mesh(devices.reshape((2, 4) if both else (8,)), ("d", "t") if both else ("d",))
    dtype = jnp.bfloat16 if name in ("fsdp_bf16", "sequence") else jnp.float32

    def array(shape, *spec, dtype=dtype):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

    def layers(first, second):
        return [(array((WIDTH, HIDDEN), *first), array((HIDDEN, WIDTH), *second)) for _ in range(LAYERS)]

    def constrained(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    def loss(weights, x):
        for first, second in weights:
            x = x + jax.nn.relu(x @ first) @ second
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def update(weights, gradients):
        return jax.tree.map(lambda w, g: w - 0.1 * g.astype(w.dtype), weights, gradients)

    def sgd(weights, x):
        return update(weights, jax.grad(loss)(weights, x))

    def zero(weights, momentum, x):
        gradients = jax.tree.map(lambda g: constrained(g, "d"), jax.grad(loss)(weights, x))
        momentum = jax.tree.map(lambda a, g: 0.9 * a + g, momentum, gradients)
        return update(weights, momentum), momentum

    def scanned(weights, x):
        def of_layers(weights, x):
            body = jax.checkpoint(lambda x, w: (x + jax.nn.relu(x @ w[0]) @ w[1], None))
            return jnp.mean(jax.lax.scan(body, x, weights)[0] ** 2)

        return update(weights, jax.grad(of_layers)(weights, x))

    def sequence(weights, x):
        for first, second in weights:
            hidden = constrained(jax.nn.relu(x @ first), "d", None, "t")
            x = constrained(x + hidden @ second, "d", "t", None)
        return x

    def manual(a, b, i):
        def inner(a, b, i):
            own = jax.lax.dynamic_slice_in_dim(jax.lax.psum(a, "d"), jax.lax.axis_index("d") * (WIDTH // 8), WIDTH // 8)
            return own * 2, jax.lax.dynamic_slice_in_dim(jax.lax.psum(b, "d"), i[0], WIDTH // 8) * 3

        return jax.shard_map(inner, mesh=mesh, in_specs=(P("d"), P("d"), P()), out_specs=P("d"), check_vma=False)(a, b, i)

    def odd(weight, x):
        gradient = jax.grad(lambda w, x: jnp.mean((x @ w) ** 2))(weight, x)
        return weight - 0.1 * constrained(gradient, "d")

    x = array((BATCH, WIDTH), "d")
    whole = P()
    stacked = (array((LAYERS, WIDTH, HIDDEN), None, "d"), array((LAYERS, HIDDEN, WIDTH), None, "d"))
    replicated, sharded = layers((), ()), layers(("d",), ("d",))
    of_one_axis = {
        "fsdp": (sgd, (sharded, x), [(P("d"), P("d"))] * LAYERS),
        "fsdp_bf16": (sgd, (sharded, x), [(P("d"), P("d"))] * LAYERS),
        "zero": (zero, (replicated, sharded, x), ([(whole, whole)] * LAYERS, [(P("d"), P("d"))] * LAYERS)),
        "fsdp_scan": (scanned, (stacked, x), (P(None, "d"), P(None, "d"))),
        "data": (sgd, (replicated, x), [(whole, whole)] * LAYERS),
        "manual": (manual, (array((8 * WIDTH, HIDDEN), "d"),) * 2 + (array((1,), dtype=jnp.int32),), (P("d"), P("d"))),
        "odd": (odd, (array((1004, 512)), array((BATCH, 1004), "d")), whole),
    }
    of_two_axes = {
        "sequence": lambda: (sequence, (layers((None, "t"), ("t",)), array((8, 512, WIDTH), "d", "t")), P("d", "t")),
        "fsdp_tensor": lambda: (sgd, (layers(("d", "t"), ("t", "d")), x), [(P("d", "t"), P("t", "d"))] * LAYERS),
    }
    function, arguments, outputs = of_two_axes[name]() if both else of_one_axis[name]

    def step(*arguments):
        return function(*arguments)

    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), outputs, is_leaf=lambda spec: isinstance(spec, P))
    with mesh:
        jax.jit(step, out_shardings=shardings).lower(*arguments).compile()


def main() -> None:
    (HERE / "as_written").mkdir(exist_ok=True)
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* "
            environment = {**os.environ, **TPU, "XLA_FLAGS": flags + "--xla_dump_hlo_module_re=.*jit_step.*"}
            subprocess.run([sys.executable, __file__, name], env=environment, check=True)
            before = min(Path(folder).glob("*spmd-collectives.after_pipeline-start*.txt"))
            text = before.read_text().replace(str(HERE), "/train")
            (HERE / "as_written" / f"{name}.hlo.xz").write_bytes(lzma.compress(text.encode()))
            after = next(Path(folder).glob("*.after_optimizations.txt")).read_text()
            scatters = re.findall(r"^%all-reduce-scatter\S* \(", after, re.MULTILINE)  # a computation for each
            sys.stdout.write(f"{name}: {len(scatters)} reduce-scatters\n")


if __name__ == "__main__":
    compile_program(sys.argv[1]) if len(sys.argv) > 1 else main()
