"""Every command, and `check`, on the quoted lines of a module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES
from hlo_inspect.report.cells import format_table
from hlo_inspect.report.model import PART_NOTE, Amount
from hlo_inspect.report.page import NO_BREAK, headline_text

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


def test_the_table_shows_the_bytes_of_one_run() -> None:
    (row,) = hlo_inspect.inspect(TEXT, "collectives").table("collectives").records()
    assert (row["operand_bytes"], row["wire_bytes"], row["executed_operand_bytes"], row["runs"]) == (8192, 8192, None, None)


QUOTED_CALL = (
    'I see %c = f32[64,32]{1,0:S(1)} custom-call(%a), custom_call_target="sort_it"\nand %h = f32[8]{0:S(5)} copy(%c)\nin it.\n'
)


def test_a_quoted_custom_call_counts() -> None:
    report = hlo_inspect.inspect(QUOTED_CALL, "custom-calls")
    assert [(row["target"], row["count"], row["runs"]) for row in report.table("custom_calls").records()] == [
        ("sort_it", 1, None)
    ]
    assert (report.facts["custom_calls.unknown_count"], report.facts["custom_calls.bytes"]) == (1, None)
    assert report.findings[0].rule == "HI011"


def test_memory_spaces_of_quoted_lines_are_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(QUOTED_CALL, encoding="utf-8")
    spaces = {row["name"]: row["memory_space"] for row in hlo_inspect.inspect(path, "memory").table("largest_arrays").records()}
    assert spaces == {"c": 1}  # %h is smaller than a hundredth
    assert run(["memory", str(path)]) == 0
    assert "memory space" in capsys.readouterr().out


def test_pages_use_the_words_of_whole_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert run(["summary", str(path)]) == 0
    heads = {
        word for line in capsys.readouterr().out.splitlines() if line.startswith(("kind ", "axis ")) for word in line.split()
    }
    assert {"operands", "sent"} <= heads
    assert heads.isdisjoint({"operand", "wire"})


def test_lint_answers_for_a_part_that_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quoted.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert run(["lint", str(path)]) == 3
    assert run(["lint", str(path), "--allow-partial"]) == 0
    assert "1 module, 0 errors, 0 warnings, 1 info" in capsys.readouterr().out


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


def test_sums_of_a_text_that_is_cut_off_are_lower_bounds() -> None:
    """The product takes 2 x 4 x 8 x 8 FLOPs, the all-reduce one for each of 32 elements, and moves 128 bytes."""
    report = hlo_inspect.inspect(CUT, ("collectives", "cost", "optimizer", "params"))
    unknown = {
        "cost.flops": 512 + 32,
        "cost.executed_matmul_flops": 512,
        "collectives.executed_count": 1,
        "collectives.all-reduce.executed_operand_bytes": 128,
    }
    assert {name: report.facts[name] for name in unknown} == dict.fromkeys(unknown)
    assert {name: report.facts[f"{name}.lower_bound"] for name in unknown} == unknown
    assert "cost.transcendentals.lower_bound" not in report.facts
    assert report.facts["collectives.count"] == 1
    assert all(sum(note.startswith(f"{name}: ") for note in report.notes) == 1 for name in unknown)


def test_totals_of_a_text_that_is_cut_off_are_lower_bounds_on_a_page() -> None:
    """The missing part may have more of everything. In JSON a total is the sum of its rows."""
    expected = {
        "cost": ("total", ">= 544", "?", ">= 512", ">= 768 B", ""),  # no transcendentals are no bound
        "params_by_role": ("total", ">= 2", ">= 384 B", "?", ">= 384 B", "?", ""),
    }
    passes = ("cost", "params")
    report = hlo_inspect.inspect(CUT, passes)
    assert {name: format_table(report.table_with_figures(name), raw_bytes=False).total for name in expected} == expected
    assert report.table("params_by_role").total == (None, 2, 384, 0, 384, None, None)
    whole = hlo_inspect.inspect(CUT.replace("  r =", "  ROOT r =") + "}\n", passes)
    assert format_table(whole.table_with_figures("cost"), raw_bytes=False).total == ("total", "544", "0", "512", "768 B", "")


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


def test_exposed_time_of_a_truncated_text_has_no_total() -> None:
    """The missing part may hide the collectives."""
    report = hlo_inspect.inspect(CUT, ("time", "collectives"), profile="h100-sxm")
    assert report.table("step").total is None
    groups = report.table("collective_groups")
    totals = dict(zip((column.name for column in groups.columns), groups.total or (), strict=True))
    assert (totals["exposed_s"], totals["exposed_s_lower_bound"]) == (None, None)
    assert totals["estimate_s"] is not None


def test_a_truncated_text_may_update_weights() -> None:
    facts = hlo_inspect.inspect(CUT, "optimizer").facts
    assert (facts["optimizer.name"], facts["optimizer.update_count"], facts["optimizer.state_bytes"]) == (None, None, None)
    whole = hlo_inspect.inspect(CUT.replace("  r =", "  ROOT r =") + "}\n", ("cost", "optimizer")).facts
    assert (whole["optimizer.name"], whole["optimizer.update_count"], whole["cost.flops"]) == ("none", 0, 544)


def test_an_update_that_is_found_in_a_text_that_is_cut_off_has_its_name() -> None:
    """The entry is whole, and a computation behind it is not: there may be more updates than the one."""
    text = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  w = f32[8,8]{1,0} parameter(0)
  x = f32[8,8]{1,0} parameter(1)
  y = f32[8,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[8,8]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  c = f32[] constant(0.1)
  b = f32[8,8]{1,0} broadcast(c), dimensions={}
  s = f32[8,8]{1,0} multiply(g, b)
  ROOT n = f32[8,8]{1,0} subtract(w, s)
}
"""
    for cut in ("", "\nbody {\n  p = f32[] parameter(0)\n"):
        facts = hlo_inspect.inspect(text + cut, "optimizer").facts
        assert (facts["optimizer.name"], facts["optimizer.learning_rate"]) == ("sgd", 0.1)
        assert facts["optimizer.update_count"] == (None if cut else 1)
        assert facts.get("optimizer.weight_bytes.lower_bound") == (256 if cut else None)


MESH = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[64]{0})->f32[64]{0}}, num_partitions=8

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[64]{0} parameter(0)
  r = f32[64]{0} all-reduce(a), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=add
  ROOT s = f32[64]{0} all-reduce(r), channel_id=2, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
}
"""
STATED = 'm, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=8]>}}, is'


def test_the_mesh_of_a_text_that_is_cut_off_is_that_of_a_part() -> None:
    """The second all-reduce divides the eight devices of the first one, unless the text states a mesh that it has whole."""
    assert hlo_inspect.inspect(MESH, "collectives").facts["mesh.shape"] == "2x4"
    cut = MESH[: MESH.index("  ROOT s = f32[64]{0} all")]
    report = hlo_inspect.inspect(cut, ("summary", "collectives"))
    assert (report.facts["mesh.shape"], report.facts["mesh.order"]) == (None, None)
    reason = "the module is truncated, and its missing part may divide the devices further"
    assert {f"mesh.shape: {reason}", f"mesh.order: {reason}"} <= set(report.notes)
    assert any(", mesh of this partial module d0=8)" in headline_text(row).replace(NO_BREAK, " ") for row in report.headline)
    stated = hlo_inspect.inspect(cut.replace("m, is", STATED), "collectives")
    assert (stated.facts["mesh.shape"], stated.facts["mesh.order"]) == ("8", "iota")


REGIONS = """HloModule m, buffer_donor={ (0, {}) }, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=2

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
  c = f32[8]{0} custom-call(p), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
  l = f32[4]{0} custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  r = f32[4]{0} all-reduce(l), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT g = f32[8]{0} custom-call(r), custom_call_target="SPMDShardToFullShape", sharding={devices=[2]<=[2]}
}
"""


@pytest.mark.parametrize(
    ("end", "shapes"),
    [
        ("  ROOT g", "mixed"),
        ("  l =", None),  # regions may follow
        ("  c =", None),
        ("  p =", None),
        ("->", None),  # in the header
    ],
)
def test_a_truncated_text_says_whether_its_shapes_are_per_device(end: str, shapes: str | None) -> None:
    assert hlo_inspect.inspect(REGIONS, "params").facts["module.shapes"] == "mixed"
    report = hlo_inspect.inspect(REGIONS[: REGIONS.index(end)], "params")
    assert report.facts["module.shapes"] == shapes
    reason = "module.shapes: the module is truncated, so nothing says if shapes are per device"
    assert (reason in report.notes) == (shapes is None)


def test_a_cut_text_for_one_device_is_for_one_device() -> None:
    text = REGIONS.replace(", num_partitions=2", "")
    assert hlo_inspect.inspect(text[: text.index("  p = ")], "params").facts["module.shapes"] == "per_device"


@pytest.mark.parametrize("command", ["memory", "summary"])
def test_xla_s_memory_report_is_shown_as_printed(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The labels of its allocations are quoted lines, whose bytes in a step are unknown; those of the report are."""
    log = tmp_path / "log"
    log.write_text("""Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.

Total hbm usage >= 41.74G:
    reserved        528.00M
  Largest program allocations in hbm:
  1. Size: 32.00G
     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}
     XLA label: %copy.4 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(s32[8388608,8,4]{0,2,1:T(4,128)} %g)
     Allocation type: HLO temp
     ==========================
""")
    assert run([command, str(log)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "copy.4 s32[8388608,8,4] 32.0 GiB 31.0 GiB HLO temp" in page
    assert "reserved 528.0 MiB" in page
