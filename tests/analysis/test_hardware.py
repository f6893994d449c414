"""The shipped hardware profiles against numbers typed from their sources; finding, extending and refusing profiles."""

from pathlib import Path

import pytest

from hlo_inspect import configs
from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.analysis.hardware_figures import extends_node
from hlo_inspect.configs import shipped_configs
from hlo_inspect.errors import UsageError

TERA, GIGA, MIB, GIB = 10**12, 10**9, 2**20, 2**30

# Every figure that the makers state, in FLOP/s, bytes, bytes/s and pieces; all others are unknown.
FIGURES: dict[str, dict[str, int]] = {
    "a100-sxm-80gb": {
        "matmul.f64": 19_500_000_000_000,
        "matmul.tf32": 156 * TERA,
        "matmul.bf16": 312 * TERA,
        "matmul.f16": 312 * TERA,
        "matmul.s8": 624 * TERA,
        "matmul.s4": 1248 * TERA,
        "vector.f64": 9_700_000_000_000,
        "vector.f32": 19_500_000_000_000,
        "vector.bf16": 39 * TERA,
        "vector.f16": 78 * TERA,
        "vector.s32": 19_500_000_000_000,
        "memory.capacity": 80 * GIGA,
        "memory.usable": 81_920 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 2039 * GIGA,
        "on_chip.l2": 40 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 12,
        "links.nvlink.devices": 8,
        "links.network.bandwidth": 25 * GIGA,
        "links.network.count": 8,
    },
    "h100-sxm": {
        "matmul.f64": 66_900_000_000_000,
        "matmul.tf32": 494_700_000_000_000,
        "matmul.bf16": 989_400_000_000_000,
        "matmul.f16": 989_400_000_000_000,
        "matmul.f8": 1_978_900_000_000_000,
        "matmul.s8": 1_978_900_000_000_000,
        "vector.f64": 33_500_000_000_000,
        "vector.f32": 66_900_000_000_000,
        "vector.bf16": 133_800_000_000_000,
        "vector.f16": 133_800_000_000_000,
        "vector.s32": 33_500_000_000_000,
        "memory.capacity": 80 * GIGA,
        "memory.usable": 81_559 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 3352 * GIGA,
        "on_chip.l2": 50 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 18,
        "links.nvlink.devices": 8,
        "links.network.bandwidth": 50 * GIGA,
        "links.network.count": 8,
    },
    "tpu-v4": {
        "matmul.bf16": 275 * TERA,
        "matmul.s8": 275 * TERA,
        "vector.f32": 8_600_000_000_000,
        "vector.s32": 8_600_000_000_000,
        "memory.capacity": 32 * GIB,
        "memory.usable": 31_488 * MIB,
        "memory.bandwidth": 1200 * GIGA,
        "on_chip.cmem": 128 * MIB,
        "on_chip.vmem": 32 * MIB,
        "devices_per_node": 4,
        "links.ici.bandwidth": 50 * GIGA,
        "links.ici.count": 6,
        "links.ici.devices": 4096,
        "links.dcn.bandwidth": 6_250_000_000,
    },
    "tpu-v5e": {
        "matmul.bf16": 197 * TERA,
        "matmul.s8": 393 * TERA,
        "matmul.s4": 788 * TERA,
        "vector.f32": 6_100_000_000_000,
        "vector.s32": 6_100_000_000_000,
        "memory.capacity": 16 * GIGA,
        "memory.usable": 16_128 * MIB,
        "memory.bandwidth": 819 * GIGA,
        "on_chip.vmem": 128 * MIB,
        "devices_per_node": 8,
        "links.ici.bandwidth": 400 * GIGA,
        "links.ici.count": 4,
        "links.ici.devices": 256,
        "links.dcn.bandwidth": 12_500_000_000,
        "links.dcn.count": 2,
    },
    "tpu-v5p": {
        "matmul.bf16": 459 * TERA,
        "matmul.f8": 459 * TERA,
        "matmul.s8": 918 * TERA,
        "matmul.s4": 1840 * TERA,
        "vector.f32": 14 * TERA,
        "vector.s32": 14 * TERA,
        "memory.capacity": 95 * GIB,
        "memory.usable": 98_037 * MIB,
        "memory.bandwidth": 2765 * GIGA,
        "on_chip.vmem": 128 * MIB,
        "devices_per_node": 4,
        "links.ici.bandwidth": 1200 * GIGA,
        "links.ici.count": 6,
        "links.ici.devices": 8960,
        "links.dcn.bandwidth": 6_250_000_000,
    },
    "a100-sxm-40gb": {
        "matmul.f64": 19_500_000_000_000,
        "matmul.tf32": 156 * TERA,
        "matmul.bf16": 312 * TERA,
        "matmul.f16": 312 * TERA,
        "matmul.s8": 624 * TERA,
        "matmul.s4": 1248 * TERA,
        "vector.f64": 9_700_000_000_000,
        "vector.f32": 19_500_000_000_000,
        "vector.bf16": 39 * TERA,
        "vector.f16": 78 * TERA,
        "vector.s32": 19_500_000_000_000,
        "memory.capacity": 40 * GIGA,
        "memory.usable": 40_960 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 1555 * GIGA,
        "on_chip.l2": 40 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 12,
        "links.nvlink.devices": 8,
        "links.network.bandwidth": 25 * GIGA,
        "links.network.count": 8,
    },
    "b200": {
        "matmul.f64": 40 * TERA,
        "matmul.tf32": 1100 * TERA,
        "matmul.bf16": 2250 * TERA,
        "matmul.f16": 2250 * TERA,
        "matmul.f8": 4500 * TERA,
        "matmul.s8": 4500 * TERA,
        "vector.f64": 40 * TERA,
        "vector.f32": 80 * TERA,
        "memory.capacity": 192 * GIGA,
        "memory.bandwidth": 8000 * GIGA,
        "on_chip.l2": 126 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 50 * GIGA,
        "links.nvlink.count": 18,
        "links.nvlink.devices": 8,
        "links.network.bandwidth": 50 * GIGA,
        "links.network.count": 8,
    },
    "gb200": {
        "matmul.f64": 45 * TERA,
        "matmul.tf32": 1250 * TERA,
        "matmul.bf16": 2500 * TERA,
        "matmul.f16": 2500 * TERA,
        "matmul.f8": 5000 * TERA,
        "matmul.s8": 5000 * TERA,
        "vector.f64": 45 * TERA,
        "vector.f32": 90 * TERA,
        "memory.capacity": 186 * GIGA,
        "memory.bandwidth": 8000 * GIGA,
        "on_chip.l2": 126 * MIB,
        "devices_per_node": 4,
        "links.nvlink.bandwidth": 50 * GIGA,
        "links.nvlink.count": 18,
        "links.nvlink.devices": 72,
        "links.network.bandwidth": 50 * GIGA,
        "links.network.count": 1,
    },
    "h100-pcie": {
        "matmul.tf32": 378 * TERA,
        "matmul.bf16": 756 * TERA,
        "matmul.f16": 756 * TERA,
        "matmul.f8": 1513 * TERA,
        "matmul.s8": 1513 * TERA,
        "vector.f32": 51_200_000_000_000,
        "memory.capacity": 80 * GIGA,
        "memory.bandwidth": 2039 * GIGA,
        "on_chip.l2": 50 * MIB,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 12,
        "links.nvlink.devices": 2,
    },
    "h200": {
        "matmul.f64": 66_900_000_000_000,
        "matmul.tf32": 494_700_000_000_000,
        "matmul.s8": 1_978_900_000_000_000,
        "vector.f32": 66_900_000_000_000,
        "vector.bf16": 133_800_000_000_000,
        "vector.f16": 133_800_000_000_000,
        "vector.s32": 33_500_000_000_000,
        "matmul.bf16": 989 * TERA,
        "matmul.f16": 989 * TERA,
        "matmul.f8": 1979 * TERA,
        "vector.f64": 34 * TERA,
        "memory.capacity": 141 * GIGA,
        "memory.usable": 143_771 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 4800 * GIGA,
        "on_chip.l2": 50 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 18,
        "links.nvlink.devices": 8,
        "links.network.bandwidth": 50 * GIGA,
        "links.network.count": 8,
    },
    "l4": {
        "matmul.tf32": 60 * TERA,
        "matmul.bf16": 121 * TERA,
        "matmul.f16": 121 * TERA,
        "matmul.f8": 242 * TERA,
        "matmul.s8": 242 * TERA,
        "vector.f32": 31_330_000_000_000,
        "memory.capacity": 24 * GIGA,
        "memory.usable": 23_034 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 300 * GIGA,
        "links.pcie.bandwidth": 64 * GIGA,
    },
    "l40s": {
        "matmul.tf32": 183 * TERA,
        "matmul.bf16": 362_050_000_000_000,
        "matmul.f16": 362_050_000_000_000,
        "matmul.f8": 733 * TERA,
        "vector.f32": 91_600_000_000_000,
        "memory.capacity": 48 * GIGA,
        "memory.usable": 46_068 * MIB,  # as nvidia-smi reports it
        "memory.bandwidth": 864 * GIGA,
        "links.pcie.bandwidth": 64 * GIGA,
    },
    "mi250x": {
        "matmul.f64": 95_700_000_000_000,
        "matmul.f32": 95_700_000_000_000,
        "matmul.bf16": 383 * TERA,
        "matmul.f16": 383 * TERA,
        "matmul.s8": 383 * TERA,
        "vector.f64": 47_900_000_000_000,
        "vector.f32": 95_700_000_000_000,
        "memory.capacity": 128 * GIB,
        "memory.bandwidth": 3_276_800_000_000,
        "devices_per_node": 4,
        "links.xgmi.bandwidth": 50 * GIGA,
        "links.xgmi.count": 8,
        "links.xgmi.devices": 4,
    },
    "mi300x": {
        "matmul.f32": 163_400_000_000_000,
        "matmul.bf16": 1_307_400_000_000_000,
        "matmul.f16": 1_307_400_000_000_000,
        "matmul.f8": 2_614_900_000_000_000,
        "vector.f32": 163_400_000_000_000,
        "memory.capacity": 192 * GIGA,
        "memory.bandwidth": 5300 * GIGA,
        "devices_per_node": 8,
        "links.xgmi.bandwidth": 128 * GIGA,
        "links.xgmi.count": 7,
        "links.xgmi.devices": 8,
        "links.network.bandwidth": 50 * GIGA,
        "links.network.count": 8,
    },
    "tpu-7x": {
        "matmul.bf16": 2307 * TERA,
        "matmul.f8": 4614 * TERA,
        "vector.f32": 15_600_000_000_000,
        "vector.s32": 15_600_000_000_000,
        "memory.capacity": 192 * GIB,
        "memory.usable": 194_028 * MIB,
        "memory.bandwidth": 7380 * GIGA,
        "on_chip.vmem": 128 * MIB,
        "devices_per_node": 4,
        "links.ici.bandwidth": 1200 * GIGA,
        "links.ici.count": 6,
        "links.dcn.bandwidth": 12_500_000_000,
    },
    "tpu-v2": {
        "matmul.bf16": 46 * TERA,
        "memory.capacity": 16 * GIGA,
        "memory.usable": 15_324 * MIB,
        "memory.bandwidth": 716 * GIGA,
        "on_chip.vmem": 32 * MIB,
    },
    "tpu-v3": {
        "matmul.bf16": 123 * TERA,
        "memory.capacity": 32 * GIB,
        "memory.usable": 31_708 * MIB,
        "memory.bandwidth": 900 * GIGA,
        "on_chip.vmem": 32 * MIB,
        "devices_per_node": 8,
        "links.ici.bandwidth": 100 * GIGA,
        "links.ici.count": 4,
        "links.ici.devices": 1024,
    },
    "tpu-v6e": {
        "matmul.bf16": 918 * TERA,
        "matmul.f8": 918 * TERA,
        "matmul.s8": 1836 * TERA,
        "matmul.s4": 3680 * TERA,
        "vector.f32": 7_200_000_000_000,
        "vector.s32": 7_200_000_000_000,
        "memory.capacity": 32 * GIB,
        "memory.usable": 31_998 * MIB,
        "memory.bandwidth": 1638 * GIGA,
        "on_chip.vmem": 128 * MIB,
        "devices_per_node": 8,
        "links.ici.bandwidth": 800 * GIGA,
        "links.ici.count": 4,
        "links.ici.devices": 256,
        "links.dcn.bandwidth": 12_500_000_000,
    },
    "trainium2": {
        "matmul.f32": 181 * TERA,
        "matmul.tf32": 667 * TERA,
        "matmul.bf16": 667 * TERA,
        "matmul.f16": 667 * TERA,
        "matmul.f8": 1299 * TERA,
        "memory.capacity": 96 * GIB,
        "memory.bandwidth": 2900 * GIGA,
        "on_chip.sbuf": 224 * MIB,
        "devices_per_node": 16,
        "links.neuronlink.bandwidth": 1280 * GIGA,
        "links.neuronlink.count": 4,
        "links.neuronlink.devices": 16,
    },
    "v100-sxm2": {
        "matmul.f16": 125 * TERA,
        "vector.f64": 7_800_000_000_000,
        "vector.f32": 15_700_000_000_000,
        "memory.capacity": 16 * GIGA,
        "memory.bandwidth": 900 * GIGA,
        "on_chip.l2": 6 * MIB,
        "devices_per_node": 8,
        "links.nvlink.bandwidth": 25 * GIGA,
        "links.nvlink.count": 6,
        "links.nvlink.devices": 8,
    },
}
# GB/s that a device sends in one direction: half of the makers' 600 and 900 GB/s of NVLink, 6 x 50, half of 400 and of 1200; an
# adapter of 200 or 400 Gbit/s per GPU; two ports of 100 Gbit/s for 8 chips; 50 Gbit/s per chip.
SENT: dict[str, dict[str, float | None]] = {
    "a100-sxm-80gb": {"nvlink": 300, "network": 25},
    "h100-sxm": {"nvlink": 450, "network": 50},
    "tpu-v4": {"ici": 300, "dcn": 6.25},
    "tpu-v5e": {"ici": 200, "dcn": 3.125},
    "tpu-v5p": {"ici": 600, "dcn": 6.25},
}
TORI = {"tpu-v4": (16, 16, 16), "tpu-v5e": (16, 16), "tpu-v5p": (16, 20, 28)}
DTYPES = {"f64", "f32", "tf32", "bf16", "f16", "f8", "s32", "s8", "s4"}

shipped = pytest.mark.parametrize("name", sorted(SENT))
every = pytest.mark.parametrize("name", profile_names())


def is_about_time(key: str) -> bool:
    """Return True for a figure that models of time need beside the peaks."""
    ends = ("clock", "kernel_overhead", "latency", "reduction", "wraparound", "low_latency_bandwidth")
    return key.startswith(("links.host.", "efficiency.", "cores_per_")) or key.endswith((*ends, "efficiency"))


# Clock in GHz, kernel overhead in us, efficiency and latency in us of the nearest links, GB/s from the host; bf16 or f16 in
# TFLOP/s, memory in GB/s.
TIME_FIGURES: dict[str, tuple[float | None, ...]] = {
    "a100-sxm-40gb": (1.41, 1, 0.8, 3.4, 32, 312, 1555),
    "a100-sxm-80gb": (1.41, 1, 0.8, 3.4, 32, 312, 2039),
    "b200": (1.965, 1, 0.802, 3.4, 128, 2250, 8000),
    "gb200": (2.062, 1, 0.802, 3.4, None, 2500, 8000),
    "h100-pcie": (1.755, 1, 0.824, 3.4, 64, 756, 2039),
    "h100-sxm": (1.98, 1, 0.824, 3.4, 64, 989.4, 3352),
    "h200": (1.98, 1, 0.824, 3.4, 64, 989, 4800),
    "l4": (2.04, 1, None, 5.7, 32, 121, 300),
    "l40s": (None, 1, None, 5.7, 32, 362.05, 864),
    "mi250x": (1.7, 1, 0.9, None, None, 383, 3276.8),
    "mi300x": (None, 1, 0.9, None, 64, 1307.4, 5300),
    "tpu-7x": (1.9, 1.2, None, 1, None, 2307, 7380),
    "tpu-v2": (0.7, None, None, None, None, 46, 716),
    "tpu-v3": (0.94, None, None, 1, None, 123, 900),
    "tpu-v4": (1.05, 0.58, 0.9, 1, None, 275, 1200),
    "tpu-v5e": (1.5, 1.2, 0.9, 1, None, 197, 819),
    "tpu-v5p": (1.75, 1.2, 0.9, 1, None, 459, 2765),
    "tpu-v6e": (1.75, 1.2, 0.9, 1, None, 918, 1638),
    "trainium2": (None, None, None, None, None, 667, 2900),
    "v100-sxm2": (1.53, 1, 0.8, 3.4, 16, 125, 900),
}


@every
def test_figures_that_times_need(name: str) -> None:
    profile = load_profile(name)
    near = profile.networks[0]
    figures = (
        in_units(profile.clock, 1e9),
        in_units(profile.kernel_overhead, 1e-6),
        near.efficiency,
        in_units(near.latency, 1e-6),
        in_units(profile.host_bandwidth, GIGA),
        in_units(profile.value("matmul.bf16") or profile.value("matmul.f16"), TERA),
        in_units(profile.memory_bandwidth, GIGA),
    )
    assert figures == pytest.approx(TIME_FIGURES[name])
    assert "links.host.bandwidth" in profile.figures


def in_units(figure: float | None, unit: float) -> float | None:
    return None if figure is None else figure / unit


@every
def test_primary_figures_come_from_the_maker(name: str) -> None:
    """A source that is not of the maker is no primary one."""
    profile = load_profile(name)
    makers = {"Google": "Google", "AWS": "AWS"}.get(profile.maker, profile.maker)
    for key, figure in profile.figures.items():
        if figure is not None and figure.confidence == "primary":
            assert makers in profile.sources[figure.source].publisher, key


def test_profiles_are_listed_by_name() -> None:
    nvidia = ("a100-sxm-40gb", "a100-sxm-80gb", "b200", "gb200", "h100-pcie", "h100-sxm", "h200", "l4", "l40s")
    google = ("tpu-7x", "tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e")
    assert profile_names() == (*nvidia, "mi250x", "mi300x", *google, "trainium2", "v100-sxm2")


@every
def test_every_figure_is_that_of_its_source(name: str) -> None:
    profile = load_profile(name)
    figures = {key: figure.value for key, figure in profile.figures.items() if figure}
    assert {key: value for key, value in figures.items() if not is_about_time(key)} == FIGURES[name]


@shipped
def test_unknown_figures_are_listed_too(name: str) -> None:
    keys = set(load_profile(name).figures)
    assert keys >= {f"{engine}.{dtype}" for engine in ("matmul", "vector") for dtype in DTYPES}
    assert keys >= {f"links.{level}.{part}" for level in SENT[name] for part in ("bandwidth", "count", "devices")}


@every
def test_every_source_is_there_used_and_complete(name: str) -> None:
    profile = load_profile(name)
    used = {figure.source for figure in profile.figures.values() if figure}
    extends = extends_node(configs.read(profile.path))
    inherited = set() if extends is None else set(load_profile(extends.text()).sources)
    assert used <= set(profile.sources) <= used | inherited
    for key, source in profile.sources.items():
        assert source.id == key
        assert source.url.startswith("https://")
        assert all((source.title, source.publisher, source.version, source.page))


@every
def test_units_follow_from_the_name_of_the_figure(name: str) -> None:
    units = {
        "matmul": "flops_per_s",
        "vector": "flops_per_s",
        "on_chip": "bytes",
        "capacity": "bytes",
        "usable": "bytes",
        "bandwidth": "bytes_per_s",
        "low_latency_bandwidth": "bytes_per_s",
        "clock": "hertz",
        "latency": "seconds",
        "kernel_overhead": "seconds",
        "efficiency": "ratio",
        "reduction_efficiency": "ratio",
        "in_network_reduction": "flag",
    }
    for key, figure in load_profile(name).figures.items():
        parts = key.split(".")
        assert figure is None or figure.unit == units.get(parts[0], units.get(parts[-1], "count")), key


@shipped
def test_bandwidth_sent_by_a_device(name: str) -> None:
    links = load_profile(name).networks
    assert {link.name: link.send_bandwidth and link.send_bandwidth / GIGA for link in links} == SENT[name]
    assert [link.name for link in links] == list(SENT[name])  # the nearest first


@shipped
def test_topologies(name: str) -> None:
    near, far = load_profile(name).networks
    assert (near.topology, far.topology) == ("torus" if name in TORI else "switch", "network")
    assert near.devices is not None
    assert near.devices.axes == TORI.get(name, ())


def test_named_values() -> None:
    profile = load_profile("h100-sxm")
    assert (profile.name, profile.title, profile.maker) == ("h100-sxm", "NVIDIA H100 SXM5 80 GB", "NVIDIA")
    assert profile.value("matmul.bf16") == 989_400_000_000_000
    assert profile.value("vector.f32") == 66_900_000_000_000
    assert profile.value("matmul.s4") is None
    assert profile.memory_capacity == 80 * GIGA
    assert profile.memory_bandwidth == 3352 * GIGA
    assert profile.devices_per_node == 8


@pytest.mark.parametrize(("name", "closest"), [("h100", "h100-sxm"), ("v5p", "tpu-v5p"), ("a100", "a100-sxm-40gb")])
def test_unknown_name_lists_the_closest_first(name: str, closest: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile(name)
    assert caught.value.message.startswith(f"no profile {name!r}; there are: {closest}, ")
    assert all(shipped in caught.value.message for shipped in profile_names())


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file") as caught:
        load_profile(tmp_path / "mine.yaml")
    assert caught.value.path == str(tmp_path / "mine.yaml")


OURS = """\
sources:
  - {id: ours, title: Handbook, publisher: us, version: "3", url: "https://example.org", page: section 4}
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_extending_replaces_whole_figures_and_keeps_the_rest(tmp_path: Path) -> None:
    text = "extends: h100-sxm\ntitle: Two rails\nlinks:\n  network:\n    count: {value: 2, per: node, source: ours}\n" + OURS
    profile, base = load_profile(write(tmp_path, "mine.yaml", text)), load_profile("h100-sxm")
    changed = {key for key, figure in profile.figures.items() if figure != base.figures[key]}
    assert changed == {"links.network.count"}
    assert list(profile.figures) == list(base.figures)
    assert profile.links["network"].send_bandwidth == 2 * 50e9 / 8
    assert profile.links["nvlink"] == base.links["nvlink"]
    assert (profile.name, profile.title, profile.maker) == ("mine", "Two rails", "NVIDIA")
    assert profile.sources == dict(base.sources) | {"ours": profile.sources["ours"]}
    before, after = base.figures["links.network.count"], profile.figures["links.network.count"]
    assert before is not None
    assert after is not None
    assert (bool(before.note), after.note, after.source) == (True, "", "ours")


def test_extending_a_file_that_extends_and_forgetting_a_figure(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", "extends: tpu-v4\nmatmul:\n  bf16: {value: 200 TFLOP/s, source: ours}\n" + OURS)
    profile = load_profile(write(tmp_path, "two.yaml", "extends: ./one.yaml\nmatmul: {s8: null}\n"))
    assert profile.value("matmul.bf16") == 200 * TERA
    assert profile.value("matmul.s8") is None
    assert profile.memory_capacity == 32 * GIB


EXTENDING_ERRORS = [
    ("extends: h100\n", "no profile 'h100'; there are: h100-sxm, ", (1, 10)),
    ("extends: [h100-sxm]\n", "expected a value of kind text", (1, 10)),
    ("title: x\nextends: other.yaml\n", "no file 'other.yaml'", (2, 10)),
    (f"extends: {'x' * 300}.yaml\n", "no file 'xxx", (1, 10)),
    ("extends: mine.yaml\n", "extends itself: mine.yaml -> mine.yaml", (1, 10)),
    ("extends: tpu-v4\nmatmul:\n  f16: {value: 1 TFLOP/s}\n", "missing key: source", (3, 8)),
    ("extends: tpu-v4\nmatmul:\n  f16: {value: 1 TFLOP/s, source: ours}\n", "no source has the id 'ours'", (3, 35)),
    ("extends: tpu-v4\n" + OURS.replace("ours", "cloud-v4"), "a second source with the id 'cloud-v4'", (3, 10)),
    ("extends: tpu-v4\nlinks:\n  rail:\n    count: null\n", "missing key: topology", (4, 5)),
]


def test_a_long_chain_of_extensions_is_refused(tmp_path: Path) -> None:
    for number in range(1200):
        write(tmp_path, f"p{number}.yaml", f"extends: p{number + 1}.yaml\n")
    with pytest.raises(UsageError, match="extends more than 20 others"):
        load_profile(tmp_path / "p0.yaml")


def test_a_bandwidth_without_a_unit_is_refused(tmp_path: Path) -> None:
    """Bits or bytes, giga or tera: a plain number does not say."""
    figures = "memory:\n  bandwidth: {value: 3350000000000, source: ours}\n"
    path = write(tmp_path, "mine.yaml", f"extends: tpu-v4\n{figures}" + OURS)
    with pytest.raises(UsageError, match="'3350000000000' has no unit: write a bandwidth such as"):
        load_profile(path)


@pytest.mark.parametrize(("text", "message", "place"), EXTENDING_ERRORS)
def test_errors_of_extending(tmp_path: Path, text: str, message: str, place: tuple[int, int]) -> None:
    path = write(tmp_path, "mine.yaml", text)
    with pytest.raises(UsageError) as caught:
        load_profile(path)
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line, caught.value.column) == (path, *place)


def test_a_circle_of_files_is_refused_where_it_closes(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "title: b\nextends: a.yaml\n")
    with pytest.raises(UsageError, match=r"a\.yaml -> b\.yaml -> a\.yaml") as caught:
        load_profile(write(tmp_path, "a.yaml", "extends: b.yaml\n"))
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(tmp_path / "b.yaml"), 2, 10)


def test_an_error_in_the_base_has_its_place_there(tmp_path: Path) -> None:
    base = write(tmp_path, "base.yaml", "extends: tpu-v4\nmemry: {}\n")
    with pytest.raises(UsageError, match="did you mean 'memory'") as caught:
        load_profile(write(tmp_path, "mine.yaml", "extends: base.yaml\n"))
    assert (caught.value.path, caught.value.line, caught.value.column) == (base, 2, 1)


def test_the_example_of_the_format_description_loads(tmp_path: Path) -> None:
    readme = (shipped_configs("hardware") / "README.md").read_text(encoding="utf-8")
    example = readme.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "mine.yaml").write_text(example, encoding="utf-8")
    assert load_profile(tmp_path / "mine.yaml").links["network"].send_bandwidth == 2 * 50e9 / 8
