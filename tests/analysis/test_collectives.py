"""Each kind of collective in each form, with numbers computed by hand; read whole, and read without unneeded parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.participants import GroupMode
from hlo_inspect.hlo.wants import Wants

Find = Callable[..., list[Collective]]

EVERYTHING = Wants(opcodes=OPCODES | {"fusion", "custom-call"}, targets=TARGETS, entry=True, every_line=True)
SKIPPING = Wants(opcodes=OPCODES, targets=TARGETS)


@pytest.fixture(params=[EVERYTHING, SKIPPING], ids=["whole", "skipping"])
def find(request: pytest.FixtureRequest, entry: Callable[..., Context]) -> Find:
    return lambda *lines, **text: entry(*lines, wants=request.param, **text).collectives


class Kind(NamedTuple):
    """A collective of 3 devices with operand and result shape, their bytes and those on the wire."""

    opcode: str
    operand: str
    result: str
    attributes: str
    operand_bytes: int
    result_bytes: int
    wire_bytes: int | None
    size: int | None = 3


GROUPS = "replica_groups={{0,1,2}}"
KINDS = (
    Kind("all-reduce", "u8[5]{0}", "u8[5]{0}", f"{GROUPS}, to_apply=%add", 5, 5, 7),  # 2 * 2/3 * 5 = 6.67
    Kind("all-gather", "f32[10]{0}", "f32[30]{0}", f"{GROUPS}, dimensions={{0}}", 40, 120, 80),
    Kind("reduce-scatter", "f32[30]{0}", "f32[10]{0}", f"{GROUPS}, dimensions={{0}}, to_apply=%add", 120, 40, 80),
    Kind("all-to-all", "f32[30]{0}", "f32[30]{0}", f"{GROUPS}, dimensions={{0}}", 120, 120, 80),
    Kind("collective-permute", "bf16[7]{0}", "bf16[7]{0}", "source_target_pairs={{0,1},{1,2}}", 14, 14, 14, None),
    Kind("collective-broadcast", "s32[2]{0}", "s32[2]{0}", GROUPS, 8, 8, 8),
)


def plain(kind: Kind) -> tuple[list[str], str]:
    return [f"%c = {kind.result} {kind.opcode}(%p), {kind.attributes}"], ""


def start_and_done(kind: Kind) -> tuple[list[str], str]:
    """As each start is printed: all-reduce's shape is its result, the native ones' a pair, sugar's holds the operands."""
    shape = {
        "all-reduce": kind.result,
        "all-gather": f"({kind.operand}, {kind.result})",
        "collective-permute": f"({kind.operand}, {kind.result}, u32[], u32[])",
    }.get(kind.opcode, f"(({kind.operand}), {kind.result})")
    start = f"%c = {shape} {kind.opcode}-start(%p), {kind.attributes}"
    return [start, f"%d = {kind.result} {kind.opcode}-done(%c)"], ""


def wrapped(kind: Kind) -> tuple[list[str], str]:
    before = (
        f"%wrapped (x: {kind.operand}) -> {kind.result} {{\n  %x = {kind.operand} parameter(0)\n"
        f"  ROOT %inner = {kind.result} {kind.opcode}(%x), {kind.attributes}\n}}\n"
    )
    lines = [
        f"%c = (({kind.operand}), {kind.result}) async-start(%p), calls=%wrapped",
        f"%u = (({kind.operand}), {kind.result}) async-update(%c)",
        f"%d = {kind.result} async-done(%u)",
    ]
    return lines, before


@pytest.mark.parametrize("form", [plain, start_and_done, wrapped])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.opcode)
def test_each_kind_in_each_form(find: Find, kind: Kind, form: Callable[[Kind], tuple[list[str], str]]) -> None:
    lines, before = form(kind)
    (collective,) = find(f"%p = {kind.operand} parameter(0)", *lines, "ROOT %out = pred[] constant(true)", before=before)
    assert (collective.kind, collective.start.name) == (kind.opcode, "c")
    assert (collective.operand_bytes, collective.result_bytes, collective.wire_bytes) == kind[4:7]
    assert (collective.group_size, collective.is_async) == (kind.size, form is not plain)
    assert collective.inner.name == ("inner" if form is wrapped else "c")
    assert collective.reduction == ("add" if "to_apply" in kind.attributes else "")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.opcode)
def test_the_done_that_is_the_root_is_no_collective_of_its_own(find: Find, kind: Kind) -> None:
    (start, done), _ = start_and_done(kind)
    collectives = find(f"%p = {kind.operand} parameter(0)", start, f"ROOT {done}")
    assert [(collective.kind, collective.start.name, collective.operand_bytes) for collective in collectives] == [
        (kind.opcode, "c", kind.operand_bytes)
    ]


def test_wire_bytes_are_rounded_up_one_by_one(find: Find) -> None:
    """Three times 6.67 bytes are 7 each, so 21 and not 20."""
    line = "u8[5]{0} all-reduce(%p), replica_groups={{0,1,2}}, to_apply=%add"
    collectives = find(
        "%p = u8[5]{0} parameter(0)", *(f"%r.{n} = {line}" for n in range(3)), "ROOT %out = pred[] constant(true)"
    )
    assert sum(collective.wire_bytes or 0 for collective in collectives) == 21


@pytest.mark.parametrize("mark", ["ROOT ", ""], ids=["marked", "the last line"])
def test_the_root_counts_once(find: Find, mark: str) -> None:
    line = f"{mark}%r = f32[4]{{0}} all-reduce(%p), replica_groups={{{{0,1}}}}, to_apply=%add"
    assert [collective.start.name for collective in find("%p = f32[4]{0} parameter(0)", line)] == ["r"]


@pytest.mark.parametrize(
    ("opcode", "attributes"),
    [
        ("all-reduce", "to_apply=%add"),
        ("all-gather", "dimensions={0}"),
        ("reduce-scatter", "dimensions={0}, to_apply=%add"),
        ("all-to-all", "dimensions={0}"),
    ],
)
def test_a_group_of_one_sends_nothing(find: Find, opcode: str, attributes: str) -> None:
    line = f"ROOT %c = f32[4]{{0}} {opcode}(%p), replica_groups={{{{0}},{{1}}}}, {attributes}"
    (collective,) = find("%p = f32[4]{0} parameter(0)", line)
    assert (collective.operand_bytes, collective.wire_bytes, collective.group_size) == (16, 0, 1)


@pytest.mark.parametrize(
    ("line", "header", "mode", "size", "wire"),
    [
        ("replica_groups={{0,1}}", ", replica_count=2, num_partitions=4", GroupMode.CROSS_REPLICA, 2, 16),
        ("replica_groups={}", ", replica_count=2, num_partitions=4", GroupMode.CROSS_REPLICA, 2, 16),
        ("channel_id=1, replica_groups={{0}}", ", num_partitions=4", GroupMode.CROSS_REPLICA_AND_PARTITION, 4, 24),
        ("channel_id=1, replica_groups={}", ", num_partitions=4", GroupMode.CROSS_REPLICA_AND_PARTITION, 4, 24),
        (
            "channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true",
            ", replica_count=2, num_partitions=4",
            GroupMode.FLATTENED_ID,
            4,
            24,
        ),
        ("replica_groups={{0,1,2},{3,4}}", "", GroupMode.CROSS_REPLICA, 3, 22),  # 2 * 2/3 * 16 = 21.3
    ],
)
def test_group_modes(find: Find, line: str, header: str, mode: GroupMode, size: int, wire: int) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", f"ROOT %r = f32[4]{{0}} all-reduce(%p), {line}, to_apply=%add")
    (collective,) = find(*lines, header=header)
    assert (collective.mode, collective.group_size, collective.wire_bytes) == (mode, size, wire)


def test_an_exchange_between_partitions(find: Find) -> None:
    """With a channel the ids are partitions, so that a group of all has four whatever the replicas."""
    line = "ROOT %e = f32[8]{0} all-to-all(%p), channel_id=1, replica_groups={}, dimensions={0}"
    (collective,) = find("%p = f32[8]{0} parameter(0)", line, header=", replica_count=2, num_partitions=4")
    assert (collective.mode, collective.group_size, collective.wire_bytes) == (GroupMode.CROSS_PARTITION, 4, 24)


def test_groups_of_all_devices_are_unknown_without_a_number(find: Find) -> None:
    (collective,) = find("%p = f32[4]{0} parameter(0)", "ROOT %r = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%add")
    assert (collective.operand_bytes, collective.group_size, collective.wire_bytes) == (16, None, None)
    assert collective.participants.fault


def test_the_attributes_as_printed(find: Find) -> None:
    line = (
        "ROOT %g = f32[8]{0} all-gather(%p), channel_id=12, replica_groups=[4,2]<=[8], dimensions={0}, "
        'use_global_device_ids=true, metadata={op_name="jit(f)/all_gather" source_file="a.py" source_line=4}'
    )
    (collective,) = find("%p = f32[4]{0} parameter(0)", line)
    assert (collective.channel_id, collective.replica_groups, collective.source_target_pairs) == (12, "[4,2]<=[8]", "")
    assert (collective.origin.op_name, collective.origin.source) == ("jit(f)/all_gather", "a.py:4")


def test_inside_a_loop_it_stands_once(find: Find) -> None:
    body = """%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %v = f32[4]{0} get-tuple-element(%s), index=1
  %r = f32[4]{0} all-reduce(%v), replica_groups={{0,1}}, to_apply=%add
  ROOT %t = (s32[], f32[4]{0}) tuple(%n, %r)
}

%never (s: (s32[], f32[4])) -> pred[] {
  %s = (s32[], f32[4]{0}) parameter(0)
  ROOT %f = pred[] constant(false)
}
"""
    loop = "ROOT %w = (s32[], f32[4]{0}) while(%p), condition=%never, body=%body"
    (collective,) = find("%p = (s32[], f32[4]{0}) parameter(0)", loop, before=body)
    assert (collective.start.name, collective.start.computation.name, collective.operand_bytes) == ("r", "body", 16)
