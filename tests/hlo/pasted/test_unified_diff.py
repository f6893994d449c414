"""A unified diff of two dumps: a module for each side, truncated if the diff leaves lines out."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.calling import call

OLD = """HloModule jit_f, num_partitions=2

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,16]) -> f32[8,16] {
  %x = f32[8,16]{1,0} parameter(0)
  %y = f32[8,16]{1,0} negate(%x)
  %z = f32[8,16]{1,0} negate(%y)
  ROOT %ar = f32[8,16]{1,0} all-reduce(%z), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum
}
"""
NEW = OLD.replace("[8,16]", "[4,16]").replace("{{0,1}}", "{{0},{1}}")


def diff_of(old: str, new: str, context: int = 100) -> str:
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    return "".join(difflib.unified_diff(lines[0], lines[1], "old.txt", "new.txt", n=context))


def reports(text: str) -> list[Report]:
    return list(hlo_inspect.inspect_all(text.encode(), "summary"))


def test_a_diff_holds_a_module_of_each_side() -> None:
    old, new = reports(diff_of(OLD, NEW))
    assert [report.facts["collectives.operand_bytes"] for report in (old, new)] == [8 * 16 * 4, 4 * 16 * 4]
    assert [report.facts["collectives.wire_bytes"] for report in (old, new)] == [8 * 16 * 4, 0]
    assert [report.facts["module.instructions"] for report in (old, new)] == [7, 7]
    assert [report.findings for report in (old, new)] == [report.findings for text in (OLD, NEW) for report in reports(text)]
    assert "the input is a diff; this is its old side" in old.notes
    assert "the input is a diff; this is its new side" in new.notes


@pytest.mark.parametrize(
    "text",
    [
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] a new mesh\n\n---\n dump.txt | 8 ++++----\n\n"
        "diff --git a/dump.txt b/dump.txt\nindex 1..2 100644\n" + diff_of(OLD, NEW) + "-- \n2.43.0\n",
        diff_of(OLD, NEW).replace("\n \n", "\n\n") + "\\ No newline at end of file\n",
        diff_of("", OLD) + diff_of(OLD, NEW),
    ],
)
def test_text_around_a_diff_is_in_no_module(text: str) -> None:
    modules = reports(text)
    assert {report.facts["module.instructions"] for report in modules} == {7}
    assert not any(finding.severity == "error" for report in modules for finding in report.findings)


def test_tables_have_the_lines_of_the_diff() -> None:
    text = diff_of(OLD, NEW)
    rows = [report.table("collectives").records()[0] for report in hlo_inspect.inspect_all(text.encode(), "collectives")]
    assert [text.splitlines()[int(str(row["line"])) - 1][:7] for row in rows] == ["-  ROOT", "+  ROOT"]


def test_a_diff_that_leaves_lines_out_is_truncated(tmp_path: Path) -> None:
    dump = tmp_path / "dumps.diff"
    dump.write_text(diff_of(OLD, OLD.replace("{{0,1}}", "{{0},{1}}").replace("jit_f", "jit_g"), context=0))
    for report in reports(dump.read_text()):
        assert "HI002" in {finding.rule for finding in report.findings}
    assert call("check", dump, "--assert", "collectives.all-gather.count == 0").returncode == 3
