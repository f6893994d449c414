"""Every command, and `check`, on the quoted lines of a module. Figures of quoted lines are in tests/cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import PART_NOTE

TEXT = """What are these?

    %dot.1 = f32[64,32]{1,0} dot(f32[64,16]{1,0} %a, f32[16,32]{1,0} %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    %all-reduce.1 = f32[64,32]{1,0} all-reduce(%dot.1), replica_groups={{0,1}}, to_apply=%add
"""


@pytest.mark.parametrize("command", [pass_.name for pass_ in PASSES])
def test_every_command_answers(command: str) -> None:
    report = hlo_inspect.inspect(TEXT, command)
    assert report.facts["module.name"] == "quoted_lines"
    assert report.facts["module.devices"] is None
    assert sum(note.startswith(PART_NOTE) for note in report.notes) == 1
    assert "PARTIAL MODULE: 2 quoted instruction lines" in str(report.headline[0].parts[0])


def test_lint_answers_for_a_part_that_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert run(["lint", str(path)]) == 3
    assert run(["lint", str(path), "--allow-partial"]) == 0
    assert "1 module, 0 errors, 0 warnings, 1 info" in capsys.readouterr().out


def test_a_check_is_refused_except_where_a_part_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(TEXT, encoding="utf-8")
    asked = ["check", str(path), "--assert", "collectives.count == 1"]
    assert run(asked) == 3
    assert "quoted.txt:3: a partial module is not checked" in capsys.readouterr().err
    assert run([*asked, "--allow-partial"]) == 0
    capsys.readouterr()
    assert run([*asked, "--allow-partial", "--assert", "params.count == 2"]) == 1
    assert PART_NOTE in capsys.readouterr().out


CUT = """HloModule jit_step, is_scheduled=true, num_partitions=2

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[4,8]{1,0} parameter(0)
  w = f32[8,8]{1,0} parameter(1)
  d = f32[4,8]{1,0} dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[4,8]{1,0} all-reduce(d), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
"""


def test_a_table_of_a_text_that_is_cut_off_is_empty_before_the_text_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The missing part may update weights. Tables that stand side by side stay apart."""
    path = tmp_path / "dump.txt"
    for text, said in ((CUT, "none before the text ends"), (CUT.replace("  r =", "  ROOT r =") + "}\n", "none")):
        path.write_text(text, encoding="utf-8")
        run(["optimizer", str(path)])
        assert [said, said] in [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines()]
        run(["optimizer", str(path), "--format", "markdown"])
        assert f"**Updated weights**\n\n{said}\n" in capsys.readouterr().out
        assert f"<p>{said}</p>" in str(hlo_inspect.inspect(path, "optimizer").table("optimizer")._repr_html_())
