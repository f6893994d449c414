"""Programs of several slices: their number, and the transfers between them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, RESIZING_OPCODES
from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.slices import transfer_of
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module
from tests.tables import columns, totals

SLICES = Path(__file__).parents[1] / "data" / "tpu" / "between_slices.after.txt"
SEND = "%s = (f32[256]{0}, u32[], token[]) send(%p, %t), channel_id=1, is_host_transfer=true, frontend_attributes={ATTRIBUTES}"


def text(attributes: str, header: str = "num_partitions=8", sharding: str = "") -> str:
    lines = (
        f"  %p = f32[256]{{0}} parameter(0){sharding}",
        "  %t = token[] after-all()",
        f"  {SEND.replace('ATTRIBUTES', attributes)}" if attributes else "",
        "  ROOT %r = f32[256]{0} negate(%p)",
    )
    return "\n".join([f"HloModule m, {header}\n", "ENTRY %main {", *filter(None, lines), "}\n"])


def context_of(hlo: str) -> Context:
    return Context(module(hlo.encode(), Wants(opcodes=OPCODES, operands=RESIZING_OPCODES)))


def transfer(kind: str, target: str) -> str:
    return f'_xla_megascale_target={target},_xla_megascale_transfer_type="{kind}"'


@pytest.mark.parametrize(
    ("attributes", "kind", "slices", "sent"),
    [
        # of 1024 bytes each of n slices sends 2(n - 1)/n for a sum, (n - 1)/n for a scatter, n - 1 for a gather
        (transfer("ALL_REDUCE", '"{1,2}x{0:7}"'), "all-reduce", 2, 1024),
        (transfer("ALL_REDUCE", '"{1,2,3,4}x{0:7}"'), "all-reduce", 4, 1536),
        (transfer("ALL_GATHER", '"{1,2,3,4}x{0:7}"'), "all-gather", 4, 3072),
        (transfer("REDUCE_SCATTER", '"{1,2,3,4}x{0:7}"'), "reduce-scatter", 4, 768),
        (transfer("ALL_TO_ALL", "{{100000,200000},{100001,200001}}"), "all-to-all", 2, 512),
        # 2 devices of each of 4 slices: three quarters of the operand leave the slice
        (transfer("ALL_TO_ALL", "{{100000,100001,200000,200001,300000,300001,400000,400001}}"), "all-to-all", 4, 768),
        (transfer("ONE_TO_ONE", "{{100000->200000},{200000->100000}}"), "collective-permute", 2, 1024),
        (transfer("SOMETHING_NEW", '"{1,2}x{0:7}"'), None, 2, None),
    ],
)
def test_kind_slices_and_bytes_of_transfers_between_slices(
    attributes: str, kind: str | None, slices: int, sent: int | None
) -> None:
    context = context_of(text(attributes))
    (send,) = context.collectives
    assert send.transfer is not None
    assert (send.transfer.kind, send.transfer.slices, send.wire_bytes) == (kind, slices, sent)
    assert (context.device_counts.slices, context.axes) == (send.transfer.last, ["dcn"])


@pytest.mark.parametrize(
    "attributes",
    ["", '_xla_host_transfer_rendezvous="x"', transfer("ALL_REDUCE", '"{1}x{0:7}"'), transfer("ALL_REDUCE", '"nonsense"')],
)
def test_a_program_without_transfers_between_slices_has_one_slice(attributes: str) -> None:
    assert context_of(text(attributes)).device_counts.slices == 1


def test_a_host_send_is_no_transfer_between_slices() -> None:
    context = context_of(text('_xla_host_transfer_rendezvous="x"'))
    assert [transfer_of(collective.inner) for collective in context.collectives] == [None]


TILED = "entry_computation_layout={(f32[256]{0:T(256)})->f32[256]{0:T(256)}}, num_partitions=8"


def test_shardings_give_the_slices_of_a_tpu_program_without_transfers() -> None:
    """On other platforms, a header of 8 partitions with shardings over 16 is an edited text: HI204."""
    sharding = ", sharding={devices=[16]<=[16]}"
    report = hlo_inspect.inspect(text("", TILED, sharding), "collectives")
    assert (report.facts["module.slices"], report.facts["module.devices"], report.findings) == (2, 16, ())
    report = hlo_inspect.inspect(text("", "num_partitions=8", sharding), "collectives")
    assert (report.facts["module.slices"], [finding.rule for finding in report.findings]) == (1, ["HI204"])
    odd = hlo_inspect.inspect(text("", TILED, ", sharding={devices=[12]<=[12]}"), "collectives")
    assert (odd.facts["module.slices"], [finding.rule for finding in odd.findings]) == (1, ["HI204"])


def test_collectives_of_a_program_of_two_slices() -> None:
    """Each device has 64 x 128 floats. Between slices: a sum in a loop of 3, a scatter, a permute. Within: a sum over 4."""
    size = 64 * 128 * 4
    report = hlo_inspect.inspect(SLICES, "collectives")
    facts = report.facts
    assert (facts["module.num_partitions"], facts["module.slices"], facts["module.devices"]) == (8, 2, 16)
    assert (facts["mesh.shape"], report.findings) == ("2x2x4", ())
    assert (facts["collectives.send.count"], facts["collectives.send.executed_count"]) == (3, 5)
    assert facts["collectives.axis.dcn.executed_count"] == 3 + 1 + 1
    assert facts["collectives.axis.dcn.executed_wire_bytes"] == 3 * size + size // 2 + size
    assert (facts["collectives.count"], facts["collectives.executed_wire_bytes"]) == (1, 2 * size * 3 // 4)
    assert columns(report.table("point_to_point"), "kind", "transfer", "axis", "sites", "runs", "executed_wire_bytes") == [
        ("send", "all-reduce of 2 slices", "dcn", 1, 3, 3 * size),
        ("send", "collective-permute of 2 slices", "dcn", 1, 1, size),
        ("send", "reduce-scatter of 2 slices", "dcn", 1, 1, size // 2),
    ]
    assert columns(report.table("collectives_by_axis"), "axis", "runs", "executed_wire_bytes") == [
        ("dcn", 5, 3 * size + size // 2 + size),
        ("d1", 1, 2 * size * 3 // 4),
    ]


def test_transfers_between_slices_are_in_no_total() -> None:
    report = hlo_inspect.inspect(SLICES, "collectives")
    assert report.table("collectives_by_axis").total is None
    total = totals(report.table("collectives"))
    assert (total["executed_wire_bytes"], total["runs"]) == (report.facts["collectives.executed_wire_bytes"], None)


def test_the_headline_has_bytes_between_slices_apart_from_the_total() -> None:
    report = hlo_inspect.inspect(SLICES, "summary")
    (line,) = (row for row in report.headline if row.label == "collectives")
    texts = [part if isinstance(part, str) else str(part.value) for part in line.parts]
    assert " between slices (dcn)" in texts
    assert texts[texts.index(" between slices (dcn)") - 1] == str(5 * 64 * 128 * 4 - 64 * 128 * 4 // 2)
    assert not any("dcn " in text for text in texts)
