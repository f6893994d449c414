"""The facts of a module that every command gives: name, devices, shapes, and the faults of its text."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings.reading_problems import READING_PROBLEMS

DATA = Path(__file__).parents[1] / "data"
COMMANDS = ("summary", "params", "fusions", "collectives")

BODY = "ENTRY %main (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p)\n}\n"


def rules(text: str, command: str = "summary") -> list[tuple[str, str, str | None]]:
    findings = hlo_inspect.inspect(text, (command,)).findings
    return [(finding.rule, str(finding.location), finding.subject) for finding in findings]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("header", "facts"),
    [
        (
            "HloModule a",
            {"module.name": "a", "module.is_scheduled": False, "module.num_partitions": 1, "module.replica_count": 1},
        ),
        ("HloModule b.2, is_scheduled=true, num_partitions=8", {"module.is_scheduled": True, "module.num_partitions": 8}),
        ("HloModule c, replica_count=4, num_partitions=2", {"module.replica_count": 4, "module.devices": 8}),
        ("HloModule d, num_partitions=1", {"module.devices": 1, "module.shapes": "per_device"}),
        ("HloModule e", {"module.devices": None, "module.shapes": "per_device"}),
    ],
)
def test_the_header(header: str, facts: dict[str, object], command: str) -> None:
    report = hlo_inspect.inspect(f"{header}\n\n{BODY}", (command,))
    assert {name: report.facts[name] for name in facts} == facts


@pytest.mark.parametrize("command", COMMANDS)
def test_a_module_without_a_header_is_called_after_its_entry(command: str) -> None:
    assert hlo_inspect.inspect(DATA / "handmade/headerless.txt", (command,)).facts["module.name"] == "module_only"


@pytest.mark.parametrize("command", COMMANDS)
def test_unreadable_lines_are_counted_if_all_lines_are_read(command: str) -> None:
    """Lines 5 and 7 are no instructions; who skips lines cannot know how many it could not have read."""
    report = hlo_inspect.inspect(DATA / "handmade/unreadable_lines.txt", (command,))
    reads_all = command in {"summary", "params", "fusions"}
    assert report.facts["module.unparsed_lines"] == (2 if reads_all else None)
    assert any(note.startswith("module.unparsed_lines:") for note in report.notes) != reads_all
    if reads_all:
        assert [(f.rule, f.location.line if f.location else None) for f in report.findings] == [("HI001", 5), ("HI001", 7)]


def test_an_unknown_number_of_devices_has_a_reason() -> None:
    report = hlo_inspect.inspect(f"HloModule m\n\n{BODY}")
    assert report.facts["module.devices"] is None
    assert [note for note in report.notes if note.startswith("module.devices: ")] != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"HloModule m\n\n{BODY}", []),
        (f"HloModule m, num_partitions=many\n\n{BODY}", [("HI003", "<text>:1", None)]),
        (f"HloModule m\n\n{BODY.replace('negate', 'negative')}", [("HI004", "<text>:5", "n")]),
        (f"HloModule m\n\n{BODY.replace('ROOT %n = f32', 'ROOT %n = f99')}", [("HI006", "<text>:5", "n")]),
        (f"HloModule m\n\n{BODY.replace('ROOT %n = f32[4]{0}', 'ROOT %n = f32[4]{1,0}')}", [("HI013", "<text>:5", "n")]),
        (f"HloModule m\n\n{BODY.replace('%n', '%p')}", [("HI007", "<text>:5", "p")]),
        (f"HloModule m\n\n{BODY.replace('negate(%p)', 'negate(%q)')}", [("HI008", "<text>:5", "q")]),
        (
            f"HloModule m\n\n{BODY.replace('negate(%p)', 'fusion(%p), kind=kLoop, calls=%gone')}",
            [("HI009", "<text>:5", "gone")],
        ),
        (f"HloModule m\n\n{BODY}\n{BODY.replace('%main', '%other')}", [("HI010", "<text>:8", "other")]),
        ("HloModule m, num_partitions=2\n", [("HI002", "<text>:1", None)]),
    ],
)
def test_each_fault_of_the_text_is_a_finding_with_its_place(text: str, expected: list[tuple[str, str, str | None]]) -> None:
    text_faults = [finding for finding in rules(text) if finding[0].startswith(("HI00", "HI01"))]
    assert text_faults == expected


def test_bytes_that_are_no_text() -> None:
    text = f"HloModule m\n\n{BODY}".encode().replace(b"negate(%p)", b'negate(%p), metadata={op_name="\xff"}')
    (finding,) = hlo_inspect.inspect(text).findings
    assert (finding.rule, str(finding.location)) == ("HI005", "<text>:5")


def test_attributes_that_make_no_sense_are_found_when_they_are_asked_for() -> None:
    line = "ROOT %n = f32[4]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply %add"
    text = f"HloModule m\n\n{BODY.replace('ROOT %n = f32[4]{0} negate(%p)', line)}"
    for command in ("summary", "collectives"):
        assert ("HI001", "<text>:5", "n") in rules(text, command)


def test_faults_of_one_kind_are_bounded() -> None:
    """Every fault counts; those beyond the first twenty are one finding that says how many they are."""
    lines = "".join(f"  %x.{n} = f32[4]{{0}} negate(%gone.{n})\n" for n in range(50))
    text = f"HloModule m\n\n{BODY.replace('  ROOT', f'{lines}  ROOT')}"
    findings = [finding for finding in hlo_inspect.inspect(text).findings if finding.rule == "HI008"]
    assert [finding.location.line for finding in findings[:20] if finding.location] == list(range(5, 25))
    assert len(findings) == 21
    assert findings[-1].message.startswith("30 more")


def test_each_rule_has_its_severity() -> None:
    errors = {"HI002", "HI007", "HI008", "HI009", "HI010", "HI014"}
    assert {page.code for page in READING_PROBLEMS if page.severity == "error"} == errors
    warnings = {f"HI{n:03}" for n in (1, 3, 4, 5, 6, 13, 15)}
    assert {page.code for page in READING_PROBLEMS if page.severity == "warning"} == warnings


UNPARTITIONED = """HloModule jit_f, num_partitions=4, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{1,0}}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main.3 {
  x = f32[8,16]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,16]{1,0} all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum
}
"""
ALL_DEVICES = UNPARTITIONED.replace("{{0,1}}", "{{0,1},{2,3}}")


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (UNPARTITIONED, "global"),
        (ALL_DEVICES, "per_device"),
        (ALL_DEVICES.replace("{{0,1},{2,3}}", "[2,2]<=[4]"), "per_device"),
        (ALL_DEVICES.replace("{{0,1},{2,3}}", "{}"), "per_device"),
        (UNPARTITIONED.replace(", sharding={devices=[4,1]<=[4]}", ""), "per_device"),
        (UNPARTITIONED.replace("main.3", "main.3_spmd"), "per_device"),
    ],
)
@pytest.mark.parametrize("command", ["summary", "collectives", "params"])
def test_a_sharded_text_whose_groups_leave_devices_out_is_global(text: str, shapes: str, command: str) -> None:
    """XLA's partitioner puts every device into a group."""
    assert hlo_inspect.inspect(text, command).facts["module.shapes"] == shapes
