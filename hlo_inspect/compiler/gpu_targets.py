"""Descriptions of NVIDIA GPUs for XLA's compiler, which has no device to ask.

A description is XLA's `GpuTargetConfigProto` as text. Clock, caches and memory are those of the hardware profile. Limits of
threads, registers and shared memory follow from the compute capability (CUDA C++ Programming Guide, technical specifications).
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.hardware import load_profile

_KIB = 1024


class _Gpu(NamedTuple):
    """A GPU: the name that its driver reports, its compute capability, and its streaming multiprocessors."""

    name: str
    capability: tuple[int, int]
    cores: int


class _Capability(NamedTuple):
    """Limits of a multiprocessor: threads, bytes of shared memory, and units for f32."""

    threads: int
    shared_memory: int
    units: int


_GPUS = {
    "a100-sxm-40gb": _Gpu("NVIDIA A100-SXM4-40GB", (8, 0), 108),
    "a100-sxm-80gb": _Gpu("NVIDIA A100-SXM4-80GB", (8, 0), 108),
    "b200": _Gpu("NVIDIA B200", (10, 0), 148),
    "gb200": _Gpu("NVIDIA GB200", (10, 0), 148),
    "h100-pcie": _Gpu("NVIDIA H100 PCIe", (9, 0), 114),
    "h100-sxm": _Gpu("NVIDIA H100 80GB HBM3", (9, 0), 132),
    "h200": _Gpu("NVIDIA H200", (9, 0), 132),
    "l4": _Gpu("NVIDIA L4", (8, 9), 58),
    "l40s": _Gpu("NVIDIA L40S", (8, 9), 142),
}
_CAPABILITIES = {
    (8, 0): _Capability(2048, 164 * _KIB, 64),
    (8, 9): _Capability(1536, 100 * _KIB, 128),
    (9, 0): _Capability(2048, 228 * _KIB, 128),
    (10, 0): _Capability(2048, 228 * _KIB, 128),
}
_TOOLKIT = "12.9.0"
"""Version of CUDA that is compiled for, without a driver to ask."""

GPU_NAMES = tuple(_GPUS)
"""Hardware profiles of the GPUs that can be compiled for."""


def target_config(name: str) -> str:
    """Return the description of the GPU with this hardware profile."""
    gpu, profile = _GPUS[name], load_profile(name)
    capability, (major, minor) = _CAPABILITIES[gpu.capability], gpu.capability
    device = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 48 * _KIB,
        "shared_memory_per_core": capability.shared_memory,
        "threads_per_core_limit": capability.threads,
        "core_count": gpu.cores,
        "fpus_per_core": capability.units,
        "block_dim_limit_x": (1 << 31) - 1,
        "block_dim_limit_y": (1 << 16) - 1,
        "block_dim_limit_z": (1 << 16) - 1,
        "thread_dim_limit_x": 1024,
        "thread_dim_limit_y": 1024,
        "thread_dim_limit_z": 64,
        "memory_bandwidth": int(profile.memory_bandwidth or 0),
        "l2_cache_size": int(profile.value("on_chip.l2") or 0),
        "clock_rate_ghz": (profile.clock or 0) / 1e9,
        "device_memory_size": int(profile.usable_memory or 0),
        "shared_memory_per_block_optin": capability.shared_memory - _KIB,
        "registers_per_core_limit": 1 << 16,
        "registers_per_block_limit": 1 << 16,
        "device_address_bits": 64,
    }
    lines = [f"  {field}: {value}" for field, value in device.items()]
    features = " feature_extension: ACCELERATED_FEATURES" if major >= 9 else ""
    lines.append(f"  cuda_compute_capability {{ major: {major} minor: {minor}{features} }}")
    lines += [f'  {field}: "{_TOOLKIT}"' for field in ("driver_version", "runtime_version", "compile_time_toolkit_version")]
    lines += [f'  name: "{gpu.name}"', '  device_vendor: "NVIDIA Corporation"', '  dnn_version: "9.10.0"']
    described = "\n".join(lines)
    major_toolkit, minor_toolkit, _ = _TOOLKIT.split(".")
    return (
        f"gpu_device_info {{\n{described}\n}}\n"
        'platform_name: "CUDA"\n'
        "dnn_version_info { major: 9 minor: 10 }\n"
        f"runtime_version {{ major: {major_toolkit} minor: {minor_toolkit} }}\n"
        f'device_description_str: "{gpu.name}"\n'
    )


def slice_topology(name: str, count: int) -> str:
    """Return XLA's name of a number of GPUs: slices x hosts x GPUs of a host, as `1x8x8` for 64 in hosts of eight."""
    in_host = load_profile(name).devices_per_node or count
    return f"1x{count // in_host}x{in_host}" if count > in_host and count % in_host == 0 else f"1x1x{count}"
