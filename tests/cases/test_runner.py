"""The runner of cases: what it says of expectations that are not true, and of cases that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.case import CaseError, cases_of
from tests.cases.conftest import update
from tests.cases.expectations import NotMetError, meet

TEXT = """HloModule m

ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] add(a, a)
  ROOT c = f32[4] add(b, a)
}
"""


def failures(folder: Path, *comments: str, text: str = TEXT) -> list[NotMetError]:
    """Return what is not met of a case with these comments."""
    path = folder / "case.hlo"
    path.write_text("".join(f"// {comment}\n" for comment in comments) + text, encoding="utf-8")
    return [failure for case in cases_of(path) for failure in meet(case)]


MET = (
    "FACT cost.flops == 2 * 4  # by hand",
    "FACT module.name == m",
    "NO FACT cost.frob",
    "ROW cost opcode=add bytes_accessed=96 flops=8  # by hand",
    "NO ROW cost opcode=dot",
    "TOTAL cost flops=8  # by hand",
    "FINDINGS",
    "NO FINDING HI001",
    "NO NOTE no words",
    "PAGE m ? devices",
    "EQUAL",
)


@pytest.mark.parametrize("expectation", MET)
def test_what_is_true_is_met(tmp_path: Path, expectation: str) -> None:
    assert failures(tmp_path, "prose", "RUN cost", expectation) == []


@pytest.mark.parametrize(
    ("expectation", "better"),
    [
        ("FACT cost.flops == 9  # by hand", "cost.flops == 8"),
        ("FACT cost.flops >= 8  # by hand", None),  # it is exact
        ("FACT module.devices >= 8  # by hand", None),  # it has no bound
        ("FACT cost.frob == 8  # by hand", None),
        ("FACT module.name == n", "module.name == m"),
        ("NO FACT cost.flops", None),
        ("ROW cost opcode=add bytes_accessed=9 flops=8  # by hand", "cost opcode=add bytes_accessed=96 flops=8"),
        ("ROW cost opcode=dot", None),
        ("NO ROW cost opcode=add", None),
        ("TOTAL cost flops=7  # by hand", "cost flops=8"),
        ("TABLE cost opcode flops  # by hand", None),
        ("FINDING HI001", None),
        ("FINDINGS HI001", None),
        ("NOTE words that no note has", None),
        ("NOTES 9", None),
        ("PAGE words that no page has", None),
        ("NO PAGE m ? devices", None),
        ("ERROR 2: of no such command", None),
    ],
)
def test_what_is_not_true_is_said_with_its_place(tmp_path: Path, expectation: str, better: str | None) -> None:
    (failure,) = failures(tmp_path, "RUN cost", expectation)
    assert (failure.line, failure.better) == (2, better)
    assert str(failure).startswith(f"cost: expected {expectation.partition('  # ')[0]}\n")


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("FROB cost", "there is no directive FROB"),
        ("NO TOTAL cost flops=8  # by hand", "there is no directive NO TOTAL"),
        ("FACT cost.flops == 8", "a figure needs its reason"),
        ("ROW cost opcode=add flops=8", "a figure needs its reason"),
        ("FACT cost.flops", "a fact is NAME == VALUE"),
        ("FINDING HI101 stake=8", "a figure needs its reason"),
        ("ROW cost add", "'add' is not COLUMN=VALUE"),
        ("ROW frob opcode=add", "no table"),
        ("ROW cost frob=add", "frob"),
        ("WITH frob=add", "is no WORD=TEXT whose word the text has"),
        ("ROW cost 'opcode=add", "No closing quotation"),
    ],
)
def test_a_directive_that_cannot_be_read_is_an_error_at_its_line(tmp_path: Path, comment: str, message: str) -> None:
    with pytest.raises(CaseError, match=message) as caught:
        failures(tmp_path, "RUN cost", comment, "FINDINGS")
    assert caught.value.line == 2


def test_an_expectation_needs_a_run_and_a_text(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="before the first RUN"):
        failures(tmp_path, "FINDINGS")
    with pytest.raises(CaseError, match="no HLO") as caught:
        failures(tmp_path, "RUN cost", "FINDINGS", text="")
    assert caught.value.line == 1


def test_a_case_and_each_run_have_an_expectation(tmp_path: Path) -> None:
    """A run before other words only names the commands."""
    for comments in (["prose"], ["RUN cost"], ["RUN cost", "WITH f32=f64"], ["RUN cost", "RUN cost", "FINDINGS"]):
        with pytest.raises(CaseError, match="without an expectation"):
            failures(tmp_path, *comments)
    assert failures(tmp_path, "RUN cost", "WITH f32=f64", "FINDINGS") == []


def test_findings_have_their_own_stakes(tmp_path: Path) -> None:
    """An array that is not donated: 2048 bytes of the two arrays of 2048."""
    text = TEXT.replace("f32[4]", "f32[512]").replace("add(b, a)", "negate(b)")
    right = "subject=a severity=info stake=4*512 share=1/2 share_of=memory source=? is not donated  # by hand"
    wrong = ("stake=2047  # by hand", "severity=error", "subject=b", "share=1  # by hand", "source=m.py:7", "words")
    comments = [f"FINDING HI101 {words}" for words in (right, *wrong)]
    assert [failure.line for failure in failures(tmp_path, "RUN params", *comments, text=text)] == [3, 4, 5, 6, 7, 8]


def test_a_finding_has_a_column_and_a_text_may_be_of_digits(tmp_path: Path) -> None:
    """The fault is at the third character. Parameter 0 has the name `0` in the table of outputs."""
    alias = ", input_output_alias={ {}: (0, {}) }"
    text = TEXT.replace("HloModule m", f"HloModule m{alias}").replace("add(b, a)", "add(b, a)\n  oops")
    comments = [f"FINDING HI001 column={column} expected an instruction" for column in (3, 4)]
    comments += [f"ROW outputs aliased_parameter={number}  # the header has it" for number in (0, 1)]
    assert [failure.line for failure in failures(tmp_path, "RUN params summary", *comments, text=text)] == [3, 5]


def test_an_option_names_a_file_beside_the_case(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text("extends: h100-sxm\nmemory: {bandwidth: null}\n", encoding="utf-8")
    assert failures(tmp_path, "RUN cost --profile ./slow.yaml", "FACT time.memory_s == ?") == []


def test_other_words_are_those_of_one_run(tmp_path: Path) -> None:
    """The second run has additions again. Lines are those of the file."""
    comments = ("RUN cost", "WITH add=multiply", "NO ROW cost opcode=add", "WITH f32=f64", "ROW cost opcode=add", "EQUAL")
    assert [failure.line for failure in failures(tmp_path, *comments)] == [6]


def test_figures_with_reasons_are_replaced(tmp_path: Path) -> None:
    comments = ("RUN cost", "FACT cost.flops == 7  # by hand", "FACT module.name == n", "FACT cost.flops == 8  # by hand")
    update(tmp_path / "case.hlo", failures(tmp_path, *comments))
    lines = (tmp_path / "case.hlo").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == [
        "// RUN cost",
        "// FACT cost.flops == 8  # by hand",
        "// FACT module.name == n",
        "// FACT cost.flops == 8  # by hand",
    ]
