"""Asynchronous collectives, and TPU's collectives inside fusions, whose copies are one collective."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS, WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
SKIPPING = Wants(opcodes=OPCODES, targets=TARGETS)
P = "%p = f32[8]{0} parameter(0)"
GROUPS = "replica_groups={{0,1}}, to_apply=%add"

GATHER = "channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true"
STEPS = """%START (a: f32[4]) -> (f32[4], f32[8], u32[]) {
  %a = f32[4]{0} parameter(0)
  %gather.1 = f32[8]{0} all-gather(%a), ATTRIBUTES
  ROOT %c = (f32[4]{0}, f32[8]{0}, u32[]) custom-call(%gather.1), custom_call_target="AsyncCollectiveStart"
}

%STEP (b: f32[4], n: f32[8]) -> (f32[8], f32[8]) {
  %b = f32[4]{0} parameter(0)
  %n = f32[8]{0} parameter(1)
  %gather.2 = f32[8]{0:T(128)} all-gather(%b), ATTRIBUTES
  %m = f32[8]{0} negate(%n)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%m, %gather.2)
}

%DONE (d: f32[4]) -> f32[8] {
  %d = f32[4]{0} parameter(0)
  %gather.3 = f32[8]{0} all-gather(%d), ATTRIBUTES
  ROOT %e = f32[8]{0} custom-call(%gather.3), custom_call_target="AsyncCollectiveDone"
}
"""


def steps(suffix: str) -> str:
    """Return the three fused computations between which TPU splits an all-gather."""
    text = STEPS.replace("ATTRIBUTES", GATHER)
    for name in ("START", "STEP", "DONE"):
        text = text.replace(name, name.lower() + suffix)
    return text


def fusions(suffix: str, operand: str) -> list[str]:
    return [
        f"%s{suffix} = (f32[4]{{0}}, f32[8]{{0}}, u32[]) fusion({operand}), kind=kCustom, calls=%start{suffix}",
        f"%w{suffix} = (f32[8]{{0}}, f32[8]{{0}}) fusion({operand}, %n), kind=kOutput, calls=%step{suffix}",
        f"%d{suffix} = f32[8]{{0}} fusion({operand}), kind=kCustom, calls=%done{suffix}",
    ]


def found(collectives: list[Collective]) -> list[tuple[object, ...]]:
    return [(c.kind, c.start.name, c.operand_bytes, c.result_bytes, c.wire_bytes, c.is_async) for c in collectives]


@pytest.mark.parametrize(
    ("config", "is_async"),
    [
        ("", True),
        (', backend_config={"collective_backend_config":{"is_sync":false}}', True),
        (', backend_config={"collective_backend_config":{"is_sync":true,"backend":"DEFAULT"}}', False),
        (', backend_config={ "is_sync" : true }', False),
        (r', backend_config="{\"is_sync\":true}"', False),
        (r', backend_config="{\"is_sync\":false}"', True),
        (', frontend_attributes={is_sync="true"}', True),
        (', metadata={op_name="is_sync:true"}', True),
    ],
)
def test_a_pair_that_says_is_sync_is_synchronous(entry: Entry, config: str, is_async: bool) -> None:
    lines = (P, f"%c = f32[8]{{0}} all-reduce-start(%p), {GROUPS}{config}", "%d = f32[8]{0} all-reduce-done(%c)")
    assert [c.is_async for c in entry(*lines, "ROOT %n = f32[8]{0} negate(%d)").collectives] == [is_async]


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_wrapper_that_says_is_sync_is_synchronous(entry: Entry, value: str) -> None:
    wrapped = (
        f"%w (x: f32[8]) -> f32[8] {{\n  %x = f32[8]{{0}} parameter(0)\n  ROOT %i = f32[8]{{0}} all-reduce(%x), {GROUPS}\n}}\n"
    )
    start = f'%c = ((f32[8]{{0}}), f32[8]{{0}}) async-start(%p), calls=%w, backend_config={{"is_sync":{value}}}'
    (collective,) = entry(P, start, "ROOT %d = f32[8]{0} async-done(%c)", before=wrapped).collectives
    assert collective.is_async == (value == "false")


def test_a_synchronous_one_stays_so_whatever_its_config(entry: Entry) -> None:
    line = f'ROOT %c = f32[8]{{0}} all-reduce(%p), {GROUPS}, backend_config={{"is_sync":false}}'
    assert [c.is_async for c in entry(P, line).collectives] == [False]


def test_the_done_says_nothing(entry: Entry) -> None:
    """XLA prints is_sync false on each all-reduce-done, also of a pair whose start says true."""
    start = f'%c = f32[8]{{0}} all-reduce-start(%p), {GROUPS}, backend_config={{"is_sync":true}}'
    done = '%d = f32[8]{0} all-reduce-done(%c), backend_config={"is_sync":false}'
    assert [c.is_async for c in entry(P, start, done, "ROOT %n = f32[8]{0} negate(%d)").collectives] == [False]


@pytest.mark.parametrize("wants", [None, SKIPPING], ids=["whole", "skipping"])
def test_the_copies_of_a_gather_in_fusions_are_one(entry: Entry, wants: Wants | None) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%n = f32[8]{0} parameter(1)", *fusions("", "%p"), "ROOT %r = f32[8]{0} negate(%d)")
    options = {} if wants is None else {"wants": wants}
    collectives = entry(*lines, before=steps(""), **options).collectives
    assert found(collectives) == [("all-gather", "s", 16, 32, 16, True)]
    assert collectives[0].inner.name == "gather.1"


def test_two_gathers_of_one_shape_are_two_transfers(entry: Entry) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%n = f32[8]{0} parameter(1)", *fusions("", "%p"), *fusions(".1", "%p"))
    collectives = entry(*lines, "ROOT %r = f32[8]{0} negate(%d)", before=steps("") + steps(".1")).collectives
    assert found(collectives) == [("all-gather", "s", 16, 32, 16, True), ("all-gather", "s.1", 16, 32, 16, True)]


def test_a_gather_beside_the_fusions_is_its_own(entry: Entry) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%n = f32[8]{0} parameter(1)", *fusions("", "%p"))
    collectives = entry(*lines, f"ROOT %g = f32[8]{{0}} all-gather(%p), {GATHER}", before=steps("")).collectives
    assert found(collectives) == [("all-gather", "s", 16, 32, 16, True), ("all-gather", "g", 16, 32, 16, False)]


def test_a_fusion_that_slices_an_all_reduce_is_a_reduce_scatter(entry: Entry) -> None:
    """The operand is that of the inner all-reduce, 3/4 of whose 64 bytes go over the wire; a quarter comes out."""
    before = """%all-reduce-scatter (x: f32[16]) -> f32[4] {
  %x = f32[16]{0} parameter(0)
  %r = f32[16]{0} all-reduce(%x), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
  %i = u32[] partition-id()
  ROOT %s = f32[4]{0} dynamic-slice(%r, %i), dynamic_slice_sizes={4}
}
"""
    lines = ("%p = f32[16]{0} parameter(0)", "ROOT %f = f32[4]{0} fusion(%p), kind=kCustom, calls=%all-reduce-scatter")
    collectives = entry(*lines, before=before).collectives
    assert found(collectives) == [("reduce-scatter", "f", 64, 16, 48, False)]
    assert (collectives[0].inner.name, collectives[0].reduction, collectives[0].group_size) == ("r", "add", 4)


@pytest.mark.parametrize("wants", [None, SKIPPING], ids=["whole", "skipping"])
def test_gathered_matmul_on_tpu(read: Entry, wants: Wants | None) -> None:
    """The program gathers 2048x2048 and 8192x512 bf16 over 4 devices and scatters 4096x2048.

    TPU pads the latter to 4160 rows and moves 48 rows back with a permute; one gather is printed three times.
    """
    text = (DATA / "tpu/gathered_matmul.after.txt").read_text(encoding="utf-8")
    collectives = (read(text) if wants is None else read(text, wants)).collectives
    assert sorted(found(collectives)) == [
        ("all-gather", "all-gather.14", 8_388_608, 33_554_432, 25_165_824, False),
        ("all-gather", "async-collective-start", 8_388_608, 33_554_432, 25_165_824, True),
        ("collective-permute", "collective-permute-start", 196_608, 196_608, 196_608, True),
        ("reduce-scatter", "fusion", 17_039_360, 4_259_840, 12_779_520, False),
    ]
    assert [c.reduction for c in collectives if c.kind == "reduce-scatter"] == ["add"]


@pytest.mark.parametrize("wants", [None, WANTS], ids=["whole", "skipping"])
def test_the_copies_of_a_gather_are_one_without_attributes(read: Entry, wants: Wants | None) -> None:
    """With `print_extra_attributes=false` XLA prints neither the target of a start nor channel, groups and dimensions."""
    text = (DATA / "tpu/gathered_matmul.after.txt").read_text(encoding="utf-8")
    left_out = r"channel_id=|replica_groups=|dimensions=|use_global_device_ids=|source_target_pairs=|custom_call_target="
    bare = re.sub(rf', (?:{left_out})(?:\{{.*?\}}+|"\w+"|\w+)(?=, |\n)', "", text)
    assert not re.search(rf", (?:{left_out})", bare)
    collectives = (read(bare) if wants is None else read(bare, wants)).collectives
    assert sorted((c.kind, c.start.name, c.is_async) for c in collectives) == [
        ("all-gather", "all-gather.14", False),
        ("all-gather", "async-collective-start", True),
        ("collective-permute", "collective-permute-start", True),
        ("reduce-scatter", "fusion", False),
    ]


def test_collectives_on_tpu(read: Entry) -> None:
    """Two psums are combined to one of f32[8,8] and f32[16,16]; the scatter became a slice behind it."""
    collectives = read((DATA / "tpu/collectives.after.txt").read_text(encoding="utf-8")).collectives
    assert [(c.kind, c.operand_bytes, c.result_bytes, c.wire_bytes, c.group_size, c.is_async) for c in collectives] == [
        ("collective-permute", 1024, 1024, 1024, None, True),
        ("all-gather", 1024, 2048, 1024, 2, False),
        ("all-reduce", 1280, 1280, 1920, 4, False),
        ("all-to-all", 1024, 1024, 768, 4, False),
        ("all-reduce", 4, 4, 7, 8, False),
        ("all-reduce", 256, 256, 256, 2, False),
    ]


@pytest.mark.parametrize("name", ["collectives.after", "collectives.generic_async"])
def test_collectives_on_gpu(read: Entry, name: str) -> None:
    """Sugar and wrappers of one module: the same seven, of which four do not say is_sync."""
    collectives = read((DATA / f"gpu/{name}.txt").read_text(encoding="utf-8")).collectives
    assert sorted(
        (c.kind, c.operand_bytes, c.result_bytes, c.wire_bytes, c.group_size or 0, c.is_async) for c in collectives
    ) == [
        ("all-gather", 1024, 2048, 1024, 2, True),
        ("all-reduce", 4, 4, 7, 8, True),
        ("all-reduce", 256, 256, 256, 2, False),
        ("all-reduce", 256, 256, 384, 4, False),
        ("all-to-all", 1024, 1024, 768, 4, True),
        ("collective-permute", 1024, 1024, 1024, 0, False),
        ("reduce-scatter", 1024, 256, 768, 4, True),
    ]
