"""The tasks of the compiler's process: StableHLO described, edited, compiled for a target, and run.

jaxlib has MLIR's bindings and the compiler for CPU, libtpu that for TPU, the CUDA plugin that for GPU. A process serves one
target, since libtpu is loaded once. XLA writes what it makes to a folder, as with `--xla_dump_to`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hlo_inspect.compiler.description import describe
from hlo_inspect.compiler.devices import cuda_folder, devices_of
from hlo_inspect.compiler.edits import apply_edit
from hlo_inspect.compiler.execution import outputs_differ, write_arrays
from hlo_inspect.compiler.exported import stablehlo_of
from hlo_inspect.compiler.mlir import argument_names, main_of, parse
from hlo_inspect.compiler.targets import CPU, GPU, TPU
from hlo_inspect.worker_process import Task, run_tasks

OPTIMIZED = "after_optimizations.txt"
"""End of the name of the optimized text."""
PACKAGES = {TPU: ("libtpu",), GPU: ("jax-cuda13-plugin", "jax-cuda12-plugin")}
"""Packages beside jaxlib, one of which a platform needs."""
_MODULES = ("jaxlib.xla_client", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.sdy", "jaxlib.mlir._mlir_libs._jax_mlir_ext")


def print_exported(data: bytes, *, sizes: Mapping[str, int]) -> str:
    """Return the StableHLO of a file of `jax.export`, with these sizes of its symbols."""
    return str(parse(stablehlo_of(data, sizes)).operation.get_asm(enable_debug_info=True))


def prepare_arrays(data: bytes, *, side: str, path: str, seed: int, to: str) -> str:
    """Write the arguments or outputs of a program to a file in their order: from the user's file, or made from a seed."""
    module, ir = parse(data), import_module("jaxlib.mlir.ir")
    main = main_of(module)  # of the module, which has to stay
    kind = main.attributes["function_type"].value
    is_argument = side == "argument"
    types = [ir.RankedTensorType(own) for own in (kind.inputs if is_argument else kind.results)]
    write_arrays(types, argument_names(main) if is_argument else [], side, path, seed, to)
    return ""


def compile_program(
    data: bytes,
    *,
    platform: str,
    topology: str,
    target_config: str,
    partitions: int,
    options: Mapping[str, Any],
    folder: str,
    edits: Sequence[Mapping[str, Any]] = (),
    run: Mapping[str, Any] | None = None,
) -> str:
    """Compile StableHLO for a target, with XLA's files in `folder`, and return the sizes of its `memory` as JSON.

    `options` are `shardy`, the two lists `to_parameters` and `to_output` of the propagation of shardings, and the `flags` by
    name. `target_config` describes a GPU. `edits` change the program before. With `run`, arguments of `outputs_differ`, the
    answer has its result.
    """
    module = parse(data)
    for edit in edits:
        apply_edit(module, edit)
    xla = import_module("jaxlib.xla_client")
    devices = devices_of(platform, topology, partitions, target_config)
    compile_options = _options(xla, platform, [device.id for device in devices], options, folder)
    client = devices[0].client
    compiled = client.compile_and_load if platform == CPU else client.compile
    executable = compiled(module, xla.DeviceList(tuple(devices)), compile_options)
    _write_text(executable, Path(folder))
    stats = executable.get_compiled_memory_stats()
    memory = {name: getattr(stats, f"{name}_size_in_bytes") for name in ("argument", "output", "alias", "temp")}
    return json.dumps({"memory": memory, "run": {} if run is None else outputs_differ(executable, folder=folder, **run)})


def _write_text(executable: Any, folder: Path) -> None:  # noqa: ANN401 - jaxlib has no types
    """Write the text of an executable in place of XLA's: libtpu dumps it before its last passes."""
    for path in folder.glob(f"*{OPTIMIZED}"):
        path.write_text(executable.hlo_modules()[0].to_string(), encoding="utf-8")


def _options(xla: Any, platform: str, ids: Sequence[int], options: Mapping[str, Any], folder: str) -> Any:  # noqa: ANN401
    import numpy as np

    partitions = len(ids)
    own = xla.CompileOptions()
    own.num_replicas, own.num_partitions = 1, partitions
    own.device_assignment = xla.DeviceAssignment.create(np.array(ids).reshape(1, partitions))
    flags = {"xla_gpu_autotune_level": 0, **options["flags"]} if platform == GPU else options["flags"]
    own.env_option_overrides = list(flags.items())
    build = own.executable_build_options
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, options["shardy"]
    if options["to_parameters"]:
        build.allow_spmd_sharding_propagation_to_parameters = options["to_parameters"]
    if options["to_output"]:
        build.allow_spmd_sharding_propagation_to_output = options["to_output"]
    if platform == GPU:
        build.debug_options.xla_gpu_cuda_data_dir = cuda_folder()
    build.debug_options.xla_dump_to, build.debug_options.xla_dump_hlo_as_text = folder, True
    return own


TASKS: dict[str, Task] = {
    "describe": describe,
    "compile": compile_program,
    "exported": print_exported,
    "arrays": prepare_arrays,
}


def greeting() -> dict[str, Any]:
    """Return the first message: packages of compilers, version and missing modules of jaxlib, or the error of its import."""
    packages = {}
    for name in (name for names in PACKAGES.values() for name in names):
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    try:
        own = import_module("jaxlib").__version__ if find_spec("jaxlib") is not None else None
        missing = [name for name in _MODULES if find_spec(name) is None] if own is not None else []
    except Exception as error:  # an import that fails can raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None, "version": own, "missing": missing, "packages": packages}


if __name__ == "__main__":
    run_tasks(TASKS, greeting)
