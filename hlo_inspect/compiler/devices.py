"""Devices to compile for, in the compiler's process: of the host, of libtpu's topologies, of the plugin for CUDA."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hlo_inspect.compiler.targets import CPU, TPU

TPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Environment in which libtpu compiles without a TPU, and in several processes at once."""


def devices_of(platform: str, topology: str, count: int, target_config: str) -> list[Any]:
    """Return the devices to compile for. Raise ValueError if the target has fewer."""
    devices = _cpus(count) if platform == CPU else _tpus(topology) if platform == TPU else _gpus(topology, target_config)
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


def cuda_folder() -> str:
    """Return the folder of NVIDIA's compiler, which its wheel installs."""
    compiler = _newest("nvidia", "*/bin/ptxas")
    return str(compiler.parents[1]) if compiler is not None else ""


def _newest(package: str, pattern: str) -> Path | None:
    """Return the last file of a pattern in a package that several wheels share."""
    specification = find_spec(package)
    folders = specification.submodule_search_locations if specification is not None else None
    return max((path for folder in folders or () for path in Path(folder).glob(pattern)), default=None)
