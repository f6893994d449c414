"""Rows and what is wrong with them: what clients do without an error becomes a finding with its place."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.hlo.input.foreign_text import is_workload
from hlo_inspect.report.model import Report

HEADER = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 4 ga: 2 all_gpus: 16 checkpoints: 0 "
    "checkpoint_initiates: 0 pp_comm: 0"
)
ROW = "layer -1 10 ALLREDUCE 64 20 ALLGATHER 32 30 REDUCESCATTER 16 5"


def read(*lines: str, end: str = "\n") -> Report:
    return hlo_inspect.inspect(("\n".join(lines) + end).encode(), "workload")


def found(report: Report) -> list[tuple[str, int | None, int | None]]:
    return [
        (finding.rule, finding.location.line, finding.location.column)
        for finding in report.findings
        if finding.location is not None
    ]


def test_a_sound_file_has_no_findings() -> None:
    report = read(HEADER, "2", ROW, ROW)
    assert report.findings == ()
    assert report.facts["workload.bytes"] == 2 * (64 + 32 + 16)


@pytest.mark.parametrize("blank", ["\t", "   ", " \t  ", "\t\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_blanks_and_line_ends(blank: str, end: str) -> None:
    text = end.join([HEADER, "  1\t", ROW.replace(" ", blank) + blank, ""])
    report = hlo_inspect.inspect(text.encode(), "workload")
    assert (report.findings, report.facts["workload.bytes"], report.facts["workload.rows"]) == ((), 112, 1)


@pytest.mark.parametrize(("stated", "line"), [(5, 4), (1, 4)])
def test_fewer_and_more_rows_than_stated(stated: int, line: int) -> None:
    report = read(HEADER, str(stated), ROW, ROW)
    assert found(report) == [("HI601", line, 1)]
    assert (report.facts["workload.rows"], report.facts["workload.stated_rows"]) == (2, stated)
    assert report.facts["workload.bytes"] == 224


@pytest.mark.parametrize(
    ("old", "new", "column", "message"),
    [
        (" 20 ", " 20.5 ", 26, "20.5 is not an integer"),
        (" 20 ", " -20 ", 26, "-20 is negative"),
        (" 20 ", f" {'9' * 5000} ", 26, "(5000 characters) is larger than 64 bits"),
        (" 20 ", f" {2**64} ", 26, "is larger than 64 bits"),
        (" 20 ", " 1e3 ", 26, "1e3 is not an integer"),
        (" 20 ", " ", 26, "ALLGATHER instead of a number"),
        (" 5", " 5 7", 64, "a field too many: 7"),
        (" 5", " 5 MODEL", 64, "a policy belongs to rows of HYBRID_CUSTOMIZED only"),
        ("layer ", "layer one ", 7, "a blank in the name"),
    ],
)
def test_a_field_that_a_client_reads_otherwise(old: str, new: str, column: int, message: str) -> None:
    report = read(HEADER, "2", ROW, ROW.replace(old, new, 1) if old != " 5" else ROW.removesuffix(old) + new)
    assert ("HI602", 4, column) in found(report)
    assert any(message in finding.message for finding in report.findings)
    assert report.facts["workload.rows"] == 2


def test_sums_with_an_unreadable_field_are_lower_bounds() -> None:
    report = read(HEADER, "2", ROW, ROW.replace(" 20 ", " 20.5 "))
    facts = report.facts
    assert (facts["workload.input_gradient.compute"], facts["workload.input_gradient.compute.lower_bound"]) == (None, 20)
    assert facts["workload.forward.compute"] == 20
    assert facts["workload.bytes"] == 224
    assert any(note.startswith("workload.input_gradient.compute: the row on line 4") for note in report.notes)


def test_a_sum_names_the_row_that_it_lacks() -> None:
    """Line 3 lacks a size of the gather, line 4 a compute time."""
    notes = read(HEADER, "2", ROW.replace(" 32 ", " 3.5 "), ROW.replace(" 20 ", " 20.5 ")).notes
    assert "workload.allgather.bytes: the row on line 3 cannot be read whole" in notes
    assert "workload.input_gradient.compute: the row on line 4 cannot be read whole" in notes


def test_a_size_that_cannot_be_read_leaves_its_kind_and_group_unknown() -> None:
    facts = read(HEADER, "2", ROW, ROW.replace(" 32 ", " 3.5 ")).facts
    assert (facts["workload.allgather.bytes"], facts["workload.allgather.bytes.lower_bound"]) == (None, 32)
    assert (facts["workload.bytes"], facts["workload.bytes.lower_bound"]) == (None, 112 + 64 + 16)
    assert (facts["workload.tp.bytes"], facts["workload.allgather.count"]) == (None, 2)
    assert (facts["workload.allreduce.bytes"], facts["workload.dp.bytes"]) == (128, 32)


def test_a_file_that_is_cut_off_in_a_row() -> None:
    report = read(HEADER, "3", ROW, ROW[:30], end="")
    assert ("HI002", 4, None) in found(report)
    assert ("HI601", 4, 1) in found(report)
    assert report.facts["workload.bytes"] is None
    assert report.facts["workload.bytes.lower_bound"] == 112 + 64
    assert report.facts["workload.rows"] == 2
    assert report.headline[0].severity == "error"


@pytest.mark.parametrize("text", [f"{HEADER}", f"{HEADER}\n", f"{HEADER}\n\n"])
def test_a_file_that_ends_after_its_header(text: str) -> None:
    report = hlo_inspect.inspect(text.encode(), "workload")
    assert "HI002" in {rule for rule, _, _ in found(report)}
    assert report.facts["workload.stated_rows"] is None


def test_the_number_of_rows_is_missing() -> None:
    report = read(HEADER, ROW, ROW)
    assert found(report) == [("HI601", 2, 1)]
    assert (report.facts["workload.rows"], report.facts["workload.stated_rows"]) == (2, None)


def test_text_behind_the_rows_is_no_row() -> None:
    report = read(HEADER, "1", ROW, "", "and that was it")
    assert found(report) == [("HI602", 5, 1)]
    assert report.facts["workload.rows"] == 1


def test_text_between_the_rows_makes_sums_unknown() -> None:
    report = read(HEADER, "2", ROW, "what is this", ROW)
    assert ("HI602", 4, 1) in found(report)
    assert report.facts["workload.bytes"] is None


def test_rows_with_policies_of_their_own() -> None:
    report = read("HYBRID_CUSTOMIZED", "2", f"{ROW} MODEL", ROW)
    assert ("HI602", 4, 63) in found(report)
    assert ("HI607", 3, 45) in found(report)  # MODEL reduces no gradients
    assert report.facts["workload.bytes"] == 224


def test_the_same_fault_again_is_counted() -> None:
    report = read(HEADER, "30", *[f"{ROW} 7"] * 30)
    assert [(finding.rule, "(30 times, first here)" in finding.message) for finding in report.findings] == [("HI602", True)]
    many = read(HEADER, "90", *[ROW.replace(" 20 ", f" {n}.5 ") for n in range(90)])
    assert len(many.findings) == 21
    assert many.findings[-1].message == "70 more of this kind"


def test_words_that_move_nothing() -> None:
    report = read(HEADER, "3", ROW, ROW.replace("ALLREDUCE", "BROADCAST"), ROW.replace("ALLGATHER", "ALLGATHER_XY"))
    assert found(report) == [("HI603", 4, 13), ("HI603", 5, 29)]
    assert report.facts["workload.unknown_bytes"] == 64
    assert report.facts["workload.allgather.bytes"] == 3 * 32
    assert report.facts["workload.tp.bytes"] == 2 * 64 + 2 * 32


def test_a_time_that_overflows() -> None:
    assert found(read(HEADER, "1", ROW.replace(" 20 ", " 2147483646 "))) == [("HI604", 3, 26)]
    assert found(read(HEADER, "1", ROW.replace(" 20 ", " 2147000000 "))) == []


def test_numbers_as_large_as_clients_take_them() -> None:
    assert read(HEADER, "2", *[ROW.replace(" 64 ", f" {2**64 - 1} ")] * 2).facts["workload.allreduce.bytes"] == 2 * (2**64 - 1)


def test_names_in_any_script_and_bytes_that_are_no_text() -> None:
    text = f"{HEADER}\n2\n{ROW.replace('layer', 'Schicht_ä')}\n".encode() + ROW.encode().replace(b"layer", b"\xff\xfe") + b"\n"
    report = hlo_inspect.inspect(text, "workload")
    assert found(report) == [("HI005", 4, None)]
    assert report.facts["workload.rows"] == 2


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("DATA\n54\nconv1\t-1\t13003\tNONE\t0\n", True),
        ("MICRO\r\n1\r\n", True),
        ("HYBRID_DLRM\t4\t\t\n8\n", True),
        (f"\n\n{HEADER}\n1", True),
        ("ep: 4 model_parallel_NPU_group: 8 pp: 1\n4\n", True),
        ("SOMETHING_ELSE a: 1\n3\nx -1 5 NONE 0 5\n", True),
        ("DATA is what we have\n", False),
        ("MODEL\n", False),
        ("HYBRID_TRANSFORMER is a policy\n", False),
        ("A\n1\n  x = 3", False),
        ("", False),
    ],
)
def test_a_workload_file_is_recognized_by_its_header(text: str, is_one: bool) -> None:
    assert is_workload(text) is is_one
