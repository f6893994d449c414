"""Programs that differ in the numbers of devices only: the same mesh with its axes in another order."""

from __future__ import annotations

import pytest

from hlo_inspect.compare.comparison import compare
from hlo_inspect.report.table import Value
from tests.compare.sides import module

TEXT = """HloModule m, is_scheduled=true, num_partitions=6

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,8]{1,0} parameter(0), sharding={devices=[2,3]SHARDING}
  id = u32[] partition-id()
  table = s32[6]{0} constant({TABLE})
  row = s32[1]{0} dynamic-slice(table, id), dynamic_slice_sizes={1}
  y = f32[4,8]{1,0} all-reduce(x), channel_id=1, replica_groups=ROWS, use_global_device_ids=true, to_apply=add
  z = f32[4,8]{1,0} collective-permute(y), channel_id=2, source_target_pairs={PAIRS}
  ROOT r = (f32[4,8]{1,0}, s32[1]{0}) tuple(z, row)
}
"""
ROW_MAJOR = {
    "SHARDING": "<=[6]",
    "TABLE": "0, 0, 0, 7, 7, 7",
    "ROWS": "{{0,1,2},{3,4,5}}",
    "PAIRS": "{0,3},{1,4},{2,5}",
}
"""Device (r, c) of a mesh of 2 rows and 3 columns is 3 r + c."""
COLUMN_MAJOR = {
    "SHARDING": "<=[3,2]T(1,0)",
    "TABLE": "0, 7, 0, 7, 0, 7",
    "ROWS": "[2,3]<=[3,2]T(1,0)",
    "PAIRS": "{0,1},{4,5},{2,3}",
}
"""Device (r, c) of the same mesh is 2 c + r."""


def text(values: dict[str, str]) -> str:
    filled = TEXT
    for name, value in values.items():
        filled = filled.replace(name, value)
    return filled


def permutation(old: dict[str, str], new: dict[str, str]) -> tuple[str, Value]:
    comparison = compare(module(text(old)), module(text(new)))
    return comparison.verdict, comparison.report.facts["diff.device_permutation"]


def test_a_mesh_with_its_axes_in_another_order() -> None:
    """3 r + c becomes 2 c + r: 0, 1, 2, 3, 4, 5 become 0, 2, 4, 1, 3, 5."""
    assert permutation(ROW_MAJOR, COLUMN_MAJOR) == ("same program on permuted devices", "0,2,4,1,3,5")
    assert permutation(COLUMN_MAJOR, ROW_MAJOR) == ("same program on permuted devices", "0,3,1,4,2,5")
    comparison = compare(module(text(ROW_MAJOR)), module(text(COLUMN_MAJOR)))
    assert comparison.report.headline[1].parts == ("OLD → NEW: 1 → 2, 2 → 4, 3 → 1, 4 → 3",)
    assert comparison.is_different


@pytest.mark.parametrize(
    "change",
    [
        {"PAIRS": "{0,1},{4,5},{3,2}"},  # one pair the other way round
        {"ROWS": "[3,2]<=[6]"},  # groups of another size
        {"TABLE": "0, 0, 0, 7, 7, 7"},  # the partitions look up other numbers
        {"SHARDING": "<=[6]"},
    ],
)
def test_another_pattern_of_communication_is_no_permutation(change: dict[str, str]) -> None:
    assert permutation(ROW_MAJOR, COLUMN_MAJOR | change) == ("different programs", None)


def test_constants_stay_in_a_program_that_does_not_ask_for_its_number() -> None:
    constant = {"TABLE": "5, 4, 3, 2, 1, 0", "partition-id()": "constant(3)"}
    assert permutation(ROW_MAJOR | constant, COLUMN_MAJOR | constant) == ("same program on permuted devices", "0,2,4,1,3,5")


def test_equal_programs_and_other_instructions_have_no_permutation() -> None:
    assert permutation(ROW_MAJOR, ROW_MAJOR) == ("same program", None)
    other = text(COLUMN_MAJOR).replace("f32[4,8]{1,0} all-reduce(x)", "f32[4,8]{1,0} all-reduce(x), constrain_layout=true")
    assert compare(module(text(ROW_MAJOR)), module(other)).verdict == "different programs"


@pytest.mark.parametrize("unreadable", ["[2,2]<=[2,2]T(0,0)", "[2,2]<=[2,2]T(0,0", "{{0,1},{2"])
def test_groups_of_one_program_that_cannot_be_read(unreadable: str) -> None:
    text = "HloModule m\nENTRY e {{\n  x = f32[8] parameter(0)\n  ROOT d = f32[8] all-gather(x), replica_groups={}\n}}\n"
    for pair in ((unreadable, "{{0,1},{2,3}}"), ("{{0,1},{2,3}}", unreadable)):
        old, new = (module(text.format(groups)) for groups in pair)
        assert compare(old, new).report.facts["diff.device_permutation"] is None
