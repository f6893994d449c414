"""Make `recompiles`: dump directories of a training loop and of a server, and why each function was compiled.

    python tests/data/make_recompiles.py

It needs jax (0.10.2 made the files) and runs on CPU. Each directory comes from a process of its own. `expect.json` has the
reasons by hand, from the lines below, and what JAX says with JAX_EXPLAIN_CACHE_MISSES=1. Files of buffers and object code are
left out, and so are the flags of GPUs in compile options. HLO is compressed; paths are replaced.
"""

from __future__ import annotations

import json
import logging
import lzma
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent / "recompiles"
KEPT = re.compile(r".*(?:optimizations\.txt|\.debug_options|compile_options\.textproto|topology\.textproto|module\.mlir)")
GPU_FLAG = re.compile(r"    xla_gpu_\w+(?:: .*| \{\n(?: {6}.*\n)* {4}\})\n")
MACHINE = re.compile(r"platform_specific_topology \{\n(?:.*\n)*?\}\n")

TRAIN = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

def make_step(decay):
    def train_step(weights, batch, rate):
        def loss(weights):
            return jnp.mean((jnp.tanh(batch @ weights["a"]) @ weights["b"]) ** 2)
        value, gradient = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w * decay - rate * g, weights, gradient), value
    return train_step

weights = {"a": np.ones((16, 32), np.float32), "b": np.ones((32, 4), np.float32)}
batch = np.ones((8, 16), np.float32)
mesh = Mesh(np.array(jax.devices()[:4]), ("data",))
step = jax.jit(make_step(0.99))
"""
SERVE = """\
import jax
import jax.numpy as jnp
import numpy as np

table = np.random.RandomState(0).rand(64, 8).astype(np.float32)

def make_embed(table):
    def embed(tokens):
        return jnp.take(table, tokens, axis=0).sum(axis=0)
    return embed

def decode(cache, token, position):
    return jax.lax.dynamic_update_index_in_dim(cache, token, position, 0), token * 2

cache, token = np.zeros((8, 4), np.float32), np.ones(4, np.float32)
embed = jax.jit(make_embed(table))
decode = jax.jit(decode)
"""
CALLS: dict[str, tuple[str, list[tuple[str, list[str], str]]]] = {
    "loop": (
        TRAIN,
        [
            ("first", [], "step(weights, batch, 0.1)"),
            ("nothing", ["weak type", "argument 3"], "step(weights, batch, np.float32(0.1))"),
            ("nothing", ["made anew"], "jax.jit(make_step(0.99))(weights, batch, 0.1)"),
            ("shape", ["argument 2: f32[8,16] -> f32[5,16]"], "step(weights, batch[:5], 0.1)"),
            ("constant", ["0.99", "0.999"], "jax.jit(make_step(0.999))(weights, batch, 0.1)"),
            ("donation", ["argument 0", "argument 1"], "jax.jit(make_step(0.99), donate_argnums=0)(dict(weights), batch, 0.1)"),
            (
                "flag",
                ["xla_cpu_enable_fast_math: false -> true"],
                "jax.jit(make_step(0.99), compiler_options={'xla_cpu_enable_fast_math': True})(weights, batch, 0.1)",
            ),
            (
                "sharding",
                ["4", "argument 2"],
                "step(weights, jax.device_put(batch, NamedSharding(mesh, PartitionSpec('data'))), 0.1)",
            ),
        ],
    ),
    "server": (
        SERVE,
        [
            ("first", [], "embed(np.zeros(4, np.int32))"),
            ("shape", ["argument 0: s32[4] -> s32[6]"], "embed(np.zeros(6, np.int32))"),
            ("constant", ["f32[64,8]"], "jax.jit(make_embed(table + 1))(np.zeros(4, np.int32))"),
            ("first", [], "decode(cache, token, np.int32(1))"),
            ("nothing", ["weak type", "argument 2"], "decode(cache, token, 1)"),
            (
                "dtype",
                ["argument 1: f32[4] -> s32[4]", "argument 0"],
                "decode(cache.astype(int), token.astype(int), np.int32(1))",
            ),
            ("loaded", [], "jax.clear_caches() or decode(cache, token, np.int32(1))"),
        ],
    ),
}


def compile_all(name: str, directory: str) -> None:
    """Compile the functions of one directory, and print JAX's messages about each call as JSON."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={directory} --xla_force_host_platform_device_count=8"
    os.environ["JAX_EXPLAIN_CACHE_MISSES"] = "1"
    jax: Any = import_module("jax")
    messages: list[list[str]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if messages and text.startswith("TRACING CACHE MISS"):
                messages[-1].append(text.partition(":\n")[2].strip())

    logging.getLogger("jax").addHandler(Handler())
    logging.getLogger("jax").propagate = False
    if name == "server":
        jax.config.update("jax_compilation_cache_dir", f"{directory}.cache")
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    source, calls = CALLS[name]
    scope: dict[str, object] = {}
    exec(compile(source, "train.py" if name == "loop" else "serve.py", "exec"), scope)  # noqa: S102 - its lines are named in the dumps
    for _, _, call in calls:
        messages.append([])
        jax.block_until_ready(eval(call, scope))  # noqa: S307 - the calls above
    json.dump([[re.sub(r" id=\d+", "", text) for text in texts] for texts in messages], sys.stdout)


def make(name: str) -> list[dict[str, object]]:
    """Make one directory; return what is expected of its compiles."""
    raw, kept = ROOT / f"{name}.raw", ROOT / name
    for folder in (raw, kept, ROOT / f"{name}.raw.cache"):
        shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, __file__, name, str(raw)]
    messages = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for path in sorted(path for path in raw.rglob("*") if path.is_file() and KEPT.fullmatch(path.name)):
        target = kept / path.relative_to(raw)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8").replace(str(raw), "/dumps/xla").replace(f"{Path(__file__).parent}/", "/run/")
        data = MACHINE.sub("", GPU_FLAG.sub("", text)).encode()
        if target.suffix == ".txt":
            target, data = target.with_name(f"{target.name}.xz"), lzma.compress(data)
        target.write_bytes(data)
    for folder in (raw, ROOT / f"{name}.raw.cache"):
        shutil.rmtree(folder, ignore_errors=True)
    texts = {path.name[:11]: path for path in sorted(kept.glob("*after_optimizations.txt.xz"))}
    rows = zip(texts.values(), CALLS[name][1], messages, strict=True)
    return [
        {
            "module": int(path.name[7:11]),
            "function": path.name.split(".")[1],
            "reasons": reason,
            "detail": detail,
            "jax": jax_texts,
        }
        for path, (reason, detail, _), jax_texts in rows
    ]


def main() -> None:
    ROOT.mkdir(exist_ok=True)
    expected = {name: make(name) for name in CALLS}
    (ROOT / "expect.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        compile_all(*sys.argv[1:3])
    else:
        main()
