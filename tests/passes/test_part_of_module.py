"""Every command on lines that are quoted of a module, and what `check` makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import PART_NOTE, Amount

TEXT = """What are these?

    %dot.1 = f32[64,32]{1,0} dot(f32[64,16]{1,0} %a, f32[16,32]{1,0} %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    %all-reduce.1 = f32[64,32]{1,0} all-reduce(%dot.1), replica_groups={{0,1}}, to_apply=%add
"""


@pytest.mark.parametrize("command", [one.name for one in PASSES])
def test_every_command_answers(command: str) -> None:
    report = hlo_inspect.inspect(TEXT, command)
    assert report.facts["module.name"] == "quoted_lines"
    assert report.facts["module.devices"] is None
    assert sum(note.startswith(PART_NOTE) for note in report.notes) == 1
    assert "A PART OF A MODULE: 2 quoted instruction lines" in str(report.headline[0].parts[0])


def test_the_table_shows_the_bytes_of_one_run() -> None:
    (row,) = hlo_inspect.inspect(TEXT, "collectives").table("collectives").records()
    assert (row["operand_bytes"], row["wire_bytes"], row["executed_operand_bytes"], row["runs"]) == (8192, 8192, None, None)


def test_the_page_says_nothing_of_a_step() -> None:
    """Two lines tell neither how often they run nor what program they are of: 64 x 32 x 4 bytes go into the all-reduce once."""
    report = hlo_inspect.inspect(TEXT, "summary")
    rows = {row.label: row.parts for row in report.headline}
    assert rows["collectives"] == (
        Amount(1, "count"),
        " quoted, ",
        Amount(8192, "bytes"),
        " of operands, ",
        Amount(8192, "bytes"),
        " sent",
    )
    assert [row.label for row in report.headline].count("") == 1
    shown = [table for table in report.tables if table.on_page]
    assert "buffers" not in {table.name for table in shown}
    assert not any("step" in table.title for table in shown)


def test_a_check_is_refused_except_where_a_part_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(TEXT, encoding="utf-8")
    asked = ["check", str(path), "--assert", "collectives.count == 1"]
    assert run(asked) == 3
    assert "quoted.txt:3: a part of a module is not checked" in capsys.readouterr().err
    assert run([*asked, "--allow-partial"]) == 0
    capsys.readouterr()
    assert run([*asked, "--allow-partial", "--assert", "params.count == 2"]) == 1
    assert PART_NOTE in capsys.readouterr().out
