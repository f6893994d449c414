"""Bad input: each fault is a finding with its place, dependent facts are unknown with a reason, and the others stand."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.tables import column

HEADER = "HloModule m, num_partitions=4\n\n"
ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

"""
REDUCE = "r = f32[8]{0} all-reduce(p), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups="
GATHER = "g = f32[16]{0} all-gather(p), channel_id=2, use_global_device_ids=true, dimensions={0}, replica_groups={{0,1},{2,3}}"


def reported(*lines: str, before: str = "", mesh: str | None = None) -> Report:
    """Inspect an entry of these lines. Its first instruction is in line 10 unless something stands before the entry."""
    body = "".join(f"  {line}\n" for line in lines)
    return hlo_inspect.inspect(f"{HEADER}{ADD}{before}ENTRY e {{\n{body}}}\n", ("collectives",), mesh=mesh)


def findings(report: Report) -> list[tuple[str, int | None]]:
    return [(finding.rule, finding.location.line if finding.location else None) for finding in report.findings]


def reasons(report: Report, fact: str) -> list[str]:
    return [note for note in report.notes if note.startswith(f"{fact}:")]


def test_a_group_with_a_device_outside_of_the_program() -> None:
    """All-reduce and all-gather both have operands of 8 × 4 bytes; the all-gather sends 1 × 32 bytes to its neighbour."""
    report = reported("p = f32[8]{0} parameter(0)", f"{REDUCE}{{{{0,1}},{{2,4}}}}", f"ROOT {GATHER}")
    assert findings(report) == [("HI203", 11)]
    assert report.facts["collectives.wire_bytes"] is None
    (reason,) = reasons(report, "collectives.wire_bytes")
    assert "it names device 4 of a program with 4" in reason
    assert (report.facts["mesh.shape"], report.facts["mesh.order"]) == (None, None)
    assert "r (line 11): it names device 4" in reasons(report, "mesh.shape")[0]
    assert (report.facts["collectives.count"], report.facts["collectives.operand_bytes"]) == (2, 64)
    assert (column(report.table("collectives"), "group_size"), column(report.table("collectives"), "wire_bytes")) == (
        [2, None],
        [32, None],
    )
    assert column(report.table("collectives"), "axis") == [None, None]


def test_a_pair_with_a_device_outside_of_the_program() -> None:
    permute = "c = f32[8]{0} collective-permute(p), channel_id=3, source_target_pairs={{0,1},{1,9}}"
    report = reported("p = f32[8]{0} parameter(0)", permute, f"ROOT {GATHER}")
    assert findings(report) == [("HI203", 11)]
    assert column(report.table("collectives"), "axis") == [None, "d1"]
    assert (report.facts["mesh.shape"], report.facts["collectives.wire_bytes"]) == ("2x2", 64)


def test_a_sharding_for_another_number_of_devices() -> None:
    report = reported("p = f32[8]{0} parameter(0), sharding={devices=[8]<=[8]}", f"ROOT {GATHER}")
    assert findings(report) == [("HI204", 9)]
    assert report.facts["mesh.shape"] is None
    assert "is for 8 devices, the program has 4 partitions" in reasons(report, "mesh.shape")[0]
    assert report.facts["collectives.wire_bytes"] == 32


def test_a_trip_count_that_is_text() -> None:
    loop = """body {
  q = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} all-reduce(q), channel_id=1, replica_groups={}, to_apply=add
}

condition {
  q = f32[8]{0} parameter(0)
  ROOT t = pred[] custom-call(q), custom_call_target="decide"
}

"""
    config = 'backend_config={"known_trip_count":{"n":"many"}}'
    while_ = f"ROOT w = f32[8]{{0}} while(p), condition=condition, body=body, {config}"
    report = reported("p = f32[8]{0} parameter(0)", while_, before=loop)
    assert findings(report) == [("HI501", 21)]
    assert report.facts["collectives.executed_count"] is None
    assert "the trip count of w (line 21)" in reasons(report, "collectives.executed_count")[0]
    assert (report.facts["collectives.count"], report.facts["collectives.operand_bytes"]) == (1, 32)


def test_computations_that_call_each_other() -> None:
    ring = """even {
  q = f32[8]{0} parameter(0)
  ROOT c = f32[8]{0} call(q), to_apply=odd
}

odd {
  q = f32[8]{0} parameter(0)
  ROOT c = f32[8]{0} call(q), to_apply=even
}

"""
    call = "c = f32[8]{0} call(p), to_apply=even"
    report = reported("p = f32[8]{0} parameter(0)", call, f"ROOT {GATHER}", before=ring)
    assert findings(report) == [("HI502", 9), ("HI502", 14)]
    assert report.facts["collectives.count"] == 1


@pytest.mark.parametrize(
    ("mesh", "labels", "shape"),
    [
        ("data=2,model=2", ["model"], "2x2"),
        ("x=4", ["x:(2)2"], "4"),  # a named axis stays whole
        ("a=1,b=2,c=2", ["c"], "2x2"),
        (None, ["d1"], "2x2"),
    ],
)
def test_a_given_mesh_names_the_axes(mesh: str | None, labels: list[str], shape: str) -> None:
    report = reported("p = f32[8]{0} parameter(0)", f"ROOT {GATHER}", mesh=mesh)
    assert (column(report.table("collectives"), "axis"), findings(report)) == (labels, [])
    assert report.facts["mesh.shape"] == shape


@pytest.mark.parametrize(("mesh", "devices"), [("data=2,model=4", 8), ("data=3", 3), ("data=1", 1)])
def test_a_given_mesh_for_another_number_of_devices_is_refused(mesh: str, devices: int) -> None:
    with pytest.raises(hlo_inspect.UsageError, match=f"the mesh {mesh} has {devices} devices, and the module m has 4"):
        reported("p = f32[8]{0} parameter(0)", f"ROOT {GATHER}", mesh=mesh)


def test_a_given_mesh_that_cuts_the_devices_otherwise_is_a_finding() -> None:
    """Groups of three neighbours among six devices: 2x3."""
    text = f"{HEADER}ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n  ROOT {GATHER}\n}}\n"
    text = text.replace("num_partitions=4", "num_partitions=6").replace("{{0,1},{2,3}}", "{{0,1,2},{3,4,5}}")
    report = hlo_inspect.inspect(text, "collectives", mesh="data=3,model=2")
    assert (column(report.table("collectives"), "axis"), findings(report)) == (["d1"], [("HI205", 1)])
    assert "does not fit the 2x3 devices of the program" in report.findings[0].message


CALL = "ROOT %r = f32[8]{0} call(%x), to_apply=%again"
AGAIN = "%again {\n  %x = f32[8]{0} parameter(0)\n  LINE\n}\n".replace("LINE", CALL)
LOOP = 'ROOT %r = f32[8]{0} while(%x), body=%gone, condition=%gone, backend_config={"known_trip_count":{"n":"many"}}'


def looping(line: str) -> str:
    return f"HloModule m\n\n{AGAIN}\nENTRY %main {{\n  %x = f32[8]{{0}} parameter(0)\n  {line}\n}}\n"


@pytest.mark.parametrize("passes", [("cost",), ("collectives",), ("cost", "collectives")])
@pytest.mark.parametrize(
    ("line", "rule", "severity", "subject", "place"),
    [(LOOP, "HI501", "warning", "r", 10), (CALL, "HI502", "error", "again", 3)],
)
def test_loops_and_calls_are_reported_once(
    passes: tuple[str, ...], line: str, rule: str, severity: str, subject: str, place: int
) -> None:
    findings = [f for f in hlo_inspect.inspect(looping(line), passes).findings if f.rule.startswith("HI5")]
    assert [(f.rule, f.severity, f.subject, f.location.line if f.location else 0) for f in findings] == [
        (rule, severity, subject, place)
    ]
