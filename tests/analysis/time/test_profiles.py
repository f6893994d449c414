"""The profile that times are for: told by the files of a dump, with changed figures; and what is refused.

tests/cases/analysis/time has what marks in a text tell.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.analysis.memory.platforms import find_platform
from hlo_inspect.analysis.time.placement import Placement, given_placement
from hlo_inspect.analysis.time.profile_choice import MachineOptions, ProfileChoice, changed, given_change
from hlo_inspect.analysis.time.utilization import longest_parts
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Quantity, at_least, exact
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost

DATA = Path(__file__).parents[2] / "data"

TPU = """HloModule m, is_scheduled=true, entry_computation_layout={{(f32[8,128]{{1,0:T(8,128)}})->f32[8,128]{{1,0:T(8,128)}}}}
ENTRY main {{
  p = f32[8,128]{{1,0:T(8,128)}} parameter(0)
  a = f32[8,128]{{1,0:T(8,128){space}}} negate(p), backend_config={{"window_config":{{"estimated_cycles":"{cycles}"}}{more}}}
  ROOT b = f32[8,128]{{1,0:T(8,128)}} negate(a), backend_config={{"window_config":{{"estimated_cycles":"{cycles}"}}}}
}}
"""
PLAIN = "HloModule m\nENTRY main {\n  p = f32[8]{0} parameter(0)\n  ROOT b = f32[8]{0} negate(p)\n}\n"


def context(text: str) -> Context:
    (module,) = read_modules(open_source(text), Cost.wants)
    return Context(module)


def choice_of(text: str) -> ProfileChoice:
    read = context(text)  # which has to outlive what it hands out
    return read.on_machine.profile_choice


def tpu(cycles: int, space: str = "", more: str = "") -> str:
    return TPU.format(cycles=cycles, space=space, more=more)


GENERATIONS = [
    (tpu(611, "S(3)"), "tpu-v4"),
    (tpu(1826, "S(1)"), "tpu-v5e"),
    (tpu(2125, "S(1)", ',"megacore_config":{"megacore_split_dim":"0"}'), "tpu-v5p"),
    (tpu(2121, "S(1)"), "tpu-v6e"),
    (tpu(2299, "S(1)"), "tpu-7x"),
]


@pytest.mark.parametrize(("text", "profile"), GENERATIONS, ids=[name for _, name in GENERATIONS])
def test_memory_knows_the_generation_that_times_are_for(text: str, profile: str) -> None:
    """Tables of tuples are rounded up to 512 bytes on v4 and v5e, to 32 bytes on those whose cores work as one and later."""
    read = context(text)
    platform = find_platform(read.module, read.views)
    assert platform.table_alignment == (512 if profile in ("tpu-v4", "tpu-v5e") else 32)


def test_memory_knows_a_generation_by_kernels_of_larger_arrays() -> None:
    """Memory and times look for the marks of a generation in one way: at 8 KiB, too, 2299 cycles are the least of a TPU7x."""
    text = tpu(2299, "S(1)").replace("[8,128]", "[16,128]")
    read = context(text)
    profile = choice_of(text).profile
    assert profile is not None
    assert (profile.name, find_platform(read.module, read.views).table_alignment) == ("tpu-7x", 32)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("tpu/collectives", "tpu-v5e"),
        ("tpu/scan_forward", "tpu-v5e"),
        ("tpu/sgd_unused", "tpu-v5e"),
        ("tpu/between_slices", "tpu-v5e"),
        ("tpu_jax_0_12/collectives", "tpu-v5e"),
        ("tpu_jax_0_12/sgd_unused", "tpu-v5e"),
        ("tpu/bf16_master", "tpu-v5e"),  # one small kernel, 1,837 cycles, and prefetches
        ("tpu_jax_0_12/gathered_matmul", "tpu-v5e"),  # one, 1,826 cycles, and prefetches
    ],
)
def test_dumps_of_a_v5e_are_told_by_two_marks_or_more(name: str, profile: str) -> None:
    choice = choice_of((DATA / f"{name}.after.txt").read_text())
    assert (choice.profile and choice.profile.name) == profile


TOPOLOGY = (
    'platform_id: 1\nplatform_name: "tpu"\nplatform_version: "TFRT {}\\nBuilt on Nov 5 2026 01:07:28 (1793869648) cl/1"\n'
)
ARGUMENTS = "replica_count: 1\ntpu_topology_args {{\n  version: {}\n  platform_type: TPU_PLATFORM_TYPE_HARDWARE\n}}\n"


@pytest.mark.parametrize(
    ("topology", "arguments", "profile"),
    [
        ("TPU v5 lite", None, "tpu-v5e"),
        ("TPU v5", None, "tpu-v5p"),
        ("TPU v6 lite", None, "tpu-v6e"),
        ("TPU7x", "TPU_VERSION_GHOSTLITE", "tpu-7x"),
        ("TPU v9", None, None),
        (None, 'TPU_VERSION_VIPERFISH\n  variant: "lite"', "tpu-v5e"),
        (None, "TPU_VERSION_VIPERFISH", "tpu-v5p"),
        (None, "TPU_VERSION_JELLYFISH", "tpu-v2"),
    ],
)
def test_files_of_a_dump_decide_its_generation(
    tmp_path: Path, topology: str | None, arguments: str | None, profile: str | None
) -> None:
    """The text has the marks of a v6e; libtpu 0.0.52 wrote these words for each topology that it was asked for."""
    path = tmp_path / "module_0000.jit_step.cl_1.after_optimizations.txt"
    path.write_text(tpu(2121, "S(1)"))
    if topology is not None:
        (tmp_path / "module_0000.jit_step.cl_1").mkdir()
        (tmp_path / "module_0000.jit_step.cl_1/topology.textproto").write_text(TOPOLOGY.format(topology))
    if arguments is not None:
        (tmp_path / "module_0000.jit_step.cl_1.target_arguments.txt").write_text(ARGUMENTS.format(arguments))
    choice = choice_of(str(path))
    assert (choice.profile and choice.profile.name) == profile
    if profile is None:
        assert choice.notes == ("there is no profile of TPU v9, for which the dump was compiled: name one with --profile",)
    else:
        assert choice.chosen_by.endswith("of the dump")


def gpu_dump(folder: Path, device: str) -> Path:
    (folder / "module_0001.jit_f.gpu_target_config.pbtxt").write_text(f'gpu_device_info {{\n  name: "{device}"\n}}\n')
    text = folder / "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt"
    text.write_text(PLAIN)
    return text


@pytest.mark.parametrize(
    ("device", "profile"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200 141GB HBM3e", "h200"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
    ],
)
def test_the_file_about_the_gpu_beside_a_dump_tells(tmp_path: Path, device: str, profile: str) -> None:
    report = hlo_inspect.inspect(gpu_dump(tmp_path, device), "cost")
    assert report.profile == profile
    assert report.facts["time.memory_s"] is not None


def test_a_gpu_without_a_profile_is_named(tmp_path: Path) -> None:
    (module,) = read_modules(open_source(gpu_dump(tmp_path, "NVIDIA RTX A6000")), Cost.wants)
    read = Context(module)
    choice = read.on_machine.profile_choice
    assert choice.profile is None
    assert choice.notes[0].startswith("there is no profile of NVIDIA RTX A6000, for which the dump was compiled")


# -- what-if ----------------------------------------------------------------------------------------------------------------


def test_changed_figures() -> None:
    profile = changed(load_profile("h100-sxm"), [given_change("links.nvlink.bandwidth=2x"), given_change("peak.bf16 = 0.5x")])
    assert profile.links["nvlink"].send_bandwidth == 900e9
    assert profile.value("matmul.bf16") == 494.7e12
    assert changed(profile, [given_change("links.nvlink.count=1.5x")]).links["nvlink"].send_bandwidth == 1350e9
    assert profile.changes == ("links.nvlink.bandwidth × 2", "peak.bf16 × 0.5")
    assert profile.figures["memory.bandwidth"] == load_profile("h100-sxm").figures["memory.bandwidth"]


def test_a_program_with_and_without_changes() -> None:
    (module,) = read_modules(open_source(PLAIN), Cost.wants)
    machine = MachineOptions((load_profile("h100-sxm"),), (given_change("memory.bandwidth=2x"),))
    faster = Context(module, options=ParsedOptions(machine))
    before = faster.without_changes()
    for context, bandwidth in ((faster, 6704e9), (before, 3352e9)):
        assert context.on_machine.profile is not None
        assert context.on_machine.profile.memory_bandwidth == bandwidth


def test_kernels_take_on_each_profile_what_it_says() -> None:
    """Also after they were asked for on another one. The kernel reads and writes 32 bytes."""
    (module,) = read_modules(open_source(PLAIN), Cost.wants)
    first = Context(module, options=ParsedOptions(MachineOptions((load_profile("h100-sxm"), load_profile("tpu-v5e")))))
    assert first.on_machine.costings
    for machine in first.on_each_profile():
        (costing,) = machine.on_machine.costings
        profile = machine.on_machine.profile
        assert profile is not None
        assert profile.memory_bandwidth is not None
        assert costing.cost.time is not None
        assert exact(costing.cost.time.bound) == pytest.approx(64 / profile.memory_bandwidth)


@pytest.mark.parametrize(
    "text",
    [
        "bandwidth",
        "memory.bandwidth=2",
        "memory.bandwidth=0x",
        "memory.bandwidth=-1x",
        "=2x",
        "memory.bandwidth=1/0x",
        "x" * 900,
    ],
)
def test_malformed_changes_of_a_profile_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a change of a profile: write it like"):
        given_change(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("memory.bandwith=2x", "has no figure 'memory.bandwith'; did you mean 'memory.bandwidth'"),
        ("matmul.s4=2x", "states no matmul.s4, so nothing can be multiplied"),
        ("links.nvlink.in_network_reduction=2x", "cannot be multiplied"),
        ("links.nvlink.count=0.3x", "is not a whole number of them"),
        ("links.nvlink.efficiency=2x", "a share is at most 1"),
    ],
)
def test_changes_that_a_profile_cannot_have(change: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        changed(load_profile("h100-sxm"), [given_change(change)])


def test_the_longest_parts_of_a_step_are_those_that_take_time() -> None:
    parts: dict[str, Quantity] = {"matrix unit": 2.0, "memory": 5.0, "nvlink": at_least(4.0, "a part is unknown"), "host": 0.0}
    assert longest_parts(parts) == ["memory", "nvlink", "matrix unit"]


# -- placement --------------------------------------------------------------------------------------------------------------


def test_placements() -> None:
    assert given_placement("2x8", None) == Placement((2, 8), (0, 1), 8)
    assert given_placement("16", None) == Placement((16,), (0,), None)
    assert given_placement(None, 4) == Placement(per_node=4)
    assert [given_placement("2x4", None).coordinates(device) for device in (0, 3, 4, 7)] == [(0, 0), (0, 3), (1, 0), (1, 3)]
    assert [given_placement("2x4T(1,0)", None).coordinates(device) for device in (0, 1, 2, 7)] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 3),
    ]


@pytest.mark.parametrize(
    ("topology", "per_node", "message"),
    [
        ("2x", None, "is not a topology"),
        ("0x8", None, "is not a topology"),
        ("8x-1", None, "is not a topology"),
        ("9999999x9999999", None, "is not a topology"),
        ("٢x٨", None, "is not a topology"),
        ("2x8T(0,0)", None, "does not name each of its 2 axes once"),
        ("2x8", 3, "16 devices do not fill nodes of 3"),
        (None, 0, "1 device or more"),
        (None, 1 << 30, "up to"),
    ],
)
def test_malformed_placements_are_refused(topology: str | None, per_node: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        given_placement(topology, per_node)
