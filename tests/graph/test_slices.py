"""A real program of two slices: the transfers between them. Cases of texts are in tests/cases/graph/slices.hlo."""

from __future__ import annotations

from pathlib import Path

import hlo_inspect
from tests.tables import columns, totals

SLICES = Path(__file__).parents[1] / "data" / "tpu" / "between_slices.after.txt"


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
