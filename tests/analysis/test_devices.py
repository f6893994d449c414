"""XLA's four group modes, by its table of channel and `use_global_device_ids`, and the devices of a group in each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.participants import (
    DeviceCounts,
    GroupMode,
    group_mode,
    participants,
    parts_among,
)
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import HeadTable
from hlo_inspect.hlo.values.attributes import MalformedValue, ValueTable
from hlo_inspect.hlo.values.device_groups import DeviceGroups

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
SHARD_MAP = {"scan_fsdp", "scan_forward", "collectives", "gathered_matmul"}
ONE_DEVICE = {"array_operators", "number_operators", "linear_algebra", "control_flow", "constants"}
COMPILED = sorted(
    path.relative_to(DATA).as_posix()
    for folder in ("cpu", "tpu", "gpu", "jax_0_5_0", "jax_0_4_13")
    for path in (DATA / folder).glob("*.txt")
)

N = "ROOT %n = f32[8]{0} negate(%p)"

REDUCING = ("all-reduce", "all-gather", "reduce-scatter")
EXCHANGING = ("all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all")

REPLICAS, PARTITIONS = GroupMode.CROSS_REPLICA, GroupMode.CROSS_PARTITION
BOTH, FLATTENED = GroupMode.CROSS_REPLICA_AND_PARTITION, GroupMode.FLATTENED_ID

P = "%p = f32[8]{0} parameter(0)"
GLOBAL_IDS = "channel_id=1, use_global_device_ids=true, to_apply=%add"

TWO_BY_FOUR = DeviceCounts(replicas=2, partitions=4)


def collective(opcode: str, attributes: dict[str, str]) -> Instruction:
    tail = "%x)" + "".join(f", {name}={text}" for name, text in attributes.items())
    return Instruction(
        Computation("f", 1, is_entry=True).enclosing(), ("", "a", f"f32[] {opcode}", tail), HeadTable()[f"f32[] {opcode}"], 2
    )


def spelled(text: str | None) -> DeviceGroups | MalformedValue | None:
    value = ValueTable().read("replica_groups", text) if text is not None else None
    assert value is None or isinstance(value, DeviceGroups | MalformedValue)
    return value


@pytest.mark.parametrize("kind", REDUCING + EXCHANGING)
def test_without_a_channel_ids_are_replicas(kind: str) -> None:
    assert group_mode(collective(kind, {"replica_groups": "{{0,1}}"})) is REPLICAS


@pytest.mark.parametrize("kind", EXCHANGING)
def test_kinds_without_global_ids_with_a_channel_use_partitions(kind: str) -> None:
    assert group_mode(collective(kind, {"channel_id": "3"})) is PARTITIONS


@pytest.mark.parametrize("kind", REDUCING)
@pytest.mark.parametrize(
    ("attributes", "mode"),
    [
        ({"channel_id": "3"}, BOTH),
        ({"channel_id": "3", "use_global_device_ids": "false"}, BOTH),
        ({"channel_id": "3", "use_global_device_ids": "true"}, FLATTENED),
        ({"channel_id": "_"}, BOTH),  # its number is not printed
        ({"channel_id": "0"}, REPLICAS),
        ({"all_reduce_id": "7"}, BOTH),  # the channel's name until 2019
    ],
)
def test_with_a_channel_the_flag_decides(kind: str, attributes: dict[str, str], mode: GroupMode) -> None:
    assert group_mode(collective(kind, attributes)) is mode


@pytest.mark.parametrize(
    ("mode", "text", "size"),
    [
        (REPLICAS, "{{0,1}}", 2),
        (REPLICAS, "{{0},{1}}", 1),
        (REPLICAS, "{}", 2),
        (REPLICAS, None, 2),
        (PARTITIONS, "{{0,1},{2,3}}", 2),
        (PARTITIONS, "{}", 4),
        (BOTH, "{{0},{1}}", 4),  # each replica brings its four partitions
        (BOTH, "{{0,1}}", 8),
        (BOTH, "{}", 8),
        (BOTH, None, 8),
        (FLATTENED, "{{0,1,2,3},{4,5,6,7}}", 4),
        (FLATTENED, "[4,2]<=[8]", 2),
        (FLATTENED, "[1,8]<=[2,4]T(1,0)", 8),
    ],
)
def test_devices_of_a_group_among_2_replicas_of_4_partitions(mode: GroupMode, text: str | None, size: int) -> None:
    members = participants(spelled(text), mode, TWO_BY_FOUR)
    assert (members.size, members.uniform, members.fault) == (size, True, None)


@pytest.mark.parametrize(
    ("mode", "text", "size"),
    [(FLATTENED, "{{0,1,2},{3}}", 3), (PARTITIONS, "{{0},{1,2,3}}", 3)],
)
def test_the_largest_of_unequal_groups_counts(mode: GroupMode, text: str, size: int) -> None:
    members = participants(spelled(text), mode, TWO_BY_FOUR)
    assert (members.size, members.uniform) == (size, False)


@pytest.mark.parametrize(
    ("mode", "text", "fault"),
    [
        (REPLICAS, "{{0,2}}", "it names replica 2 of a program with 2"),
        (BOTH, "{{0,1},{2}}", "it names replica 2 of a program with 2"),
        (PARTITIONS, "{{0,1},{2,4}}", "it names partition 4 of a program with 4"),
        (FLATTENED, "{{0,1},{8,9}}", "it names device 8 of a program with 8"),
        (FLATTENED, "{{0,1},{2,1}}", "it names device 1 twice"),
    ],
)
def test_groups_that_contradict_the_program_have_no_size(mode: GroupMode, text: str, fault: str) -> None:
    members = participants(spelled(text), mode, TWO_BY_FOUR)
    assert (members.size, members.fault, members.contradicts) == (None, fault, True)


def test_groups_keep_the_order_of_the_text() -> None:
    members = participants(spelled("{{1,0},{3,2}}"), FLATTENED, TWO_BY_FOUR)
    assert members.key == ((1, 0), (3, 2))
    assert participants(spelled("[2,2]<=[2,2]T(1,0)"), FLATTENED, TWO_BY_FOUR).key == ((0, 2), (1, 3))
    assert participants(spelled("{}"), REPLICAS, TWO_BY_FOUR).key == ()


@pytest.mark.parametrize("mode", list(GroupMode))
def test_all_devices_are_unknown_if_the_text_does_not_count_them(mode: GroupMode) -> None:
    members = participants(spelled("{}"), mode, DeviceCounts(None, None))
    assert members.size is None
    assert members.fault


def test_replicas_with_an_unknown_number_of_partitions() -> None:
    members = participants(spelled("{{0,1}}"), BOTH, DeviceCounts(2, None))
    assert members.size is None
    assert members.fault == "the number of partitions is unknown"


def test_groups_that_make_no_sense_are_a_fault() -> None:
    members = participants(spelled("{{0,1},{2"), FLATTENED, TWO_BY_FOUR)
    assert (members.key, members.size) == ((), None)
    assert members.fault


@pytest.mark.parametrize(
    ("counts", "devices"),
    [(TWO_BY_FOUR, 8), (DeviceCounts(1, 1), 1), (DeviceCounts(None, 4), None), (DeviceCounts(2, None), None)],
)
def test_devices_are_replicas_times_partitions(counts: DeviceCounts, devices: int | None) -> None:
    assert counts.devices == devices


def test_every_spelling_of_groups(read: Callable[[str], Context]) -> None:
    """As spelled out by hand for the dump; `{}` stands for all eight devices."""
    expected = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))["replica_groups.txt"]["groups"]
    collectives = read((DATA / "handmade/replica_groups.txt").read_text(encoding="utf-8")).collectives
    groups = {
        collective.start.name: collective.participants for collective in collectives if collective.kind != "collective-permute"
    }
    assert groups.pop("everybody").size == 8
    assert expected.pop("everybody") == [list(range(8))]
    assert {name: [list(group) for group in members.key] for name, members in groups.items()} == expected


# -- counts


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        (", num_partitions=8", DeviceCounts(1, 8)),
        (", replica_count=4", DeviceCounts(4, 1)),
        (", replica_count=2, num_partitions=4", DeviceCounts(2, 4)),
        (", num_partitions=1", DeviceCounts(1, 1)),
    ],
)
def test_a_header_that_states_counts_is_believed(entry: Entry, header: str, counts: DeviceCounts) -> None:
    line = f"ROOT %r = f32[8]{{0}} all-reduce(%p), replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, {GLOBAL_IDS}"
    assert entry(P, line, header=header).device_counts == counts


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add", DeviceCounts(4, 1)),
        (f"all-reduce(%p), replica_groups={{{{0,1}},{{2,3}}}}, {GLOBAL_IDS}", DeviceCounts(1, 4)),
        (f"all-reduce(%p), replica_groups=[2,8]<=[16], {GLOBAL_IDS}", DeviceCounts(1, 16)),
        ("all-to-all(%p), channel_id=1, replica_groups={{0,1,2}}, dimensions={0}", DeviceCounts(1, 3)),
        ("all-to-all(%p), replica_groups={{0,1,2}}, dimensions={0}", DeviceCounts(3, 1)),
        ("collective-permute(%p), channel_id=1, source_target_pairs={{0,1},{1,5}}", DeviceCounts(1, 6)),
        ("collective-permute(%p), source_target_pairs={{0,3}}", DeviceCounts(4, 1)),
        ("negate(%p), sharding={devices=[2,4]<=[8]}", DeviceCounts(1, 8)),
        ("negate(%p), sharding={devices=[2]0,1}", DeviceCounts(1, 2)),
    ],
)
def test_without_counts_the_ids_tell(entry: Entry, line: str, counts: DeviceCounts) -> None:
    assert entry(P, f"ROOT %r = f32[8]{{0}} {line}").device_counts == counts


def test_replica_ids_and_partition_ids_tell_one_each(entry: Entry) -> None:
    """The all-reduce names replica 0, which brings all partitions with it; the all-to-all names four of them."""
    reduce = "%r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0}}, to_apply=%add"
    exchange = "ROOT %e = f32[8]{0} all-to-all(%r), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}"
    assert entry(P, reduce, exchange).device_counts == DeviceCounts(1, 4)


def test_flattened_ids_run_over_replicas_and_partitions(entry: Entry) -> None:
    """Eight flattened ids among two replicas are four partitions, not eight."""
    replicas = "%r = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
    flattened = f"ROOT %f = f32[8]{{0}} all-reduce(%r), replica_groups={{{{0,1,2,3,4,5,6,7}}}}, {GLOBAL_IDS}"
    counts = entry(P, replicas, flattened).device_counts
    assert counts.devices == 8
    assert counts == DeviceCounts(2, 4)


@pytest.mark.parametrize(
    "line",
    ["negate(%p)", "negate(%p), sharding={replicated}", "all-reduce(%p), replica_groups={}, to_apply=%add"],
)
def test_nothing_tells(entry: Entry, line: str) -> None:
    counts = entry(P, f"ROOT %r = f32[8]{{0}} {line}").device_counts
    assert counts == DeviceCounts(None, None)
    assert counts.devices is None


def test_groups_that_make_no_sense_tell_nothing(entry: Entry) -> None:
    line = f"ROOT %r = f32[8]{{0}} all-reduce(%p), replica_groups={{{{0,x}}}}, {GLOBAL_IDS}"
    assert entry(P, line).device_counts.devices is None


@pytest.mark.parametrize("name", ["jax_0_4_13/sgd_unused.after.txt", "jax_0_4_13/collectives.before.txt"])
def test_old_dumps_without_counts_are_for_the_8_devices_they_were_made_for(read: Entry, name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert "num_partitions" not in text
    assert read(text).device_counts.devices == 8


LAYOUT = ", entry_computation_layout={(f32[8]{0})->f32[8]{0}}"


def test_a_header_that_would_print_counts_and_prints_none_is_of_one_device(entry: Entry) -> None:
    assert entry(P, N, header=LAYOUT).device_counts == DeviceCounts(1, 1)


def test_devices_may_be_named_behind_the_place_where_a_text_ends(read: Entry) -> None:
    text = f"HloModule m{LAYOUT}\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n"
    assert read(text).device_counts.devices is None
    assert read(text + "  ROOT %n = f32[8]{0} negate(%p)\n}\n").device_counts.devices == 1


@pytest.mark.parametrize(
    ("line", "devices"),
    [
        ("ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={}, to_apply=%add", None),
        ("ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add", 4),
        ("ROOT %r = f32[8]{0} negate(%p), sharding={devices=[8]<=[8]}", 8),
        ('ROOT %r = f32[8]{0} custom-call(%p), custom_call_target="__builtin$CrossMeshAllReduce"', None),
    ],
)
def test_ids_count_more_than_a_header_without_counts(entry: Entry, line: str, devices: int | None) -> None:
    assert entry(P, line, header=LAYOUT).device_counts.devices == devices


@pytest.mark.parametrize("header", [", num_partitions=many" + LAYOUT, ", replica_count=x" + LAYOUT])
def test_counts_that_cannot_be_read_are_not_1(entry: Entry, header: str) -> None:
    assert entry(P, N, header=header).device_counts.devices is None


def test_the_meshes_of_the_header_count_devices(entry: Entry) -> None:
    meshes = ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=2, "model"=8]>}}'
    assert entry(P, N, header=LAYOUT + meshes).device_counts == DeviceCounts(1, 16)


# -- kind of the printed shapes


def truth(name: str) -> str:
    """By how the dump was made: before the partitioner jit's shapes are global, with shard_map's regions among them."""
    program, stage, _ = Path(name).name.split(".")
    if stage != "before" or program in ONE_DEVICE:
        return "per_device"
    return "mixed" if program in SHARD_MAP else "global"


@pytest.mark.parametrize("name", COMPILED)
def test_dumps(read: Entry, name: str) -> None:
    assert read((DATA / name).read_text(encoding="utf-8")).shapes_are == truth(name)


@pytest.mark.parametrize(
    ("after", "expected"),
    [("after_shardy-xla", "global"), ("after_spmd-partitioning", "per_device"), ("after_flatten-call-graph", "per_device")],
)
def test_a_pass_after_the_other(read: Entry, after: str, expected: str) -> None:
    """The parameters' bytes differ too: 1792 of the whole program, 576 of one device."""
    (path,) = (DATA / "xla_dump_to").glob(f"*.{after}.before_*.txt")
    context = read(path.read_text(encoding="utf-8"))
    assert sum(leaf.shape.bytes or 0 for leaf in context.interface.parameters) == (1792 if expected == "global" else 576)
    assert context.shapes_are == expected


# -- arrays on devices that hold the same


def test_parts() -> None:
    assert parts_among(((0, 1, 2, 3),), ((0, 1), (2, 3))) == 2
    assert parts_among(((0, 1), (2, 3)), ((0, 1), (2, 3))) == 1
    assert parts_among(((0, 1), (2, 3)), ((0, 2), (1, 3))) == 2
    assert parts_among((), ((0,),)) == 1
