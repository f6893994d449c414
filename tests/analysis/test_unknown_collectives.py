"""Collectives of opcodes that nobody knows, and `collective-reduce`, which XLA has since August 2026."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import hlo_inspect
from hlo_inspect.analysis.collectives.logical_collectives import WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.report.model import Report
from tests.tables import columns

Entry = Callable[..., Context]

P = "%p = f32[1024]{0} parameter(0)"
WHO = "%who = s32[1]{0} parameter(1)"
HALVES = "replica_groups={{0,1},{2,3}}"
REPLICAS = ", replica_count=4"
HEADER = ", num_partitions=4"


@pytest.fixture(params=[WANTS, Wants(graph=True) | WANTS], ids=["skipping", "whole"])
def wants(request: pytest.FixtureRequest) -> Wants:
    chosen: Wants = request.param
    return chosen


def kinds(collectives: Sequence[Collective]) -> list[tuple[str, bool]]:
    return [(collective.kind, collective.is_async) for collective in collectives]


# -- unknown opcodes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "f32[1024]{0} collective-gather(%p)",
        "f32[1024]{0} all-shuffle(%p)",
        f"f32[1024]{{0}} global-sum(%p), {HALVES}",
        "f32[1024]{0} global-sum(%p), dimensions={0}, channel_id=4",
        "f32[1024]{0} collective-gather(f32[1024]{0} %p), dimensions={0}",
    ],
)
def test_a_name_or_devices_make_an_unknown_opcode_a_collective(entry: Entry, line: str, wants: Wants) -> None:
    context = entry(P, f"%c = {line}", header=HEADER, wants=wants)
    (collective,) = context.collectives
    assert collective.kind == line.split()[1].partition("(")[0]
    assert (collective.operand_bytes, collective.result_bytes, collective.wire_bytes) == (None, None, None)
    assert (collective.group_size, collective.most_sent) == (None, None)
    assert collective.reason_unknown == f"c (line {collective.start.line}) has the unknown opcode {collective.kind}"


@pytest.mark.parametrize(
    "line",
    [
        "f32[1024]{0} frobnicate(%p), dimensions={0}",
        'f32[1024]{0} frobnicate(%p), metadata={op_name="channel_id=3"}',
        'f32[1024]{0} negate(%p), frontend_attributes={replica_groups="{{0,1}}"}',
        "f32[1024]{0} negate(%p), channel_id=3",
        'f32[1024]{0} negate(%p), metadata={op_name="f32[8]{0} collective-gather(%x)"}',
    ],
)
def test_other_instructions_are_none(entry: Entry, line: str, wants: Wants) -> None:
    assert entry(P, f"%c = {line}", header=HEADER, wants=wants).collectives == []


def test_a_pair_is_one_collective(entry: Entry, wants: Wants) -> None:
    started = f"%s = (f32[1024]{{0}}, f32[1024]{{0}}) collective-gather-start(%p), channel_id=1, {HALVES}"
    done = "%d = f32[1024]{0} collective-gather-done(%s), channel_id=1"
    context = entry(P, started, done, header=HEADER, wants=wants)
    assert kinds(context.collectives) == [("collective-gather", True)]


def test_one_in_an_asynchronous_computation(entry: Entry, wants: Wants) -> None:
    wrapped = (
        "%w (q: f32[1024]) -> f32[1024] {\n  %q = f32[1024]{0} parameter(0)\n  ROOT %g = f32[1024]{0} all-shuffle(%q)\n}\n"
    )
    started = "%s = ((f32[1024]{0}), f32[1024]{0}) async-start(%p), calls=%w"
    context = entry(P, started, "%d = f32[1024]{0} async-done(%s)", header=HEADER, wants=wants, before=wrapped)
    assert kinds(context.collectives) == [("all-shuffle", True)]
    assert [collective.start.name for collective in context.collectives] == ["s"]


def test_the_others_stay_as_they_are(entry: Entry, wants: Wants) -> None:
    unknown = f"%u = f32[1024]{{0}} global-sum(%p), channel_id=2, {HALVES}, use_global_device_ids=true"
    gather = f"%k = f32[2048]{{0}} all-gather(%p), channel_id=1, {HALVES}, dimensions={{0}}, use_global_device_ids=true"
    context = entry(P, gather, unknown, header=HEADER, wants=wants)
    assert [(c.kind, c.wire_bytes, c.group_size) for c in context.collectives] == [
        ("all-gather", 4096, 2),
        ("global-sum", None, None),
    ]
    assert context.axes == ["d1", None]


def collectives(*lines: str) -> Report:
    body = "\n".join(f"  {line}" for line in lines)
    text = f"HloModule m{HEADER}\n\nENTRY %main (p: f32[1024]) -> f32[1024] {{\n  {P}\n{body}\n}}\n"
    return hlo_inspect.inspect(text, ("collectives",))


def test_counts_are_lower_bounds_and_a_finding_names_the_opcode() -> None:
    report = collectives(
        "%a = f32[1024]{0} all-shuffle(%p), channel_id=1",
        "%b = f32[1024]{0} all-shuffle(%a), channel_id=2",
        f"ROOT %c = f32[1024]{{0}} collective-broadcast(%b), {HALVES}, channel_id=3",
    )
    facts = report.facts
    assert facts["collectives.count"] is facts["collectives.executed_count"] is facts["collectives.phase.unknown.count"] is None
    bounds = ("collectives.count", "collectives.executed_count", "collectives.phase.unknown.count")
    assert [facts[f"{name}.lower_bound"] for name in bounds] == [3, 3, 3]
    assert (facts["collectives.collective-broadcast.count"], facts["collectives.group_size.2.count"]) == (1, 1)
    assert facts["collectives.executed_wire_bytes.lower_bound"] == 4096
    assert "collectives.count: a (line 5) has the unknown opcode all-shuffle" in report.notes
    assert [(finding.rule, finding.message, finding.subject) for finding in report.findings] == [
        ("HI004", "unknown opcode 'all-shuffle' (2 times, first here)", "a")
    ]
    assert columns(report.table("collectives_by_kind"), "kind", "runs", "runs_lower_bound") == [
        ("collective-broadcast", 1, 1),
        ("all-shuffle", None, 2),
    ]


# -- collective-reduce ------------------------------------------------------------------------------------------------------

REDUCE = "to_apply=%add"


@pytest.mark.parametrize(
    "line",
    [
        f"f32[1024]{{0}} collective-reduce(%p), {HALVES}, has_dynamic_root=false, {REDUCE}",
        f"f32[1024]{{0}} collective-reduce(%p, %who), {HALVES}, has_dynamic_root=true, {REDUCE}",
        f"f32[1024]{{0}} collective-reduce(f32[1024]{{0}} %p, s32[1]{{0}} %who), {HALVES}, has_dynamic_root=true, {REDUCE}",
        f"f32[1024]{{0}} collective-reduce(%p), channel_id=1, {HALVES}, use_global_device_ids=true, {REDUCE}",
        f"((f32[1024]{{0}}, s32[1]{{0}}), f32[1024]{{0}}) collective-reduce-start(%p, %who), {HALVES}, {REDUCE}",
    ],
)
def test_a_reduction_to_one_device_sends_its_operand_and_no_root(entry: Entry, line: str, wants: Wants) -> None:
    """The root's number, an operand of four bytes, is not reduced."""
    header = REPLICAS if "channel_id" not in line else HEADER
    (collective,) = entry(P, WHO, f"%c = {line}", header=header, wants=wants).collectives
    assert (collective.kind, collective.group_size) == ("collective-reduce", 2)
    assert (collective.operand_bytes, collective.result_bytes, collective.wire_bytes) == (4096, 4096, 4096)


# -- upper bounds -----------------------------------------------------------------------------------------------------------


def test_a_ragged_exchange_sends_at_most_its_first_operand(entry: Entry) -> None:
    lines = [P, *[f"%o{number} = s64[4]{{0}} parameter({number})" for number in range(1, 5)]]
    ragged = f"%c = f32[512]{{0}} ragged-all-to-all(%p, %p, %o1, %o2, %o3, %o4), {HALVES}"
    (collective,) = entry(*lines, ragged, header=REPLICAS, wants=WANTS).collectives
    assert (collective.wire_bytes, collective.most_sent) == (None, 4096)


def test_its_upper_bound_is_told() -> None:
    report = collectives(
        "%o = s64[4]{0} constant({0,0,0,0})",
        f"ROOT %c = f32[1024]{{0}} ragged-all-to-all(%p, %p, %o, %o, %o, %o), {HALVES}, channel_id=1",
    )
    reason = "c (line 6) sends what its operands say at run time: <= 4.00 KiB"
    assert f"collectives.executed_wire_bytes: {reason}" in report.notes
