"""Makes `ranks/job.tar.xz`: the dump of one rank of a job on 4 devices, as `--xla_dump_to` writes it.

And `ranks/dumps`, three modules of it on four ranks: rank 1 runs two collectives in the other order, rank 3 another constant.
`python make_ranks.py` in the environment `newest` of README.md. Nothing is run, only compiled. Tests make other ranks
(`tests/compare/programs/jobs.py`).
"""

from __future__ import annotations

import io
import lzma
import os
import re
import tarfile
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGET = HERE / "ranks" / "job.tar.xz"
EXAMPLE = HERE / "ranks" / "dumps"
EXAMPLE_FILES = re.compile(r"module_(\d+)\.(jit_(?:train|mesh|scale)\.(?:cpu_after_optimizations\.txt|debug_options))")
KEPT = (
    ".before_optimizations.txt",
    ".cpu_after_optimizations.txt",
    ".debug_options",
    "compile_options.textproto",
    "topology.textproto",
    "module.mlir",
)


def compile_job(folder: str) -> None:
    """Compile six small programs: meshes of 4 and of 2x2 devices, a loop, two permutes, a table, one without collectives."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=4 --xla_dump_to={folder}"
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
    lax: Any = import_module("jax.lax")
    numpy: Any = import_module("numpy")
    sharding: Any = import_module("jax.sharding")
    devices = numpy.array(jax.devices())
    line, grid = sharding.Mesh(devices, ("x",)), sharding.Mesh(devices.reshape(2, 2), ("r", "c"))
    spec = sharding.PartitionSpec

    def compiled(function: Any, mesh: Any, names: Any, shape: tuple[int, ...] = (8, 16)) -> None:
        if mesh is not None:
            function_on_mesh = jax.shard_map(function, mesh=mesh, in_specs=spec(names), out_specs=spec(names), check_vma=False)
            argument = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding.NamedSharding(mesh, spec(names)))
        else:
            function_on_mesh, argument = function, jax.ShapeDtypeStruct(shape, jnp.float32)
        named = jax.named_call(function_on_mesh, name=function.__name__)
        named.__name__ = function.__name__
        jax.jit(named).lower(argument).compile()

    def train(x: Any) -> Any:
        total = lax.psum(x * 3.0, "x")
        largest = lax.pmax(jnp.max(x, axis=0), "x")
        return total + largest

    def mesh(x: Any) -> Any:
        return lax.psum(x + 2.0, "c") * lax.psum(jnp.sin(x), "r")

    def rounds(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            moved = lax.ppermute(carry, "x", [(i, (i + 1) % 4) for i in range(4)])
            return jnp.tanh(moved) + lax.pmean(carry, "x"), None

        return lax.scan(body, x, None, length=70)[0]

    def pairs(x: Any) -> Any:
        return lax.ppermute(x + 1.0, "x", [(0, 1), (1, 0)]) + lax.ppermute(x * 2.0, "x", [(2, 3), (3, 2)])

    def table(x: Any) -> Any:
        return x * numpy.arange(1024, dtype=numpy.float32).reshape(64, 16)

    def scale(x: Any) -> Any:
        return jnp.tanh(x) * 0.5

    compiled(train, line, "x")
    compiled(mesh, grid, ("r", "c"))
    compiled(rounds, line, "x")
    compiled(pairs, line, "x")
    compiled(table, None, None, (64, 16))
    compiled(scale, None, None)


def of_rank(content: str, rank: int) -> str:
    """Return a file as a rank writes it: names have other numbers, paths are on another host, and so is the process."""
    content = re.sub(r"(%[A-Za-z_]\w*(?:\.[A-Za-z]\w*)*\.)(\d+)\b", lambda m: f"{m[1]}{int(m[2]) + 100 * rank}", content)
    content = content.replace('"/train/', f'"/host{rank}/train/').replace('"/dumps', f'"/dumps/{rank}')
    return content.replace("  process_count:", f"  process_index: {rank}\n  process_count:")


def swapped(text: str, first: str, second: str) -> str:
    """Swap the lines of two instructions."""
    lines = text.split("\n")
    starts = [(f"  {name} = ", f"  %{name} = ") for name in (first, second)]
    rows = [next(number for number, line in enumerate(lines) if line.startswith(start)) for start in starts]
    lines[rows[0]], lines[rows[1]] = lines[rows[1]], lines[rows[0]]
    return "\n".join(lines)


def write_example(folder: str) -> None:
    """Write three modules of the dump as four ranks have them."""
    for path in sorted(Path(folder).iterdir()):
        match = EXAMPLE_FILES.fullmatch(path.name)
        if match is None:
            continue
        for rank in range(4):
            text = path.read_text().replace(str(HERE), "/train").replace(folder, "/dumps")
            if rank == 1 and match[2] == "jit_train.cpu_after_optimizations.txt":
                text = swapped(text, "psum.7", "pmax.7")
            if rank == 3 and match[2] == "jit_scale.cpu_after_optimizations.txt":
                text = text.replace("constant(0.5)", "constant(0.25)")
            data, end = of_rank(text, rank).encode(), ""
            if path.suffix == ".txt":
                data, end = lzma.compress(data, preset=9), ".xz"
            target = EXAMPLE / str(rank) / f"module_{int(match[1]) * (rank + 1):04d}.{match[2]}{end}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def main() -> None:
    """Compile the programs, and pack the files that tests read. Paths of this machine become `/train` and `/dumps`."""
    TARGET.parent.mkdir(exist_ok=True)
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=content, mode="w") as archive:
        compile_job(folder)
        write_example(folder)
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.name.endswith(KEPT):
                data = path.read_bytes().replace(str(HERE).encode(), b"/train").replace(folder.encode(), b"/dumps")
                data = re.sub(rb'"[^"\n]*/site-packages/', b'"/python/', data)
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    TARGET.write_bytes(lzma.compress(content.getvalue(), preset=9))


if __name__ == "__main__":
    main()
