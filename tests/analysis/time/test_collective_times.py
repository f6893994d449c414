"""Collectives on the links of a machine, each time worked out by hand from what its groups send."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.analysis.time.collective_times import ALL, CollectiveTime
from hlo_inspect.analysis.time.placement import given_placement
from hlo_inspect.analysis.time.profile_choice import MachineOptions
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import exact, least, reason
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost

GPT = Path(__file__).parents[4] / "shared/dumps/seeds/001_f260b7b1b8c886c1.txt"
ADD = """add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""
MIB = 1 << 20
SUM = "use_global_device_ids=true, to_apply=add"
OURS = "sources: [{id: ours, title: A, publisher: B, version: C, url: D, page: E}]\n"


def module(
    devices: int, kind: str, groups: str, rest: str = SUM, *, operand: int = MIB, result: int | None = None, config: str = ""
) -> str:
    """Write a program with one collective; `operand` and `result` are bytes."""
    size, gives = operand // 4, (operand if result is None else result) // 4
    listed = groups if groups.startswith("source") else f"replica_groups={groups}"
    return (
        f"HloModule m, is_scheduled=true, num_partitions={devices}, "
        f"entry_computation_layout={{(f32[{size}]{{0}})->f32[{gives}]{{0}}}}\n{ADD}"
        f"ENTRY main {{\n  p = f32[{size}]{{0}} parameter(0)\n"
        f"  ROOT c = f32[{gives}]{{0}} {kind}(p), channel_id=1, {listed}{rest and ', '}{rest}{config}\n}}\n"
    )


def context(text: str, profile: str, topology: str | None = None, per_node: int | None = None) -> Context:
    (module_read,) = read_modules(open_source(text), Cost.wants)
    return Context(
        module_read, options=ParsedOptions(MachineOptions((load_profile(profile),), (), given_placement(topology, per_node)))
    )


def time_of(text: str, profile: str, topology: str | None = None, per_node: int | None = None) -> CollectiveTime:
    context_of_text = context(text, profile, topology, per_node)
    (time,) = context_of_text.on_machine.collective_times
    return time


def us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


ALL_OF_8 = "{{0,1,2,3,4,5,6,7}}"
IN_TORUS = {
    # one ring of 16 that wraps round: two links of 50 GB/s
    "ring of 16": ("tpu-v5e", "16", 16, "all-reduce", "[1,16]<=[16]", 2 * 15 / 16 * MIB / 100e3),
    # a line of 8: its end has one link
    "line of 8": ("tpu-v5e", "8", 8, "all-reduce", "[1,8]<=[8]", 2 * 7 / 8 * MIB / 50e3),
    # 2x4: a corner has a link along each axis
    "2x4": ("tpu-v5e", "2x4", 8, "all-reduce", "[1,8]<=[8]", 2 * 7 / 8 * MIB / 100e3),
    "rows of 2x4": ("tpu-v5e", "2x4", 8, "all-reduce", "[2,4]<=[8]", 2 * 3 / 4 * MIB / 50e3),
    "columns of 2x4": ("tpu-v5e", "2x4", 8, "all-reduce", "[4,2]<=[2,4]T(1,0)", 2 * 1 / 2 * MIB / 50e3),
    # every second device of a line of 8: two groups share its links
    "every second of 8": ("tpu-v5e", "8", 8, "all-reduce", "[2,4]<=[4,2]T(1,0)", 2 * 2 * 3 / 4 * MIB / 50e3),
    # v5p: axes that are multiples of 4 are rings, of 100 GB/s a link
    "4x4x8 of v5p": ("tpu-v5p", "4x4x8", 128, "all-reduce", "[1,128]<=[128]", 2 * 127 / 128 * MIB / 600e3),
    "4x2 of v5p": ("tpu-v5p", "4x2", 8, "all-reduce", "[1,8]<=[8]", 2 * 7 / 8 * MIB / 300e3),
}


@pytest.mark.parametrize(("profile", "topology", "devices", "kind", "groups", "bound"), IN_TORUS.values(), ids=IN_TORUS)
def test_all_reduces_in_a_torus(profile: str, topology: str, devices: int, kind: str, groups: str, bound: float) -> None:
    text = module(devices, kind, groups)
    if profile == "tpu-v5p":  # a device is a chip if its kernels are split over both cores
        split = 'k = f32[8]{0:T(128)} iota(), iota_dimension=0, backend_config={"megacore_config":{}}'
        text = text.replace("ROOT c", f"{split}\n  ROOT c")
    time = time_of(text, profile, topology)
    assert us(time.bound_s) == pytest.approx(bound)
    assert time.level == "ici"


def test_other_kinds_in_a_torus() -> None:
    """In a 4x4 of v5e, which does not wrap round, and along a ring of 16."""
    gather = module(16, "all-gather", "[1,16]<=[16]", "use_global_device_ids=true, dimensions={0}", result=16 * MIB)
    assert us(time_of(gather, "tpu-v5e", "4x4").bound_s) == pytest.approx(15 * MIB / 100e3)
    assert us(time_of(gather, "tpu-v5e", "16").bound_s) == pytest.approx(15 * MIB / 100e3)
    scatter = module(16, "reduce-scatter", "[1,16]<=[16]", f"{SUM}, dimensions={{0}}", result=MIB // 16)
    assert us(time_of(scatter, "tpu-v5e", "4x4").bound_s) == pytest.approx(15 / 16 * MIB / 100e3)
    exchange = module(16, "all-to-all", "[1,16]<=[16]", "dimensions={0}")
    # half of each device's data crosses the middle: N/8 of it over a ring's two links, N/4 over a line's one
    assert us(time_of(exchange, "tpu-v5e", "16").bound_s) == pytest.approx(MIB * 16 / 8 / 50e3)
    assert us(time_of(exchange, "tpu-v5e", "4x4").bound_s) == pytest.approx(MIB * 4 / 4 / 50e3)


def test_permutes_in_a_torus() -> None:
    """A shift of a line of 4 sends each array over one link, and one all the way back; the other way it is all on one link."""
    shift = module(4, "collective-permute", "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", "")
    assert us(time_of(shift, "tpu-v5e", "4").bound_s) == pytest.approx(MIB / 50e3)
    crowded = module(4, "collective-permute", "source_target_pairs={{0,3},{1,2}}", "")
    assert us(time_of(crowded, "tpu-v5e", "4").bound_s) == pytest.approx(2 * MIB / 50e3)
    alone = module(4, "collective-permute", "source_target_pairs={{0,0}}", "")
    assert time_of(alone, "tpu-v5e", "4").bound_s == 0


def test_without_a_topology_the_best_place_is_taken() -> None:
    """8 chips of v5e can be a 2x4, 4 of them a 2x2; of v5p 8 can be a 2x2x2. Nothing can be faster."""
    assert us(time_of(module(8, "all-reduce", ALL_OF_8), "tpu-v5e").bound_s) == pytest.approx(2 * 7 / 8 * MIB / 100e3)
    assert us(time_of(module(8, "all-reduce", "[2,4]<=[8]"), "tpu-v5e").bound_s) == pytest.approx(2 * 3 / 4 * MIB / 100e3)
    assert us(time_of(module(8, "all-reduce", ALL_OF_8), "tpu-v5p").bound_s) == pytest.approx(2 * 7 / 8 * MIB / 300e3)


def test_the_compiler_tells_how_many_directions_it_uses() -> None:
    """45 of 50 GB/s, in one direction of a ring; of tiny arrays all that takes time are the hops, 4 of 1 us there and back."""
    config = ', backend_config={"collective_algorithm_config":{"debug":"\\nStrategyRing{colors:1 phases:1 cores:{8}}"}}'
    time = time_of(module(8, "all-reduce", ALL_OF_8, config=config), "tpu-v5e")
    assert us(time.estimate_s) == pytest.approx(2 * 7 / 8 * MIB / 45e3)
    assert time.bus_bandwidth == pytest.approx(45e9)
    small = time_of(module(8, "all-reduce", ALL_OF_8, operand=64), "tpu-v5e", "2x4")
    assert us(small.estimate_s) == pytest.approx(2 * (1 + 3))


def test_collectives_that_differ_in_one_detail_have_times_of_their_own() -> None:
    """The first two are equal. The others differ in groups, bytes, kind and the compiler's directions."""
    config = ', backend_config={"collective_algorithm_config":{"debug":"\\nStrategyRing{colors:1 phases:1 cores:{8}}"}}'
    others = [
        module(8, "all-reduce", "[2,4]<=[8]"),
        module(8, "all-reduce", ALL_OF_8, operand=MIB // 4),
        module(8, "reduce-scatter", ALL_OF_8, f"{SUM}, dimensions={{0}}", result=MIB // 8),
        module(8, "all-reduce", ALL_OF_8, config=config),
    ]
    texts = [module(8, "all-reduce", ALL_OF_8), module(8, "all-reduce", ALL_OF_8), *others]
    rows = []
    for number, text in enumerate(texts):
        parameter, root = text.splitlines()[-3:-1]
        rows += [parameter.replace("p =", f"p{number} =").replace("parameter(0)", f"parameter({number})")]
        rows += [
            root.replace("ROOT c", f"c{number}")
            .replace("(p)", f"(p{number})")
            .replace("channel_id=1", f"channel_id={number + 1}")
        ]
    entry = "\n".join(["ENTRY main {", *rows, "  ROOT r = f32[] constant(0)", "}", ""])
    whole = f"HloModule m, is_scheduled=true, num_partitions=8\n{ADD}{entry}"
    context_of_all = context(whole, "tpu-v5e")
    first, second, *different = context_of_all.on_machine.collective_times
    assert first is second
    assert us(first.bound_s) == pytest.approx(2 * 7 / 8 * MIB / 100e3)
    assert [time[:3] for time in different] == [time_of(text, "tpu-v5e")[:3] for text in others]
    assert len({time[:2] for time in (first, *different)}) == 5


def test_half_chips_share_the_links_of_their_chip() -> None:
    """On a v4 without megacore, devices 0 and 1 are one chip.

    Four chips have 50 GB/s a link and both their devices in each group: 3/4 of the array goes over two links. Each device alone
    has half of them.
    """
    tiled = "k = f32[8]{0:T(128)S(3)} iota(), iota_dimension=0\n  ROOT c"
    both = module(8, "all-reduce", ALL_OF_8).replace("ROOT c", tiled)
    assert us(time_of(both, "tpu-v4", "2x2").bound_s) == pytest.approx(2 * 3 / 4 * MIB / 100e3)
    tiled_text = module(8, "all-reduce", "{{0,2,4,6},{1,3,5,7}}").replace("ROOT c", tiled)
    assert us(time_of(tiled_text, "tpu-v4", "2x2").bound_s) == pytest.approx(2 * 2 * 3 / 4 * MIB / 100e3)
    whole = context(module(8, "all-reduce", "[4,2]<=[8]").replace("ROOT c", tiled), "tpu-v4")
    inside = whole.on_machine
    assert inside.collective_times[0].bound_s is None
    assert "cores of one chip" in inside.collective_times[0].reason
    assert inside.profile is not None
    assert (inside.profile.value("matmul.bf16"), inside.profile.memory_bandwidth) == (137.5e12, 600e9)
    assert any("half a chip" in note for note in inside.profile_choice.notes)


OVER_NODES = {
    # 2 nodes of 8 A100: 4 devices of each node in each group, so that two groups share its 8 adapters of 25 GB/s
    "half of each node": ("[2,8]<=[2,2,4]T(1,0,2)", "network", 2 * (1 / 2) * MIB / (4 * 25e3)),
    "one of each node": ("[8,2]<=[2,8]T(1,0)", "network", 2 * (1 / 2) * MIB / 25e3),
    "inside of nodes": ("[2,8]<=[16]", "nvlink", 2 * 7 / 8 * MIB / 300e3),
    "all": ("[1,16]<=[16]", "nvlink", 2 * 7 / 8 * MIB / 300e3),
}


@pytest.mark.parametrize(("groups", "level", "bound"), OVER_NODES.values(), ids=OVER_NODES)
def test_all_reduces_over_nodes(groups: str, level: str, bound: float) -> None:
    """All 16 devices: nodes need 1 MiB / 200 GB/s = 5.24 us, links inside 2·7/8 MiB / 300 GB/s = 6.12 us."""
    time = time_of(module(16, "all-reduce", groups), "a100-sxm-80gb")
    assert time.level == level
    assert us(time.bound_s) == pytest.approx(bound)
    if groups == "[1,16]<=[16]":
        assert dict(time.levels)["network"] * 1e6 == pytest.approx(MIB / 200e3)


def test_one_group_alone_may_have_all_adapters_of_its_nodes() -> None:
    time = time_of(module(16, "all-reduce", "{{0,8}}"), "a100-sxm-80gb")
    assert us(time.bound_s) == pytest.approx(MIB / 200e3)
    assert us(time.estimate_s) == pytest.approx(14 + 2 * 4 + MIB / (25e3 * 0.96 * 0.92))  # LL128, on its own adapter


def test_placement_that_the_user_names() -> None:
    pairs = module(16, "all-reduce", "[8,2]<=[16]")
    assert time_of(pairs, "a100-sxm-80gb").level == "nvlink"
    assert time_of(pairs, "a100-sxm-80gb", per_node=1).level == "network"
    assert time_of(pairs, "a100-sxm-80gb", "2x8").level == "nvlink"
    assert time_of(pairs, "a100-sxm-80gb", "2x8T(1,0)").level == "network"  # 0 and 1 are the first device of each node


def test_an_all_reduce_in_one_kernel_of_xla() -> None:
    """1 us, 7 arrays of 64 KiB over 370.8 GB/s, and a barrier of 1.5 us."""
    config = ', backend_config={"collective_backend_config":{"kernel_strategy":"TRITON_ONE_SHOT"}}'
    time = time_of(module(8, "all-reduce", ALL_OF_8, operand=65536, config=config), "h100-sxm")
    assert us(time.estimate_s) == pytest.approx(2.5 + 7 * 65536 / 370.8e3)


def test_levels_beyond_the_machine() -> None:
    """More devices than the links join, and no farther level: no time, and a reason that names what is missing."""
    over = time_of(module(16, "all-reduce", "[1,16]<=[16]"), "v100-sxm2")
    assert (over.bound_s, over.estimate_s) == (None, None)
    assert "states no bandwidth of network" in over.reason
    many = time_of(module(512, "all-reduce", "[1,512]<=[512]"), "tpu-v5e")
    assert many.bound_s is None
    assert "512 chips does not fit in the 16x16 of ici" in many.reason
    unknown = time_of(module(8, "all-reduce", ALL_OF_8), "l4")
    assert "--devices-per-node" in unknown.reason
    assert time_of(module(8, "all-reduce", ALL_OF_8), "l4", per_node=8).bound_s == pytest.approx(1.75 * MIB / 32e9)
    without = time_of(module(8, "all-reduce", ALL_OF_8), "mi300x")
    assert without.bound_s == pytest.approx(1.75 * MIB / 448e9)
    assert (without.estimate_s, without.reason) == (None, "no estimate: the profile mi300x states no links.xgmi.latency")


def test_a_topology_with_fewer_devices_than_the_program_is_refused() -> None:
    with pytest.raises(UsageError, match="the topology 2x2 has 4 devices, and the program is for 8"):
        time_of(module(8, "all-reduce", ALL_OF_8), "h100-sxm", "2x2")


@pytest.mark.parametrize("topology", ["2x2x2", "32"])
def test_a_topology_that_the_machine_does_not_have_is_refused(topology: str) -> None:
    with pytest.raises(UsageError, match=f"the topology {topology} does not fit in the 16x16 of ici of tpu-v5e"):
        time_of(module(8, "all-reduce", ALL_OF_8), "tpu-v5e", topology)


def test_totals_count_runs_and_what_has_no_time() -> None:
    """A loop of 5 all-reduces of 1 MiB within 8 H100: each S/w."""
    text = (
        module(8, "all-reduce", ALL_OF_8).split("ENTRY")[0]
        + """body (s: (s32[], f32[262144])) -> (s32[], f32[262144]) {
  s = (s32[], f32[262144]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[262144]{0} get-tuple-element(s), index=1
  y = f32[262144]{0} all-reduce(x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[262144]{0}) tuple(next, y)
}
condition (s: (s32[], f32[262144])) -> pred[] {
  s = (s32[], f32[262144]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT less = pred[] compare(i, five), direction=LT
}
ENTRY main {
  p = f32[262144]{0} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[262144]{0}) tuple(zero, p)
  loop = (s32[], f32[262144]{0}) while(init), condition=condition, body=body
  ROOT r = f32[262144]{0} get-tuple-element(loop), index=1
}
"""
    )
    read = context(text, "h100-sxm")
    assert {level: exact(time) for level, time in read.on_machine.collective_seconds.items()} == pytest.approx(
        {ALL: 5 * MIB / 450e9, "nvlink": 5 * MIB / 450e9}
    )
    unbounded = context(module(512, "all-reduce", "[1,512]<=[512]"), "tpu-v5e")
    missing = unbounded.on_machine.collective_seconds
    assert (exact(missing[ALL]), least(missing[ALL])) == (None, 0.0)
    assert reason(missing[ALL]).startswith("1 of 1 collectives have no bound: c: ")


@pytest.mark.skipif(not GPT.is_file(), reason="the dump is not there")
def test_the_all_reduces_of_a_real_training_step() -> None:
    """2 nodes of 8 A100. Axis of 8: 40 all-reduces over NVLink, 2·7/8 of 318,799,872 bytes at 300 GB/s.

    Axis of 2, which crosses nodes: 3 all-reduces of 45,399,040, 106,496 and 4 bytes. They send 2·1/2 of that at the 25 GB/s of
    a device's own adapter.
    """
    read = context(GPT.read_text(), "a100-sxm-80gb")
    by_axis: dict[str | None, list[tuple[float, float]]] = {}
    for collective, axis, time in zip(read.collectives, read.axes, read.on_machine.collective_times, strict=True):
        assert time.level == {"d0": "network", "d1": "nvlink"}[axis or ""]
        by_axis.setdefault(axis, []).append((collective.operand_bytes or 0, us(time.bound_s) or 0.0))
    sizes = {axis: sorted(size for size, _ in sites) for axis, sites in by_axis.items()}
    assert sizes == {"d0": [4, 106_496, 45_399_040], "d1": [8192, 16384, *[8_388_608] * 37, 8_396_800]}
    assert sum(time for _, time in by_axis["d1"]) == pytest.approx(318_799_872 * 1.75 / 300e3)
    assert sum(time for _, time in by_axis["d0"]) == pytest.approx(45_505_540 / 25e3)
    totals = read.on_machine.collective_seconds
    assert exact(totals["nvlink"]) == pytest.approx(1.8596659e-3, rel=1e-7)
    assert exact(totals["network"]) == pytest.approx(1.8202216e-3, rel=1e-7)
    assert exact(totals[ALL]) == pytest.approx(3.6798875e-3, rel=1e-7)
    assert exact(read.cost.step["matmul_flops"]) == 631_360_192_512
    profile = read.on_machine.profile
    assert profile is not None
    assert 631_360_192_512 / (profile.value("matmul.f16") or 0) == pytest.approx(2.024e-3, abs=5e-7)


def to_slices(kind: str, sent: int, received: int) -> str:
    """Return a program that sends to and receives from the other of two slices, in bytes per device."""
    attributes = f'frontend_attributes={{_xla_megascale_target="{{1,2}}x{{0:7}}",_xla_megascale_transfer_type="{kind}"}}'
    return f"""HloModule m, num_partitions=8, entry_computation_layout={{(f32[{sent // 4}]{{0}})->token[]}}
ENTRY main {{
  p = f32[{sent // 4}]{{0}} parameter(0)
  t = token[] after-all()
  s = (f32[{sent // 4}]{{0}}, u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true, {attributes}
  r = (f32[{received // 4}]{{0}}, u32[], token[]) recv(t), channel_id=2, is_host_transfer=true, {attributes}
  sd = token[] send-done(s), channel_id=1, is_host_transfer=true
  rd = (f32[{received // 4}]{{0}}, token[]) recv-done(r), channel_id=2, is_host_transfer=true
  ROOT e = token[] get-tuple-element(rd), index=1
}}
"""


@pytest.mark.parametrize(
    ("kind", "received", "crossing"),
    [("ALL_REDUCE", MIB, MIB), ("ALL_GATHER", 2 * MIB, MIB), ("REDUCE_SCATTER", MIB // 2, MIB // 2), ("ONE_TO_ONE", MIB, MIB)],
)
def test_two_slices(kind: str, received: int, crossing: int) -> None:
    """Both ways at once over the 3.125 GB/s of a v5e chip between slices; received bytes count at their sender."""
    read = context(to_slices(kind, MIB, received), "tpu-v5e")
    sending, receiving = read.on_machine.collective_times
    assert us(sending.bound_s) == us(receiving.bound_s) == pytest.approx(crossing / 3.125e3)
    assert (sending.level, sending.streams, receiving.streams) == ("dcn", ("dcn",), ("dcn-receive",))
    assert sending.estimate_s is None
    assert "links.dcn.latency nor links.dcn.efficiency" in sending.reason
    assert exact(read.on_machine.collective_seconds["dcn"]) == pytest.approx(crossing / 3.125e9)
    unknown = context(to_slices(kind, MIB, received), "tpu-v2")
    nowhere = unknown.on_machine.collective_times[0]
    assert (nowhere.bound_s, nowhere.reason) == (None, "s: the profile tpu-v2 states no bandwidth between slices")


def test_groups_of_very_many_devices_are_not_all_written_out() -> None:
    """A short text may name millions of devices: what is beyond the limit has no time, and says so."""
    size = 1 << 16
    sums = "".join(
        f"  c{number} = f32[8]{{0}} all-reduce(p), channel_id={number}, "
        f"replica_groups=[{size >> number},{1 << number}]<=[{size}], {SUM}\n"
        for number in range(1, 5)
    )
    text = (
        f"HloModule m, num_partitions={size}, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}\n{ADD}"
        f"ENTRY main {{\n  p = f32[8]{{0}} parameter(0)\n{sums}  ROOT r = f32[8]{{0}} negate(c1)\n}}\n"
    )
    on_nodes, on_torus = context(text, "h100-sxm"), context(text, "tpu-v5e")
    first, second, *others = on_nodes.on_machine.collective_times
    assert None not in {first.bound_s, second.bound_s}
    assert all("name devices more than 131,072 times" in time.reason for time in others)
    # on a torus without a topology nothing has to be written out
    assert all(time.bound_s is not None for time in on_torus.on_machine.collective_times)
