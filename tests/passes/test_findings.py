"""The pass behind `lint`: findings of all rules, without facts of its own."""

from __future__ import annotations

import hlo_inspect

SAVED = """HloModule jit_step

ENTRY main {
  w = f32[1048576]{0} parameter(0)
  ROOT new = f32[1048576]{0} negate(w), metadata={op_name="jit(step)/neg" source_file="/code/train.py" source_line=7}
}
"""


def test_findings_have_stake_and_fingerprint_and_the_report_no_table() -> None:
    report = hlo_inspect.inspect(SAVED, "findings")
    (finding,) = report.findings
    assert report.tables == ()
    assert (finding.name, finding.stake, finding.stake_unit) == ("undonated-parameter", 4 << 20, "bytes")
    assert finding.label == "parameter f32[1048576] of jit_step"
    assert len(finding.fingerprint) == 16


def test_a_fingerprint_survives_other_names_and_lines() -> None:
    moved = "# a comment\n\n" + SAVED.replace("new =", "negate.77 =").replace("source_line=7", "source_line=90")
    first, second = (hlo_inspect.inspect(text, "findings").findings[0] for text in (SAVED, moved))
    assert first.fingerprint == second.fingerprint


def test_another_shape_is_another_fingerprint() -> None:
    first, second = (hlo_inspect.inspect(text, "findings").findings[0] for text in (SAVED, SAVED.replace("1048576", "2097152")))
    assert first.fingerprint != second.fingerprint
