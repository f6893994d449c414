"""The tasks of the compiler's process: StableHLO described, rewritten for another mesh, compiled for a target.

jaxlib has MLIR's bindings and the compiler for CPU, libtpu that for TPU, the CUDA plugin that for GPU. A process serves one
target, since libtpu is loaded once. XLA writes what it makes to a folder, as with `--xla_dump_to`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hlo_inspect.compiler.edits import apply_edit, ends_of_loops, main_of
from hlo_inspect.compiler.execution import outputs_differ, write_arrays
from hlo_inspect.compiler.exported import stablehlo_of
from hlo_inspect.compiler.program import BYTECODE
from hlo_inspect.worker_process import Task, run_tasks

OPTIMIZED = "after_optimizations.txt"
"""End of the name of the optimized text."""
_MODULES = ("jaxlib.xla_client", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.sdy", "jaxlib.mlir._mlir_libs._jax_mlir_ext")
_DIALECTS = ("chlo", "mhlo", "stablehlo", "sdy", "mpmd")
ARGUMENTS, RESULTS = "arg_attrs", "res_attrs"
"""Attributes of a function that hold those of its arguments and results."""
_FLOATING = re.compile(r"b?f\d")
_LOCATION = re.compile(r'loc\("([^"]*)"')
_MANUAL = "sdy.manual_computation"
TPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Environment in which libtpu compiles without a TPU, and in several processes at once."""


@cache
def _context() -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return an MLIR context with the dialects that JAX writes."""
    ir = import_module("jaxlib.mlir.ir")
    registry, context = ir.DialectRegistry(), ir.Context()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    for name in _DIALECTS:
        dialect = import_module(f"jaxlib.mlir.dialects.{name}")
        register = getattr(dialect, "register_mhlo_dialect", None) or dialect.register_dialect
        register(context)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    return context


def parse(data: bytes) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Parse StableHLO, as text or bytecode."""
    module = data if data.startswith(BYTECODE) else data.decode(errors="backslashreplace")
    return import_module("jaxlib.mlir.ir").Module.parse(module, _context())


def _operations(operation: Any) -> Iterator[Any]:  # noqa: ANN401 - jaxlib has no types
    pending = [operation]
    while pending:
        current = pending.pop()
        yield current
        pending += [inner.operation for region in current.regions for block in region for inner in block]


def _meshes(module: Any) -> list[Any]:  # noqa: ANN401 - jaxlib has no types
    return [operation for operation in module.body.operations if operation.operation.name == "sdy.mesh"]


# -- what a program is ------------------------------------------------------------------------------------------------------


def describe(data: bytes) -> str:
    """Return the name, meshes, arguments and results of StableHLO, and the operations that fix its mesh, as JSON.

    Meshes and shardings have their texts, arrays their dimensions.
    """
    module = parse(data)
    operation = module.operation
    main = next((own for own in module.body.operations if _symbol(own) == "main"), None)
    if main is None:
        raise ValueError("the module has no function @main")
    kind = main.attributes["function_type"].value
    count = _attribute(operation, "mhlo.num_partitions")
    description = {
        "name": _symbol(operation),
        "partitions": int(str(count).partition(" ")[0]) if count is not None else 1,
        "meshes": [mesh.operation.get_asm() for mesh in _meshes(module)],
        "is_manual": any(inner.name == _MANUAL for inner in _operations(operation)),
        "arguments": _named(_arrays(main, kind.inputs, ARGUMENTS), main.regions[0].blocks[0].arguments),
        "carried": [list(kind.shape) for kind in _carried(module)],
        "results": _arrays(main, kind.results, RESULTS),
    }
    return json.dumps(description)


def _attribute(operation: Any, name: str) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return an attribute, None if the operation has none of that name. MLIR's attributes have no `get` in every jaxlib."""
    attributes = operation.attributes
    return attributes[name] if name in attributes else None  # noqa: SIM401 - as above


def _symbol(operation: Any) -> str:  # noqa: ANN401 - jaxlib has no types
    name = _attribute(operation, "sym_name")
    return "" if name is None else str(name.value)


def _arrays(main: Any, types: Sequence[Any], attributes: str) -> list[dict[str, Any]]:  # noqa: ANN401 - jaxlib has no types
    """Return dimensions and texts of the shardings of arguments or results."""
    listed = list(main.attributes[attributes]) if attributes in main.attributes else [{}] * len(types)
    arrays = []
    for kind, own in zip(types, listed, strict=True):
        shape = import_module("jaxlib.mlir.ir").RankedTensorType(kind).shape if "tensor<" in str(kind) else []
        texts = {name: str(own[name]) for name in ("sdy.sharding", "mhlo.sharding") if name in own}
        if "jax.result_info" in own:
            texts["name"] = str(own["jax.result_info"].value)
        arrays.append({"dimensions": list(shape), **texts})
    return arrays


def print_exported(data: bytes, *, sizes: Mapping[str, int]) -> str:
    """Return the StableHLO of a file of `jax.export`, with these sizes of its symbols."""
    return str(parse(stablehlo_of(data, sizes)).operation.get_asm(enable_debug_info=True))


def _carried(module: Any) -> Iterator[Any]:  # noqa: ANN401 - jaxlib has no types
    """Yield the types of the floating-point arrays that loops carry."""
    ir = import_module("jaxlib.mlir.ir")
    for end in ends_of_loops(module.operation):
        kinds = (ir.RankedTensorType(value.type) for value in end.operands if "tensor<" in str(value.type))
        yield from (kind for kind in kinds if _FLOATING.match(str(kind.element_type)))


def _named(arrays: list[dict[str, Any]], arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """Add the names of arguments, which are those of their locations."""
    for array, argument in zip(arrays, arguments, strict=True):
        name = _LOCATION.match(str(argument.location))
        if name is not None:
            array["name"] = name[1]
    return arrays


# -- rewriting and compiling ------------------------------------------------------------------------------------------------


def _set_mesh(module: Any, sizes: Mapping[str, int], partitions: int) -> None:  # noqa: ANN401 - jaxlib has no types
    """Give the axes of the mesh other sizes, and the module their number of partitions. Raise MLIRError if it is then wrong."""
    ir, sdy = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.dialects.sdy")
    with module.context, ir.Location.unknown():
        for mesh in _meshes(module):
            axes = map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh.attributes["mesh"]).axes)
            rewritten = [sdy.MeshAxisAttr.get(axis.name, sizes.get(axis.name, axis.size)) for axis in axes]
            mesh.attributes["mesh"] = sdy.MeshAttr.get(rewritten)
            if "stablehlo.mesh" in mesh.attributes:  # the same mesh in another dialect, which would be stale
                del mesh.attributes["stablehlo.mesh"]
        kind = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(kind, partitions)
    module.operation.verify()


def compile_program(
    data: bytes,
    *,
    platform: str,
    topology: str,
    partitions: int,
    mesh: Mapping[str, int] | None,
    options: Mapping[str, Any],
    folder: str,
    target_config: str = "",
    edits: Sequence[Mapping[str, Any]] = (),
    run: Mapping[str, Any] | None = None,
) -> str:
    """Compile StableHLO for a target, with XLA's files in `folder`, and return the sizes of its memory as JSON.

    `mesh` has the new sizes of axes, None to compile the program as it is. `options` are `shardy`, the two lists
    `to_parameters` and `to_output` of the propagation of shardings, and the `flags` by name. `target_config` describes a GPU.
    `edits` change the program before. With `run`, arguments of `outputs_differ`, the answer has a member of that name.
    """
    module = parse(data)
    if mesh is not None:
        _set_mesh(module, mesh, partitions)
    xla = import_module("jaxlib.xla_client")
    for edit in edits:
        apply_edit(module, edit)
    devices = _devices(platform, topology, partitions, target_config)
    compile_options = _options(xla, platform, [device.id for device in devices], options, folder)
    chosen = xla.DeviceList(tuple(devices))
    client = devices[0].client
    compiled = client.compile_and_load if platform == "cpu" else client.compile
    executable = compiled(module, chosen, compile_options)
    _write_text(executable, Path(folder))
    stats = executable.get_compiled_memory_stats()
    sizes = ("argument", "output", "alias", "temp")
    answer = {name: getattr(stats, f"{name}_size_in_bytes") for name in sizes}
    return json.dumps(answer if run is None else {**answer, "run": outputs_differ(executable, folder=folder, **run)})


def prepare_arrays(data: bytes, *, side: str, path: str, seed: int, to: str) -> str:
    """Write the arguments or outputs of a program to a file in their order: from the user's file, or made from a seed."""
    module, ir = parse(data), import_module("jaxlib.mlir.ir")
    main = main_of(module)  # of the module, which has to stay
    kind = main.attributes["function_type"].value
    types = [ir.RankedTensorType(own) for own in (kind.inputs if side == "argument" else kind.results)]
    matches = [_LOCATION.match(str(argument.location)) for argument in main.regions[0].blocks[0].arguments]
    names = [match[1] if match is not None else "" for match in matches] if side == "argument" else []
    write_arrays(types, names, side, path, seed, to)
    return ""


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
    flags = {"xla_gpu_autotune_level": 0, **options["flags"]} if platform == "gpu" else options["flags"]
    own.env_option_overrides = list(flags.items())
    build = own.executable_build_options
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, options["shardy"]
    if options["to_parameters"]:
        build.allow_spmd_sharding_propagation_to_parameters = options["to_parameters"]
    if options["to_output"]:
        build.allow_spmd_sharding_propagation_to_output = options["to_output"]
    if platform == "gpu":
        build.debug_options.xla_gpu_cuda_data_dir = _cuda_folder()
    build.debug_options.xla_dump_to, build.debug_options.xla_dump_hlo_as_text = folder, True
    return own


def _devices(platform: str, topology: str, count: int, target_config: str) -> list[Any]:
    """Return the devices to compile for. Raise ValueError if the target has fewer."""
    devices = _cpus(count) if platform == "cpu" else _tpus(topology) if platform == "tpu" else _gpus(topology, target_config)
    if len(devices) < count:
        raise ValueError(f"the program has {count} partitions, and {topology} has {len(devices)} devices")
    return devices[:count]


@cache
def _cpus(count: int) -> list[Any]:
    return list(import_module("jaxlib.xla_client").make_cpu_client(num_devices=count).local_devices())


@cache
def _tpus(topology: str) -> list[Any]:
    xla = import_module("jaxlib.xla_client")
    if not xla.pjrt_plugin_loaded("tpu"):
        library = Path(import_module("libtpu").__file__ or "").with_name("libtpu.so")
        xla.load_pjrt_plugin_dynamically("tpu", str(library))
    if not xla.pjrt_plugin_initialized("tpu"):
        xla.initialize_pjrt_plugin("tpu")
    return list(xla.make_tfrt_tpu_c_api_device_topology(topology)._make_compile_only_devices())


@cache
def _gpus(topology: str, target_config: str) -> list[Any]:
    xla, plugin = import_module("jaxlib.xla_client"), cuda_plugin()
    if plugin is None:
        raise ValueError("the plugin for CUDA is not installed")
    client = xla.load_pjrt_plugin_dynamically("cuda", str(plugin))
    if not xla.pjrt_plugin_initialized("cuda"):
        xla.initialize_pjrt_plugin("cuda")
    described = xla.make_c_api_device_topology(client, "", target_config=target_config, topology=topology)
    return list(described._make_compile_only_devices())


def cuda_plugin() -> Path | None:
    """Return the library of JAX's plugin for CUDA, the newest of those that are installed."""
    return _newest("jax_plugins", "xla_cuda*/xla_cuda_plugin.so")


def _cuda_folder() -> str:
    """Return the folder of NVIDIA's compiler, which its wheel installs."""
    compiler = _newest("nvidia", "*/bin/ptxas")
    return str(compiler.parents[1]) if compiler is not None else ""


def _newest(package: str, pattern: str) -> Path | None:
    """Return the last file of a pattern in a package that several wheels share."""
    specification = find_spec(package)
    folders = specification.submodule_search_locations if specification is not None else None
    return max((path for folder in folders or () for path in Path(folder).glob(pattern)), default=None)


TASKS: dict[str, Task] = {
    "describe": describe,
    "compile": compile_program,
    "exported": print_exported,
    "arrays": prepare_arrays,
}


def greeting() -> dict[str, Any]:
    """Return the first message: version and missing modules of jaxlib, or the error of its import."""
    try:
        version = import_module("jaxlib").__version__
        missing = [name for name in _MODULES if find_spec(name) is None]
    except Exception as error:  # an import that fails can raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None, "version": version, "missing": missing}


if __name__ == "__main__":
    run_tasks(TASKS, greeting)
