"""`show` with a source line: its instructions, and their sums by other commands' figures."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.errors import NoSuchInstructionError
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value
from tests.tables import columns

TEXT = """HloModule m, is_scheduled=true, num_partitions=2

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  y = f32[64,64]{1,0} negate(x), metadata={op_name="neg" source_file="/train/model.py" source_line=10}
  z = f32[64,64]{1,0} multiply(y, y), metadata={op_name="mul" source_file="/train/model.py" source_line=12}
  w = f32[64,64]{1,0} collective-permute(z), channel_id=1, source_target_pairs={{0,1},{1,0}}, metadata={op_name="p" source_file="/train/model.py" source_line=12}
  ROOT v = f32[64,64]{1,0} add(w, x), metadata={op_name="add" source_file="/train/step.py" source_line=3}
}
"""  # noqa: E501 - an instruction is one line
KIB = 1 << 10
SUMS = ("source", "instructions", "flops", "bytes_accessed", "executed_wire_bytes")
LINE_10 = ("/train/model.py:10", 1, 4096, 32 * KIB, 0)
LINE_12 = ("/train/model.py:12", 2, 4096, 80 * KIB, 16 * KIB)
STEP = ("/train/step.py:3", 1, 4096, 48 * KIB, 0)


def show(query: str) -> Report:
    return hlo_inspect.inspect(TEXT, "show", name=query)


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("model.py:12", [LINE_12]),
        ("/train/model.py:10", [LINE_10]),
        ("model.py", [LINE_12, LINE_10]),
        ("train/*.py", [LINE_12, STEP, LINE_10]),
        ("*.py:3", [STEP]),
    ],
)
def test_sums_of_source_lines(query: str, lines: list[tuple[Value, ...]]) -> None:
    """An array has 16 KiB. XLA counts each operand and the result: 3 arrays for `z`, which reads `y` twice, 2 for `w`."""
    assert columns(show(query).table("source_lines"), *SUMS) == lines


@pytest.mark.parametrize("query", ["*.neg", "w.neg"])
def test_an_instruction_goes_before_a_file_of_its_name(query: str) -> None:
    text = TEXT.replace("w = ", "w.neg = ").replace("add(w,", "add(w.neg,")
    assert columns(hlo_inspect.inspect(text, "show", name=query).table("show"), "name") == [("w.neg",)]


def test_instructions_of_a_line_come_by_bytes() -> None:
    assert columns(show("model.py").table("show"), "name") == [("z",), ("y",), ("w",)]


def test_bytes_live_at_the_peak_are_those_of_memory() -> None:
    of_memory = columns(hlo_inspect.inspect(TEXT, "memory").table("live_by_source"), "source", "bytes")
    of_lines = columns(show("train/*.py").table("source_lines"), "source", "live_bytes")
    shown = [row for row in of_lines if row[1]]
    assert shown
    assert set(shown) <= set(of_memory)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("model.py:11", "the nearest lines are /train/model.py:10 and /train/model.py:12"),
        ("modle.py:11", "did you mean 'model.py'?"),
        ("kernel.cc", "`cost` lists the source lines"),
    ],
)
def test_a_line_that_nothing_has_names_the_nearest(query: str, hint: str) -> None:
    with pytest.raises(NoSuchInstructionError, match="no instruction of m is from") as error:
        show(query)
    assert hint in str(error.value)


def test_a_line_that_only_calls_others_names_what_it_calls() -> None:
    """Frame 1 is `step.py:7`, which calls `model.py:10` in frame 2. XLA prints the number of a caller plus one."""
    tables = """
FileNames
1 "/train/model.py"
2 "/train/step.py"

FunctionNames
1 "block"
2 "step"

FileLocations
1 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
"""
    text = TEXT.replace("\n\nENTRY", f"\n{tables}\nENTRY")
    text = text.replace('source_file="/train/model.py" source_line=10', "stack_frame_id=2")
    assert columns(hlo_inspect.inspect(text, "show", name="model.py:10").table("show"), "name") == [("y",)]
    with pytest.raises(NoSuchInstructionError, match=r"from step.py:7 itself; it calls /train/model.py:10"):
        hlo_inspect.inspect(text, "show", name="step.py:7")


def test_the_instructions_of_a_line_are_a_table_of_figures() -> None:
    """`z` squares 64 × 64 numbers once; `w` sends the 16 KiB of its operand."""
    table = show("model.py:12").table("show")
    figures = ("name", "runs", "flops", "accessed_bytes", "executed_wire_bytes")
    assert columns(table, *figures) == [("z", 1, 4096, 48 * KIB, None), ("w", 1, 0, 32 * KIB, 16 * KIB)]
    (expression,) = (column for column in table.columns if column.name == "expression")
    assert expression.only_verbose


def test_with_a_profile_the_table_has_times() -> None:
    report = hlo_inspect.inspect(TEXT, "show", name="model.py:10", profile="h100-sxm")
    ((bound, estimate),) = columns(report.table("show"), "bound_s", "estimate_s")
    assert bound == pytest.approx(32 * KIB / 3.352e12)  # y reads and writes 16 KiB, at 3,352 GB/s
    assert isinstance(estimate, float)
    assert estimate > 32 * KIB / 3.352e12
