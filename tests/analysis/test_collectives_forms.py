"""Collectives of several operands, in place, under old names, without names; reducers; send and recv; the formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, RESIZING_OPCODES, TARGETS, Collective, wire_bytes
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
P = "%p = f32[8]{0} parameter(0)"
Q = "%q = bf16[6]{0} parameter(1)"
PAIRS = "source_target_pairs={{0,1},{1,0}}"
GATHER = "replica_groups={{0,1}}, dimensions={0}"
SKIPPING = Wants(opcodes=OPCODES, targets=TARGETS, operands=RESIZING_OPCODES)


def one(context: Context) -> Collective:
    (collective,) = context.collectives
    return collective


def sizes(collective: Collective) -> tuple[int | None, int | None, int | None]:
    return collective.operand_bytes, collective.result_bytes, collective.wire_bytes


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(f32[8]{0}, bf16[6]{0}) all-reduce(%p, %q), replica_groups={{0,1}}, to_apply=%add", (44, 44, 44)),
        ("(f32[8]{0}, bf16[6]{0}) all-reduce-start(%p, %q), replica_groups={{0,1}}, to_apply=%add", (44, 44, 44)),
        (f"(f32[16]{{0}}, bf16[12]{{0}}) all-gather(%p, %q), {GATHER}", (44, 88, 44)),
        (f"((f32[8]{{0}}, bf16[6]{{0}}), (f32[16]{{0}}, bf16[12]{{0}})) all-gather-start(%p, %q), {GATHER}", (44, 88, 44)),
        ("(f32[4]{0}, bf16[3]{0}) reduce-scatter(%p, %q), replica_groups={{0,1}}, dimensions={0}, to_apply=%add", (44, 22, 22)),
        ("(f32[8]{0}, f32[8]{0}) all-to-all(%p, %p), replica_groups={{0,1}}", (64, 64, 32)),
        (f"(f32[8]{{0}}, bf16[6]{{0}}) collective-permute(%p, %q), {PAIRS}", (44, 44, 44)),
        (f"(f32[8]{{0}}, bf16[6]{{0}}, f32[8]{{0}}) collective-permute(%p, %q, %p), {PAIRS}", (76, 76, 76)),
        (
            "((f32[8]{0}, bf16[6]{0}, f32[8]{0}), (f32[8]{0}, bf16[6]{0}, f32[8]{0})) "
            f"collective-permute-start(%p, %q, %p), {PAIRS}",
            (76, 76, 76),
        ),
    ],
)
def test_several_operands(entry: Entry, line: str, expected: tuple[int, int, int]) -> None:
    """f32[8] has 32 bytes and bf16[6] 12; XLA combines permutes of any number of operands too."""
    assert sizes(one(entry(P, Q, f"ROOT %c = {line}"))) == expected


def test_a_permute_in_place_sends_its_first_operand(entry: Entry) -> None:
    """`slice_sizes` marks the form whose other operands are the output buffer and two offsets."""
    lines = ("%i = s32[] parameter(2)", "%o = f32[64]{0} parameter(1)", "%s = (s32[]) tuple(%i)")
    line = f"ROOT %c = f32[64]{{0}} collective-permute(%p, %o, %s, %s), {PAIRS}, slice_sizes={{{{8}}}}"
    assert one(entry(P, *lines, line)).operand_bytes == 32


@pytest.mark.parametrize(
    ("sizes", "sent"),
    [("{{64,32}}", 64 * 32 * 2), ("{{64,32},{16,32}}", (64 + 16) * 32 * 2), ("{{64}}", None)],  # the last one has another rank
)
def test_a_permute_in_place_sends_slices(entry: Entry, sizes: str, sent: int | None) -> None:
    """Two of them have two lists of offsets each. An element of bf16 has two bytes."""
    lines = (
        "%x = bf16[128,32]{1,0} parameter(0)",
        "%o = bf16[128,128]{1,0} parameter(1)",
        "%i = s32[] parameter(2)",
        "%s = (s32[], s32[]) tuple(%i, %i)",
    )
    line = f"ROOT %c = bf16[128,128]{{1,0}} collective-permute(%x, %o, %s, %s), {PAIRS}, slice_sizes={sizes}"
    collective = one(entry(*lines, line))
    assert (collective.operand_bytes, collective.wire_bytes) == (sent, sent)


@pytest.mark.parametrize(
    ("pairs", "wire"),
    [("{{0,0}}", 0), ("{{0,0},{1,1}}", 0), ("{ {0, 0}, {1 , 1} }", 0), ("{{0,0},{1,2}}", 32), ("{{1,0},{0,1}}", 32), ("{}", 0)],
)
def test_a_permute_to_itself_sends_nothing(entry: Entry, pairs: str, wire: int) -> None:
    collective = one(entry(P, f"ROOT %c = f32[8]{{0}} collective-permute(%p), source_target_pairs={pairs}"))
    assert (collective.operand_bytes, collective.wire_bytes, collective.source_target_pairs) == (32, wire, pairs)
    assert collective.group_size is None


def test_a_ragged_exchange_has_the_bytes_of_its_first_operand(entry: Entry) -> None:
    offsets = "%i = s64[2]{0} parameter(1)"
    line = "ROOT %c = f32[8]{0} ragged-all-to-all(%p, %p, %i, %i, %i, %i), replica_groups={{0,1}}"
    collective = one(entry(P, offsets, line))
    assert (collective.kind, collective.group_size) == ("ragged-all-to-all", 2)
    assert sizes(collective) == (32, 32, None)  # the second operand is the buffer of the output, the others say what goes where


@pytest.mark.parametrize(
    ("attributes", "size"),
    [("replica_groups={{0,1}}", 2), ('replica_groups={{0,1,2,3}}, barrier=""', 4), ("replica_groups={}, all_reduce_id=3", 4)],
)
def test_cross_replica_sum_is_the_old_name_of_all_reduce(entry: Entry, attributes: str, size: int) -> None:
    line = f"ROOT %c = f32[8]{{0}} cross-replica-sum(f32[8]{{0}} %p), {attributes}, to_apply=%add"
    collective = one(entry(P, line, header=", replica_count=4"))
    assert (collective.kind, collective.start.opcode, collective.group_size) == ("all-reduce", "cross-replica-sum", size)
    assert collective.channel_id == (3 if "all_reduce_id" in attributes else None)


@pytest.mark.parametrize("wants", [{}, {"wants": SKIPPING}], ids=["whole", "skipping"])
def test_all_reduce_scatter_is_the_name_of_reduce_scatter_in_2021(entry: Entry, wants: dict[str, Wants]) -> None:
    """f32[8] has 32 bytes: of four devices each sends three quarters of it and keeps one."""
    line = "ROOT %c = f32[2]{0} all-reduce-scatter(%p), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=%add"
    collective = one(entry(P, line, header=", replica_count=4", **wants))
    assert (collective.kind, collective.start.opcode, collective.group_size) == ("reduce-scatter", "all-reduce-scatter", 4)
    assert (collective.operand_bytes, collective.result_bytes, collective.wire_bytes) == (32, 8, 24)


@pytest.mark.parametrize("wants", [None, Wants(opcodes=OPCODES, targets=TARGETS)], ids=["whole", "skipping"])
@pytest.mark.parametrize(
    ("root", "reduction"),
    [
        ("f32[] add(%x, %y)", "add"),
        ("f32[] multiply(%x, %y)", "mul"),
        ("f32[] maximum(%x, %y)", "max"),
        ("f32[] minimum(%x, %y)", "min"),
        ("f32[] and(%x, %y)", "and"),
        ("f32[] or(%x, %y)", "or"),
        ("f32[] subtract(%x, %y)", "subtract"),
    ],
)
def test_the_reduction_is_the_root_of_the_reducer(entry: Entry, root: str, reduction: str, wants: Wants | None) -> None:
    reducer = (
        f"%of (x: f32[], y: f32[]) -> f32[] {{\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %r = {root}\n}}\n"
    )
    line = "ROOT %c = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%of"
    options = {} if wants is None else {"wants": wants}
    assert one(entry(P, line, before=reducer, **options)).reduction == reduction


def test_a_reducer_that_the_text_does_not_hold(entry: Entry) -> None:
    assert one(entry(P, "ROOT %c = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%gone")).reduction == "unknown"


def test_send_and_recv(entry: Entry) -> None:
    lines = (
        P,
        "%t = token[] after-all()",
        "%s = (f32[8]{0}, u32[], token[]) send(%p, %t), channel_id=7",
        "%sd = token[] send-done(%s), channel_id=7",
        "%r = (f32[4]{0}, u32[], token[]) recv(%t), channel_id=8",
        "ROOT %rd = (f32[4]{0}, token[]) recv-done(%r), channel_id=8",
    )
    collectives = entry(*lines).collectives
    assert [(c.kind, c.start.name, c.channel_id, c.group_size, c.wire_bytes) for c in collectives] == [
        ("send", "s", 7, None, None),
        ("recv", "r", 8, None, None),
    ]
    assert all(c.is_point_to_point for c in collectives)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f32[8]{0} all-reduce(%gone), replica_groups={{0,1}}, to_apply=%add", (32, 32, 32)),
        ("f32[8]{0} all-gather(%gone), replica_groups={{0,1}}, dimensions={0}", (16, 32, 16)),
        ("f32[8]{0} reduce-scatter(%gone), replica_groups={{0,1}}, dimensions={0}, to_apply=%add", (64, 32, 32)),
        ("f32[8]{0} all-gather(%gone), replica_groups={}, dimensions={0}", (None, 32, None)),
        ("f32[?]{0} all-reduce(%gone), replica_groups={{0,1}}, to_apply=%add", (None, None, None)),
    ],
)
def test_an_operand_without_a_shape_is_inferred(entry: Entry, line: str, expected: tuple[int | None, ...]) -> None:
    assert sizes(one(entry(f"ROOT %c = {line}"))) == expected


@pytest.mark.parametrize(
    "name", ["long", "no_operand_names", "operand_shapes", "no_percent", "short_parsable", "no_signatures"]
)
def test_all_prints_of_a_module_hold_the_same_collectives(read: Entry, name: str) -> None:
    """Seven collectives, computed by hand from their shapes and groups; all-to-all's operand comes in four slices."""
    collectives = read((DATA / f"prints/{name}.txt").read_text(encoding="utf-8")).collectives
    assert [(c.kind, *sizes(c), c.group_size, c.reduction) for c in collectives] == [
        ("all-reduce", 256, 256, 384, 4, "add"),
        ("all-reduce", 256, 256, 256, 2, "max"),
        ("collective-permute", 1024, 1024, 1024, None, ""),
        ("all-gather", 1024, 2048, 1024, 2, ""),
        ("reduce-scatter", 1024, 256, 768, 4, "add"),
        ("all-reduce", 4, 4, 7, 8, "add"),
        ("all-to-all", 1024, 1024, 768, 4, ""),
    ]


@pytest.mark.parametrize(
    ("kind", "operand", "size", "expected"),
    [
        ("all-reduce", 10, 4, 15),
        ("all-reduce", 1, 8, 2),  # 1.75
        ("all-gather", 10, 4, 30),
        ("reduce-scatter", 10, 4, 8),  # 7.5
        ("all-to-all", 10, 3, 7),  # 6.67
        ("collective-broadcast", 10, None, 10),
        ("collective-permute", 10, None, 10),
        ("ragged-all-to-all", 10, 4, None),
        ("all-reduce", 10, None, None),
        ("all-reduce", None, 4, None),
        ("all-reduce", 0, 4, 0),
        ("all-reduce", 2**62 + 1, 2, 2**62 + 1),
    ],
)
def test_the_formulas(kind: str, operand: int | None, size: int | None, expected: int | None) -> None:
    assert wire_bytes(kind, operand, size) == expected
