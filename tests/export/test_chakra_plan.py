"""The plan of a step: what waits for what, sizes, groups and times, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.figure import least
from tests.export.exporting import module, named, reported, traces, waits_for
from tests.export.traces import COLL, COMP, RECV, SEND, check, play

P = "%p = f32[65536] parameter(0)"
KERNEL = "%{} = f32[65536] add(%{}, %{})"
"""65,536 FLOPs; three arrays of 262,144 bytes."""
BYTES = 3 * 262_144
GATHER = (
    "%gather-start = (f32[65536], f32[131072]) all-gather-start(%{}), channel_id=1, replica_groups={{{{0,1}}}}, "
    "dimensions={{0}}, use_global_device_ids=true"
)
DONE = "%gather-done = f32[131072] all-gather-done(%gather-start)"
REDUCE = "%{} = f32[65536] all-reduce(%{}), channel_id={}, replica_groups={}, use_global_device_ids=true, to_apply=%add"


def test_start_and_done_are_one_node_and_what_stands_between_is_beside_it(tmp_path: Path) -> None:
    text = module(
        P,
        KERNEL.format("before", "p", "p"),
        GATHER.format("before"),
        KERNEL.format("between", "before", "p"),
        DONE,
        KERNEL.format("unrelated", "between", "p"),
        "ROOT %user = f32[131072] add(%gather-done, %gather-done)",
    )
    own = traces(text, tmp_path / "out")
    check(own)
    play(own)
    nodes = named(own.ranks[0])
    assert [node.name for node in own.ranks[0]] == ["before", "gather-start", "between", "unrelated", "user"]
    assert waits_for(own.ranks[0], nodes["gather-start"]) == {"before"}
    assert waits_for(own.ranks[0], nodes["between"]) == {"before"}
    assert nodes["gather-start"].id in nodes["unrelated"].ctrl, "the compute stream waits at the done"
    assert nodes["gather-start"].id not in nodes["unrelated"].data
    assert "gather-start" in waits_for(own.ranks[0], nodes["user"])
    assert nodes["gather-start"].attributes == {"is_cpu_op": False, "comm_type": 2, "comm_size": 262_144}, (
        "the shard, all ranks"
    )
    assert nodes["before"].attributes == {"is_cpu_op": False, "num_ops": 65_536, "tensor_size": BYTES}


def test_a_synchronous_collective_holds_up_what_follows(tmp_path: Path) -> None:
    text = module(
        P,
        KERNEL.format("before", "p", "p"),
        REDUCE.format("reduce", "before", 1, "{{0,1}}"),
        KERNEL.format("after", "before", "p"),
        "ROOT " + KERNEL.format("user", "reduce", "after"),
    )
    nodes = named(traces(text, tmp_path / "out").ranks[1])
    assert nodes["reduce"].deps == {nodes["before"].id}
    assert set(nodes["after"].ctrl) == {nodes["before"].id, nodes["reduce"].id}
    assert (nodes["user"].ctrl, nodes["user"].data) == ((nodes["after"].id,), (nodes["reduce"].id,))


def test_control_predecessors_are_edges(tmp_path: Path) -> None:
    text = module(
        P,
        REDUCE.format("reduce", "p", 1, "{{0,1}}"),
        "ROOT " + KERNEL.format("after", "p", "p") + ", control-predecessors={%reduce}",
    )
    nodes = named(traces(text, tmp_path / "out").ranks[0])
    assert nodes["after"].deps == {nodes["reduce"].id}


def test_collectives_of_a_group_wait_for_each_other_in_the_order_of_the_schedule(tmp_path: Path) -> None:
    """The second all-reduce is ready first, and would start first."""
    text = module(
        P,
        GATHER.format("p"),
        DONE,
        "%slow = f32[131072] add(%gather-done, %gather-done)",
        REDUCE.format("first", "slow", 2, "{{0,1}}").replace("65536", "131072"),
        REDUCE.format("second", "p", 3, "{{0,1}}"),
        "ROOT %both = (f32[131072], f32[65536]) tuple(%first, %second)",
    )
    own = traces(text, tmp_path / "out")
    check(own)
    nodes = named(own.ranks[0])
    assert nodes["first"].id in nodes["second"].deps


MESH = REDUCE.format("tensor", "p", 1, "{{0,1},{2,3}}"), REDUCE.format("data", "tensor", 2, "{{0,2},{1,3}}")


def test_each_rank_names_the_group_that_holds_it(tmp_path: Path) -> None:
    text = module(P, *MESH, REDUCE.format("all", "data", 3, "{}"), "ROOT " + KERNEL.format("user", "all", "p"), ranks=4)
    own = traces(text, tmp_path / "out")
    check(own)
    play(own)
    assert own.groups == {"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]}
    assert [named(nodes)["tensor"].attributes["pg_name"] for nodes in own.ranks.values()] == ["1", "1", "2", "2"]
    assert [named(nodes)["data"].attributes["pg_name"] for nodes in own.ranks.values()] == ["3", "4", "3", "4"]
    assert all("pg_name" not in named(nodes)["all"].attributes for nodes in own.ranks.values()), "no groups are all devices"


@pytest.mark.parametrize(
    "groups",
    ["[2,2]<=[2,2]T(1,0)", "mesh['a'=2,'b'=2] {'a'}", "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", "{{2,0},{3,1}}"],
)
def test_groups_are_lists_in_every_spelling(groups: str, tmp_path: Path) -> None:
    text = module(P, REDUCE.format("reduce", "p", 1, groups), "ROOT " + KERNEL.format("user", "reduce", "p"), ranks=4)
    assert traces(text, tmp_path / "out").groups == {"1": [0, 2], "2": [1, 3]}, "members ascend"


def test_groups_of_one_rank_are_left_out_and_named(tmp_path: Path) -> None:
    text = module(P, REDUCE.format("reduce", "p", 1, "{{0},{1}}"), "ROOT " + KERNEL.format("user", "reduce", "p"))
    own = traces(text, tmp_path / "out")
    assert [node.name for node in own.ranks[0]] == ["user"]
    (row,) = reported(text)[0].table("not_expressed").records()
    assert (row["name"], row["kind"], row["runs"], row["executed_operand_bytes"]) == ("reduce", "all-reduce", 1, 262_144)
    assert row["reason"] == "its groups have one device each, which moves nothing"


def test_a_rank_outside_of_all_groups_passes_on_what_the_collective_waits_for(tmp_path: Path) -> None:
    text = module(
        P,
        REDUCE.format("everybody", "p", 1, "{}"),
        REDUCE.format("some", "everybody", 2, "{{0,1},{2}}"),
        "ROOT " + KERNEL.format("user", "some", "p"),
        ranks=3,
    )
    own = traces(text, tmp_path / "out")
    check(own)
    play(own)
    assert [node.name for node in own.ranks[2]] == ["everybody", "user"]
    assert named(own.ranks[2])["user"].deps == {named(own.ranks[2])["everybody"].id}
    assert "some" in waits_for(own.ranks[0], named(own.ranks[0])["user"])


PERMUTE = "%{} = f32[65536] collective-permute(%{}), channel_id=1, source_target_pairs={}"


def test_a_permute_is_a_pair_of_messages_for_each_pair(tmp_path: Path) -> None:
    """Rank 0 sends only, rank 2 receives only, rank 3 sends to itself."""
    text = module(
        P,
        PERMUTE.format("first", "p", "{{0,1},{1,2},{3,3}}"),
        PERMUTE.format("second", "first", "{{0,1},{1,2},{3,3}}"),
        "ROOT " + KERNEL.format("user", "second", "p"),
        ranks=4,
    )
    own = traces(text, tmp_path / "out")
    check(own)
    play(own)
    kinds = [[node.type for node in nodes] for nodes in own.ranks.values()]
    assert kinds == [[SEND, SEND, COMP], [SEND, RECV, SEND, RECV, COMP], [RECV, RECV, COMP], [COMP]]
    middle = named(own.ranks[1])
    assert middle["first send"].attributes == {"is_cpu_op": False, "comm_size": 262_144, "comm_tag": 0, "comm_dst": 2}
    assert middle["first receive"].attributes == {"is_cpu_op": False, "comm_size": 262_144, "comm_tag": 0, "comm_src": 0}
    assert middle["first receive"].deps == middle["first send"].deps == set(), "neither waits for the other"
    assert middle["second send"].attributes["comm_tag"] == 1, "a tag for each run"
    assert set(middle["user"].data) == {middle["second send"].id, middle["second receive"].id}
    assert named(own.ranks[3])["user"].deps == set()


def test_a_permute_to_itself_alone_is_named() -> None:
    text = module(P, PERMUTE.format("still", "p", "{{0,0},{1,1}}"), "ROOT " + KERNEL.format("user", "still", "p"))
    (row,) = reported(text)[0].table("not_expressed").records()
    assert (row["kind"], row["reason"]) == ("collective-permute", "every device sends to itself, which moves nothing")


LOOP = """%condition (state: (s32[], f32[65536], f32[131072])) -> pred[] {
  %state = (s32[], f32[65536], f32[131072]) parameter(0)
  %counter = s32[] get-tuple-element(%state), index=0
  %limit = s32[] constant(3)
  ROOT %less = pred[] compare(%counter, %limit), direction=LT
}

%body (state.1: (s32[], f32[65536], f32[131072])) -> (s32[], f32[65536], f32[131072]) {
  %state.1 = (s32[], f32[65536], f32[131072]) parameter(0)
  %counter.1 = s32[] get-tuple-element(%state.1), index=0
  %array = f32[65536] get-tuple-element(%state.1), index=1
  %gathered = f32[131072] get-tuple-element(%state.1), index=2
  GATHER
  %use = f32[131072] add(%gathered, %gathered)
  %gather-done = f32[131072] all-gather-done(%gather-start)
  ROOT %next = (s32[], f32[65536], f32[131072]) tuple(%counter.1, %array, %gather-done)
}
""".replace("GATHER", GATHER.format("array"))
WHILE = (
    "%while = (s32[], f32[65536], f32[131072]) while(%state), condition=%condition, body=%body, "
    'backend_config={"known_trip_count":{"n":"3"}}'
)
LOOPED = module(
    P,
    "%zero = s32[] constant(0)",
    "%gathered = f32[131072] concatenate(%p, %p), dimensions={0}",
    "%state = (s32[], f32[65536], f32[131072]) tuple(%zero, %p, %gathered)",
    WHILE,
    "ROOT %last = f32[131072] get-tuple-element(%while), index=2",
    before=LOOP,
)


def test_an_iteration_uses_what_the_iteration_before_gathered(tmp_path: Path) -> None:
    """The gather of an iteration runs beside its kernel; the kernel of the next one waits for it."""
    own = traces(LOOPED, tmp_path / "out")
    check(own)
    play(own)
    nodes = own.ranks[0]
    gathers = [node for node in nodes if node.type == COLL]
    kernels = [node for node in nodes if node.name.startswith("use")]
    assert len(gathers) == len(kernels) == 3
    assert all(gather.id not in kernel.deps for gather, kernel in zip(gathers, kernels, strict=True))
    assert [gather.id in kernel.deps for gather, kernel in zip(gathers[:2], kernels[1:], strict=True)] == [True, True]


def test_short_kernels_are_merged_but_never_across_a_start_or_a_done(tmp_path: Path) -> None:
    """Each kernel moves 12 KiB; a node is at least 64 KiB, which 6 of them are."""
    small = "%{} = f32[1024] add(%{}, %q)"
    names = [f"k{number}" for number in range(16)]
    lines = [small.format(name, before) for before, name in zip(["q", *names], names, strict=False)]
    text = module(
        "%q = f32[1024] parameter(0)",
        *lines[:4],
        "%reduce = f32[1024] all-reduce(%k3), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add",
        *[line.replace("%k3,", "%reduce,") for line in lines[4:]],
    )
    own = traces(text, tmp_path / "out")
    check(own)
    nodes = own.ranks[0]
    assert [node.name for node in nodes] == ["reduce", "k4 (+1)", "k6 (+5)", "k12 (+3)"]
    work = [(node.attributes["num_ops"], node.attributes["tensor_size"]) for node in nodes if node.type == COMP]
    assert work == [(6 * 1024, 6 * 12_288), (6 * 1024, 6 * 12_288), (4 * 1024, 65_536)], "no work is lost"
    assert nodes[0].deps == set()
    assert nodes[1].deps == {nodes[0].id}


@pytest.mark.parametrize(("profile", "kernels"), [(None, ["short", "late"]), ("tpu-v4", ["short"])])
def test_the_first_short_kernels_beside_a_collective_are_a_node(
    profile: str | None, kernels: list[str], tmp_path: Path
) -> None:
    """Each kernel lasts 0.58 us on v4: the second owes 0.42 us to the tick of the first, and its 0.16 us round to none."""
    small = "%{} = f32[16] add(%{}, %q)"
    text = module(
        "%q = f32[16] parameter(0)",
        P.replace("parameter(0)", "parameter(1)"),
        GATHER.format("p"),
        small.format("short", "q"),
        DONE,
        small.format("late", "short"),
        "ROOT %user = (f32[131072], f32[16]) tuple(%gather-done, %late)",
    )
    own = traces(text, tmp_path / "out", profile=profile)
    check(own)
    play(own)
    nodes = own.ranks[0]
    assert [node.name for node in nodes if node.type == COMP] == kernels
    assert "gather-start" not in waits_for(nodes, named(nodes)["short"])


def test_what_waits_for_a_merged_kernel_waits_for_its_collectives(tmp_path: Path) -> None:
    """The small kernel between the two all-reduces becomes no node of its own."""
    text = module(
        P,
        REDUCE.format("first", "p", 1, "{{0,1}}"),
        "%part = f32[16] slice(%first), slice={[0:16]}",
        "%second = f32[16] all-reduce(%part), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add",
        "ROOT %user = f32[16] add(%second, %second)",
    )
    nodes = traces(text, tmp_path / "out").ranks[0]
    assert [node.type for node in nodes] == [COLL, COLL, COMP]
    assert nodes[0].id in nodes[1].data


def test_a_copy_has_an_operation_and_the_first_node_lasts_a_tick(tmp_path: Path) -> None:
    """0 operations, or 0 bytes, hang the client; a first node of less than 1 ns aborts it."""
    text = module("%q = f32[16] parameter(0)", "ROOT %copy = f32[16] copy(%q)")
    (node,) = traces(text, tmp_path / "out").ranks[0]
    assert node.attributes == {"is_cpu_op": False, "num_ops": 1, "tensor_size": 65_536}


def test_a_rank_without_work_has_a_node(tmp_path: Path) -> None:
    own = traces(module("ROOT %q = f32[16] parameter(0)"), tmp_path / "out")
    check(own)
    assert [len(nodes) for nodes in own.ranks.values()] == [1, 1]


def test_times_are_whole_microseconds_and_the_rest_is_carried(tmp_path: Path) -> None:
    """The sum of all durations is the estimate of the kernels, to a microsecond."""
    dump = Path(__file__).parents[1] / "data/gpu/scan_forward.after.txt"
    report, context = reported(dump, profile="h100-sxm")
    own = traces(dump, tmp_path / "out", profile="h100-sxm")
    check(own)
    durations = [node.duration for node in own.ranks[0] if node.type == COMP]
    assert min(durations) >= 1
    times = context.on_machine.step_times
    assert times is not None
    assert sum(durations) == pytest.approx(least(times.estimate_kernels) * 1e6, abs=1)
    assert not any("roofline" in note for note in report.notes)


BRANCH = """%sends (q: f32[65536]) -> f32[65536] {{
  %q = f32[65536] parameter(0)
  ROOT %permute = f32[65536] collective-permute(%q), channel_id=4, source_target_pairs={}
}}

%other (r: f32[65536]) -> f32[65536] {{
  %r = f32[65536] parameter(0)
  {}
}}
"""
CONDITIONAL = (
    "%flag = pred[] parameter(1)",
    "ROOT %conditional = f32[65536] conditional(%flag, %p, %p), true_computation=%sends, false_computation=%other",
)
RETURNS = "ROOT %permute.1 = f32[65536] collective-permute(%r), channel_id=4, source_target_pairs={}"


def test_branches_that_communicate_alike_have_nodes(tmp_path: Path) -> None:
    branches = BRANCH.format("{{0,1},{1,0}}", RETURNS.format("{{0,1},{1,0}}"))
    own = traces(module(P, *CONDITIONAL, before=branches), tmp_path / "out")
    check(own)
    assert own.messages_sent() == {0: 262_144}


@pytest.mark.parametrize(
    ("other", "runs"), [(RETURNS.format("{{0,1}}"), [1]), ("ROOT %copy = f32[65536] copy(%r)", [None])], ids=["pairs", "none"]
)
def test_branches_that_communicate_differently_are_named(other: str, runs: list[int | None]) -> None:
    """If all branches move the same bytes, the dump's facts count them once, and so do the rows."""
    report, _ = reported(module(P, *CONDITIONAL, before=BRANCH.format("{{0,1},{1,0}}", other)), also=("collectives",))
    rows = report.table("not_expressed").records()
    assert [row["runs"] for row in rows if row["kind"] == "collective-permute"] == runs
    assert report.facts["export.collective-permute.executed_count"] == 0
    assert report.facts["collectives.collective-permute.executed_count"] == (None if None in runs else 1)


def test_several_collectives_of_one_start_are_several_nodes(tmp_path: Path) -> None:
    wrapped = """%wrapped (q: f32[65536]) -> (f32[65536], f32[131072]) {
  %q = f32[65536] parameter(0)
  %reduce = f32[65536] all-reduce(%q), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add
  %gather = f32[131072] all-gather(%q), channel_id=2, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT %both = (f32[65536], f32[131072]) tuple(%reduce, %gather)
}
"""
    text = module(
        P,
        "%start = ((f32[65536]), (f32[65536], f32[131072]), u32[]) async-start(%p), calls=%wrapped",
        "%done = (f32[65536], f32[131072]) async-done(%start)",
        "%first = f32[65536] get-tuple-element(%done), index=0",
        "ROOT " + KERNEL.format("user", "first", "p"),
        before=wrapped,
    )
    report, _ = reported(text)
    assert [report.facts[f"export.{kind}.executed_count"] for kind in ("all-reduce", "all-gather")] == [1, 1]
    own = traces(text, tmp_path / "out")
    check(own)
    assert own.ranks[0][-1].deps == {0, 1}
