"""Makes the dumps of this folder: `python make_dumps.py TARGET`, one target a run, under the jax that README.md names for it.

XLA reads its flags once, so each target sets its environment before jax is imported. Nothing is run on a device: programs are
only compiled. The folder of these scripts is written `/train` in the texts, so that they are the same wherever they are made.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ON_ALL_PLATFORMS = ("sgd_unused", "bf16_master", "scan_forward", "collectives", "gathered_matmul")
SHARDED = ("adamw_step", "scan_fsdp", *ON_ALL_PLATFORMS)
SINGLE = ("control_flow", "array_operators", "number_operators", "linear_algebra", "constants")
LARGE_AFTER = ("linear_algebra",)  # the factorisation alone is 40 KB of optimized text
BY_VERSION = {
    "0.12.0.1": ("jax_0_12", ("adamw_step", "scan_fsdp", "sgd_unused", "bf16_master", "collectives", "control_flow")),
    "0.10.2": ("cpu", SHARDED + SINGLE),
    "0.5.0": ("jax_0_5_0", ("adamw_step", "scan_fsdp", "sgd_unused", "collectives")),
    "0.4.13": ("jax_0_4_13", ("sgd_unused", "scan_forward", "collectives")),
}
ON_TPU_BY_VERSION = {
    "0.12.0.1": ("tpu_jax_0_12", ("sgd_unused", "scan_forward", "collectives", "gathered_matmul")),
    "0.10.2": ("tpu", ON_ALL_PLATFORMS),
}
DUMP_BY_VERSION = {"0.12.0.1": "dump_jax_0_12", "0.10.2": "xla_dump_to"}
EIGHT_HOST_DEVICES = "--xla_force_host_platform_device_count=8"

# What the compiler for NVIDIA GPUs has to know about the chip when none is there; the figures are those of an H100 SXM.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 device_address_bits: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  driver_version: "12.9.0" runtime_version: "12.9.0" compile_time_toolkit_version: "12.9.0" dnn_version: "9.10.0"
  device_vendor: "NVIDIA Corporation" name: "NVIDIA H100 80GB HBM3"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def write(name: str, text: str) -> None:
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(str(HERE), "/train"), encoding="utf-8")
    sys.stdout.write(f"{path.stat().st_size:6} {name}\n")


def environment(*xla_flags: str) -> None:
    """Set the variables that jax and XLA read when they are first imported."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = " ".join(xla_flags)


def program(name: str, mesh: Any) -> Any:
    return getattr(import_module("operators" if name in SINGLE else "programs"), name)(mesh)


def lower(name: str, mesh: Any) -> Any:
    """Trace the program `name` for `mesh` (`None`: for one device), without compiling it."""
    jax: Any = import_module("jax")
    source = program(name, mesh)

    def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
        return jax.tree_util.tree_map(function, tree, is_leaf=lambda value: hasattr(value, "spec"))

    options: dict[str, Any] = {"donate_argnums": source.donate, "keep_unused": True}
    if mesh is not None:
        options["in_shardings"] = tree_map(
            lambda arg: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*arg.spec)), source.args
        )
    if source.state_out:
        state = options["in_shardings"][0]
        options["out_shardings"] = (state, None) if isinstance(state, dict) else state
    structs = tree_map(lambda arg: jax.ShapeDtypeStruct(arg.shape, arg.dtype), source.args)
    return jax.jit(source.step, **options).lower(*structs)


def optimized(name: str, mesh: Any) -> str:
    text: str = lower(name, mesh).compile().as_text()
    return text


def mesh_of(devices: Any) -> Any:
    jax: Any = import_module("jax")
    numpy: Any = import_module("numpy")
    axes = import_module("programs").MESH_AXES
    return jax.sharding.Mesh(numpy.array(devices).reshape(tuple(axes.values())), tuple(axes))


def topology_mesh(*description: Any, **options: Any) -> Any:
    """Make a mesh over devices that are only described, not present."""
    return mesh_of(import_module("jax.experimental.topologies").get_topology_desc(*description, **options).devices)


def dumped(folder: str, ending: str) -> str:
    """Return the text of the only file in XLA's dump folder whose name ends with `ending`."""
    (path,) = Path(folder).glob(f"*{ending}")
    return path.read_text(encoding="utf-8")


def cpu() -> None:
    """Programs before and after optimization, for 8 host devices; which ones depends on the version of jax."""
    environment(EIGHT_HOST_DEVICES)
    jax: Any = import_module("jax")
    folder, names = BY_VERSION[jax.__version__]
    for name in names:
        lowered = lower(name, mesh_of(jax.devices()) if name in SHARDED else None)
        write(f"{folder}/{name}.before.txt", lowered.compiler_ir("hlo").as_hlo_text())
        if name not in LARGE_AFTER:
            write(f"{folder}/{name}.after.txt", lowered.compile().as_text())


def tpu() -> None:
    """Programs after optimization for a TPU v5e 2x4 slice, with libtpu and no TPU; which ones depends on the version of jax."""
    environment()
    os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0")
    mesh = topology_mesh(platform="tpu", topology_name="v5e:2x4")
    folder, names = ON_TPU_BY_VERSION[import_module("jax").__version__]
    for name in names:
        write(f"{folder}/{name}.after.txt", optimized(name, mesh))


def tpu_slices() -> None:
    """Compile a program for two slices of TPU v5e 2x4. Its mesh has one axis more, between the slices."""
    environment()
    os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0")
    jax: Any = import_module("jax")
    numpy: Any = import_module("numpy")
    topology = import_module("jax.experimental.topologies").get_topology_desc(
        platform="tpu", topology_name="v5e:2x4", num_slices=2
    )
    devices = sorted(topology.devices, key=lambda device: (device.slice_index, device.id))
    mesh = jax.sharding.Mesh(numpy.array(devices).reshape(2, 2, 4), ("slice", "data", "model"))
    write("tpu/between_slices.after.txt", optimized("between_slices", mesh))


def gpu() -> None:
    """Programs after optimization for 8 H100s, with the CUDA plugin and no GPU."""
    environment("--xla_gpu_autotune_level=0")
    mesh = topology_mesh("", "cuda", target_config=H100, topology="1x1x8")
    for name in ON_ALL_PLATFORMS:
        write(f"gpu/{name}.after.txt", optimized(name, mesh))


def gpu_generic_async() -> None:
    """`gpu/collectives` as a dump file prints it: `async-start` with a computation of its own, where `as_text` prints sugar."""
    with tempfile.TemporaryDirectory() as folder:
        environment("--xla_gpu_autotune_level=0", f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text")
        optimized("collectives", topology_mesh("", "cuda", target_config=H100, topology="1x1x8"))
        write("gpu/collectives.generic_async.txt", dumped(folder, "jit_step.sm_9.0a_gpu_after_optimizations.txt"))


def inline_frames() -> None:
    """Write a dump file with source places inside the metadata and in tables."""
    with tempfile.TemporaryDirectory() as folder:
        inline = "--xla_hlo_print_inline_stack_frames=true"
        environment(EIGHT_HOST_DEVICES, f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text", inline)
        optimized("bf16_master", mesh_of(import_module("jax").devices()))
        write("prints/inline_frames.txt", dumped(folder, "jit_step.cpu_after_optimizations.txt"))


def dump_folder() -> None:
    """Write the files of `--xla_dump_to` for two modules, without object code.

    Of the second module only the text before optimization is kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        passes = "--xla_dump_hlo_pass_re=spmd-partitioning|layout-assignment"
        environment(EIGHT_HOST_DEVICES, f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text", passes)
        optimized("bf16_master", mesh_of(import_module("jax").devices()))
        first = sorted(Path(folder).glob("*jit_step*.txt"))
        optimized("constants", None)
        target = DUMP_BY_VERSION[import_module("jax").__version__]
        second = [path for path in Path(folder).glob("*jit_step.before_optimizations.txt") if path not in first]
        for path in first + second:
            write(f"{target}/{path.name}", path.read_text(encoding="utf-8"))


def forms() -> None:
    """Write programs in the two forms of jax 0.12: as `as_text()` prints them, and as the dump file of the same compile."""
    with tempfile.TemporaryDirectory() as folder:
        environment(EIGHT_HOST_DEVICES, f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text")
        mesh = mesh_of(import_module("jax").devices())
        for name in ("collectives", "control_flow"):
            write_forms(name, mesh if name in SHARDED else None, folder, "cpu_after_optimizations.txt")


def tpu_forms() -> None:
    """Write the two forms for a TPU v5e 2x4 slice. Its `as_text()` is the text after code generation."""
    with tempfile.TemporaryDirectory() as folder:
        environment(f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text")
        os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0")
        mesh = topology_mesh(platform="tpu", topology_name="v5e:2x4")
        for name in ("sgd_unused", "scan_forward"):
            write_forms(name, mesh, folder, "after_codegen.txt", prefix="tpu_")


def write_forms(name: str, mesh: Any, folder: str, ending: str, prefix: str = "") -> None:
    before = set(Path(folder).glob(f"*.{ending}"))
    write(f"forms_jax_0_12/{prefix}{name}.as_text.hlo", optimized(name, mesh))
    new = max(set(Path(folder).glob(f"*.{ending}")) - before, key=lambda path: path.stat().st_size)
    write(f"forms_jax_0_12/{prefix}{name}.dump.hlo", new.read_text(encoding="utf-8"))


def elements() -> None:
    """Write a text before optimization twice: with `x#1` for elements of tuples, and with a line and sharding for each."""
    for form, flag in (("short", "--xla_dump_compact_gte=true"), ("long", "--xla_dump_compact_gte=false")):
        if not os.fork():  # XLA reads its flags once
            with tempfile.TemporaryDirectory() as folder:
                environment(EIGHT_HOST_DEVICES, f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text", flag)
                optimized("collectives", mesh_of(import_module("jax").devices()))
                text = dumped(folder, "jit_step.before_optimizations.txt")
            write(f"forms_jax_0_12/collectives.before.{form}.hlo", text)
            return
        os.wait()


def prints() -> None:
    """Two optimized modules under other printer options, without metadata but for one text."""
    environment(EIGHT_HOST_DEVICES)
    jax: Any = import_module("jax")
    options: Any = import_module("jaxlib._hlo").HloPrintOptions

    def write_variants(program: str, mesh: Any, variants: dict[str, tuple[Any, dict[str, bool]]]) -> None:
        (module,) = lower(program, mesh).compile().runtime_executable().hlo_modules()
        for name, (style, changes) in variants.items():
            for key, value in {"print_metadata": False, **changes}.items():
                setattr(style, key, value)
            write(f"prints/{name}.txt", module.to_string(style))

    sharded = {
        "long": (options(), {}),
        "operand_shapes": (options(), {"print_operand_shape": True}),
        "no_percent": (options(), {"print_percent": False}),
        "no_layouts": (options(), {"include_layout_in_shapes": False}),
        "no_signatures": (options(), {"print_program_shape": False}),
        "no_ids": (options(), {"print_ids": False}),
        "no_operand_names": (options(), {"print_operand_shape": True, "print_operand_names": False}),
        "compact_operands": (options(), {"compact_operands": True}),
        "short_parsable": (options.short_parsable(), {}),
        "short_with_metadata": (options.short_parsable(), {"print_metadata": True}),
        "canonical": (options.canonical(), {}),
        "fingerprint": (options.fingerprint(), {}),
    }
    write_variants("collectives", mesh_of(jax.devices()), sharded)
    large = {"print_large_constants": True}
    write_variants("constants", None, {"large_constants": (options(), large)})


FORMS = (forms, tpu_forms, elements)
TARGETS = {
    step.__name__: step for step in (cpu, tpu, tpu_slices, gpu, gpu_generic_async, inline_frames, dump_folder, *FORMS, prints)
}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python make_dumps.py {{{','.join(TARGETS)}}}")
    TARGETS[sys.argv[1]]()
