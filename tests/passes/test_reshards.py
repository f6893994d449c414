"""`show` of a collective in a dump directory: the two shardings that disagree in the text before partitioning."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from tests.tables import columns

BEFORE = """HloModule m, num_partitions=4

ENTRY main {
  x = bf16[64,128]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  w = bf16[128,32]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  y = bf16[64,32]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}, metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=3}
  z = bf16[64,32]{1,0} copy(y), sharding={devices=[1,4]<=[4]}, metadata={op_name="jit(f)/sharding_constraint" source_file="f.py" source_line=4}
  ROOT t = (bf16[64,32]{1,0}, bf16[64,32]{1,0}) tuple(y, z), sharding={{devices=[4,1]<=[4]}, {devices=[1,4]<=[4]}}
}
"""  # noqa: E501 - an instruction is one line
AFTER = """HloModule m, is_scheduled=true, num_partitions=4

ENTRY main {
  x = bf16[16,128]{1,0} parameter(0)
  w = bf16[32,32]{1,0} parameter(1)
  c = f32[32,32]{1,0} convert(w)
  gather = f32[128,32]{1,0} all-gather(c), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=3}
  y = bf16[16,32]{1,0} dot(x, gather), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=3}
  r = bf16[16,4,8]{2,1,0} reshape(y)
  shuffle = bf16[16,4,8]{2,1,0} all-to-all(r), channel_id=2, replica_groups=[1,4]<=[4], dimensions={1}, metadata={op_name="jit(f)/sharding_constraint" source_file="f.py" source_line=4}
  other = bf16[16,4,8]{2,1,0} all-to-all(r), channel_id=3, replica_groups=[1,4]<=[4], dimensions={1}, metadata={op_name="jit(f)/sharding_constraint" source_file="f.py" source_line=5}
  z = bf16[64,8]{1,0} reshape(shuffle)
  q = bf16[64,8]{1,0} reshape(other)
  ROOT t = (bf16[16,32]{1,0}, bf16[64,8]{1,0}, bf16[64,8]{1,0}) tuple(y, z, q)
}
"""  # noqa: E501
PASS = "module_0001.m.0002.spmd-partitioner.after_sharding-propagation.before_spmd-partitioning.txt"
FIRST = "module_0001.m.before_optimizations.txt"
SHOWN = ("array", "shape", "sharding", "user", "user_sharding", "one_array")
ROWS, COLUMNS = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}"


def shown(root: Path, name: str, before: str = PASS, text: str = BEFORE) -> Report:
    (root / before).write_text(text)
    (root / "module_0001.m.cpu_after_optimizations.txt").write_text(AFTER)
    return hlo_inspect.inspect(root, "show", name=name)


def page(report: Report) -> str:
    return "\n".join(headline_text(row) for row in report.headline)


def test_an_all_to_all_shows_both_shardings_of_its_array(tmp_path: Path) -> None:
    report = shown(tmp_path, "shuffle")
    assert columns(report.table("reshards"), *SHOWN) == [("y", "bf16[64,32]", ROWS, "z", COLUMNS, True)]
    assert 'before partitioning y bf16[64,32] from ("d0", None) to (None, "d0"), for z' in page(report)


def test_an_all_gather_shows_the_sharding_of_an_operand_and_of_its_user(tmp_path: Path) -> None:
    """The result has the 128 x 32 elements of `w` in another type. Those of `x` are 64 x 128: its second dimension is no 32."""
    report = shown(tmp_path, "gather")
    assert columns(report.table("reshards"), *SHOWN) == [("w", "bf16[128,32]", ROWS, "y", ROWS, False)]
    assert 'w bf16[128,32] is ("d0", None); dot y reads it, whose result is ("d0", None)' in page(report)


def test_operands_that_fit_equally_are_all_shown(tmp_path: Path) -> None:
    """Both operands are 128 x 128 then, and each device holds a fourth of both."""
    square = BEFORE.replace("[64,128]", "[128,32]").replace("lhs_contracting_dims={1}", "lhs_contracting_dims={0}")
    report = shown(tmp_path, "gather", text=square.replace("[64,32]", "[32,32]"))
    assert columns(report.table("reshards"), "array", "user") == [("x", "y"), ("w", "y")]
    assert "; or w bf16[128,32]" in page(report)


@pytest.mark.parametrize(
    ("before", "text", "reason"),
    [
        (PASS, BEFORE, "no instruction of its op_name and source line has an operand that it could be a part of"),
        (FIRST, BEFORE.replace("sharding=", "layout="), "XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd"),
    ],
)
def test_a_collective_without_its_array_has_a_note(tmp_path: Path, before: str, text: str, reason: str) -> None:
    report = shown(tmp_path, "other", before, text)
    assert "reshards" not in [table.name for table in report.tables]
    assert [note for note in report.notes if note.startswith("reshards: ") and reason in note]


def test_a_damaged_text_before_partitioning_is_the_reason(tmp_path: Path) -> None:
    shown(tmp_path, "shuffle")
    (tmp_path / PASS).unlink()
    (tmp_path / f"{PASS}.xz").write_bytes(lzma.compress(BEFORE.encode())[:50])
    notes = hlo_inspect.inspect(tmp_path, "show", name="shuffle").notes
    assert [note for note in notes if note.startswith("reshards: ") and f"{PASS}.xz" in note]


def test_constraints_before_optimizations_are_enough(tmp_path: Path) -> None:
    """Without files of passes the first text counts. It has shardings on parameters and on `Sharding` calls."""
    text = BEFORE.replace("copy(y),", 'custom-call(y), custom_call_target="Sharding",')
    report = shown(tmp_path, "shuffle", FIRST, text)
    assert columns(report.table("reshards"), *SHOWN) == [("y", "bf16[64,32]", ROWS, "z", COLUMNS, True)]


def test_a_single_file_shows_no_shardings(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(AFTER)
    report = hlo_inspect.inspect(tmp_path / "dump.txt", "show", name="shuffle")
    assert "reshards" not in page(report)
    assert not [note for note in report.notes if note.startswith("reshards")]
