"""Published measurements of collectives: none beats the bound; the estimate is near those of one node.

Bus bandwidths are as nccl-tests prints them. Some measurements have the bound alone: over a network that its owner calls ill
configured, over TCP, or with an algorithm that the model lacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.placement import given_placement
from hlo_inspect.analysis.time.profile_choice import MachineOptions
from hlo_inspect.hlo.collective_kinds import KIND_TABLE
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost


class Measurement(NamedTuple):
    """`network` is what a node sends in GB/s; `kind` is that of the collective, `where` the issue or page that prints it."""

    machine: str
    kind: str
    ranks: int
    nodes: int
    network: float
    size: int
    us: float
    bus_gb_s: float
    where: str
    modelled: bool = False


NCCL_TESTS = "github.com/NVIDIA/nccl-tests/issues/"
MOONCAKE = "github.com/kvcache-ai/Mooncake/pull/3484"
DSTACK = "dstack documentation, clusters on GCP"
SKYPILOT = "SkyPilot example, NCCL test on Nebius"
ROWS = [
    *(
        Measurement("h100", "all-reduce", 8, 1, 0, size, us, bus, f"{NCCL_TESTS}290", modelled=True)
        for size, us, bus in ((134217728, 613.3, 382.99), (536870912, 2175.8, 431.81), (2147483648, 8020.3, 468.57))
    ),
    *(
        Measurement("h20", "all-reduce", 8, 1, 0, size, us, bus, MOONCAKE, modelled=True)
        for size, us, bus in (
            (32768, 18.66, 3.07),
            (131072, 19.25, 11.91),
            (524288, 20.39, 45.0),
            (2097152, 40.66, 90.27),
            (8388608, 81.16, 180.88),
            (33554432, 195.4, 300.51),
            (268435456, 1366.17, 343.85),
            (1073741824, 5252.64, 357.73),
        )
    ),
    Measurement("h100", "all-reduce", 16, 2, 400, 8388608, 215.3, 73.04, f"{NCCL_TESTS}290, reported as degraded"),
    Measurement("h100", "all-reduce", 16, 2, 400, 134217728, 1575.6, 159.72, f"{NCCL_TESTS}290, reported as degraded"),
    Measurement("h100", "all-reduce", 16, 2, 400, 8589934592, 103530, 155.57, f"{NCCL_TESTS}290, reported as degraded"),
    Measurement("b200", "all-reduce", 16, 2, 400, 33554432, 258.5, 243.42, "GCP A4"),
    Measurement("b200", "all-reduce", 16, 2, 400, 536870912, 1695.2, 593.81, "GCP A4"),
    Measurement("b200", "all-reduce", 16, 2, 400, 8589934592, 23563, 683.52, "GCP A4"),
    Measurement("h100", "all-gather", 16, 2, 200, 33554432, 284.0, 110.78, f"{DSTACK}, A3 Mega"),
    Measurement("h100", "all-gather", 16, 2, 200, 1073741824, 5532.7, 181.94, f"{DSTACK}, A3 Mega"),
    Measurement("h100", "all-gather", 16, 2, 100, 8388608, 784.9, 10.02, f"{DSTACK}, A3 High over TCP"),
    Measurement("h100", "all-gather", 16, 2, 100, 1073741824, 20431, 49.27, f"{DSTACK}, A3 High over TCP"),
    Measurement("h100", "all-reduce", 16, 2, 400, 536870912, 2432.7, 413.79, SKYPILOT),
    Measurement("h100", "all-reduce", 16, 2, 400, 8589934592, 34468, 467.28, SKYPILOT),
    Measurement("h100-pcie", "all-reduce", 2, 1, 0, 2147483648, 18535, 115.86, f"{NCCL_TESTS}194"),
    Measurement("four", "all-reduce", 8, 2, 100, 536870912, 10052, 93.46, f"{NCCL_TESTS}252"),
    Measurement("four", "all-reduce", 8, 2, 100, 8589934592, 158070, 95.1, f"{NCCL_TESTS}252"),
]

MACHINES = {
    "h100": "extends: h100-sxm\n",
    "h20": "extends: h100-sxm\nlinks: {nvlink: {in_network_reduction: {value: false, source: here}}}\n",
    "b200": "extends: b200\n",
    "h100-pcie": "extends: h100-pcie\n",
    "four": "extends: h100-sxm\ndevices_per_node: {value: 4, source: here}\n",
}
SOURCES = "sources: [{id: here, title: A, publisher: B, version: C, url: D, page: E}]\n"

ADD = """add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""


def time_of(row: Measurement, folder: Path) -> CollectiveTime:
    """Return the time of a module with that one collective."""
    profile = folder / "machine.yaml"
    text = MACHINES[row.machine] + SOURCES
    if row.network:
        network = f"network: {{bandwidth: {{value: {row.network} GB/s, per: node, directions: one, source: here}}}}"
        inside = "links: {" if "links: {" in text else "links: {}\n"
        text = text.replace(inside, f"links: {{{network}, ") if inside in text else f"{text}links: {{{network}}}\n"
    profile.write_text(text)
    n, size = row.ranks, row.size // 4
    operand = size // n if row.kind == "all-gather" else size
    groups = "{{" + ",".join(map(str, range(n))) + "}}"
    rest = "dimensions={0}" if row.kind == "all-gather" else "to_apply=add"
    hlo = (
        f"HloModule m, num_partitions={n}, entry_computation_layout={{(f32[{operand}]{{0}})->f32[{size}]{{0}}}}\n{ADD}"
        f"ENTRY main {{\n  p = f32[{operand}]{{0}} parameter(0)\n  ROOT c = f32[{size}]{{0}} {row.kind}(p), channel_id=1, "
        f"replica_groups={groups}, use_global_device_ids=true, {rest}\n}}\n"
    )
    (module,) = read_modules(open_source(hlo), Cost.wants)
    placement = given_placement(None, n // row.nodes)
    context = Context(module, options=ParsedOptions(MachineOptions((load_profile(profile),), (), placement)))
    (time,) = context.on_machine.collective_times
    return time


def name(row: Measurement) -> str:
    return f"{row.machine}-{row.kind}-{row.ranks}-{row.size}"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_nothing_is_faster_than_the_bound(row: Measurement, tmp_path: Path) -> None:
    time = time_of(row, tmp_path)
    assert time.bound_s is not None
    assert time.bound_s * 1e6 <= row.us
    assert time.level == ("nvlink" if row.nodes == 1 else "network")


@pytest.mark.parametrize("row", [row for row in ROWS if row.modelled], ids=name)
def test_the_model_is_near_what_one_node_measures(row: Measurement, tmp_path: Path) -> None:
    time = time_of(row, tmp_path)
    assert time.estimate_s is not None
    assert 0.8 <= time.estimate_s * 1e6 / row.us <= 1.25


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_bus_bandwidth_is_that_of_nccl_tests(row: Measurement) -> None:
    sent = KIND_TABLE[row.kind].share_sent(row.ranks) * row.size
    assert sent / row.us / 1e3 == pytest.approx(row.bus_gb_s, rel=0.01)


def test_bounds_worked_out_by_hand(tmp_path: Path) -> None:
    """In µs: S/w if switches add up; 2·7/8·S/w if they do not; 2·(1/2)·S/W between two nodes; 1/2·S/W for a gather."""
    hand = {
        ("h100", 134217728, 1): 134217728 / 450e3,
        ("h20", 1073741824, 1): 1.75 * 1073741824 / 450e3,
        ("b200", 33554432, 2): 33554432 / 400e3,
        ("h100", 33554432, 2): 33554432 / 2 / 200e3,
        ("four", 536870912, 2): 536870912 / 100e3,
        ("h100-pcie", 2147483648, 1): 2147483648 / 300e3,
    }
    bounds = {}
    for row in ROWS:
        key = (row.machine, row.size, row.nodes)
        if key in hand:
            bounds[key] = (time_of(row, tmp_path).bound_s or 0) * 1e6
    assert bounds == pytest.approx(hand)


def test_models_worked_out_by_hand(tmp_path: Path) -> None:
    """The least of NCCL's protocols: LL for 32 KiB, LL128 for 8 MiB, Simple for 1 GiB, sums in the switch on H100."""
    hand = {
        ("h20", 32768): 6.6 + 14 * 0.6 + 1.75 * 32768 / 141e3,
        ("h20", 8388608): 14.0 + 14 * 1.9 + 1.75 * 8388608 / (370.8e3 * 0.92),
        ("h20", 1073741824): 8.4 + 14 * 3.4 + 1.75 * 1073741824 / 370.8e3,
        ("h100", 2147483648): 25 + 2147483648 / (450e3 * 0.611),
    }
    rows = {(row.machine, row.size): row for row in ROWS if row.nodes == 1}
    assert {key: (time_of(rows[key], tmp_path).estimate_s or 0) * 1e6 for key in hand} == pytest.approx(hand)
