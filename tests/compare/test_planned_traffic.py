"""`diff PLAN DUMP`: a workload file beside a compiled module, bytes by kind and group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.cli.main import run
from tests.export.test_workload_export import STEP

HEADER = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: {} "
    "checkpoints: 0 checkpoint_initiates: 0\n"
)
ROWS = "2\na -1 1 ALLREDUCE 524288 1 ALLTOALL 64 1 ALLGATHER 524288 0\nb -1 1 ALLREDUCE 262144 1 NONE 0 1 NONE 0 0\n"
"""TP: two all-reduces and an all-to-all. DP: an all-gather. Sizes are SimAI's."""


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    """Return a plan and a step over a mesh of 2 x 2. Of its all-reduces two are over d1, two over d0 and one over both."""
    (tmp_path / "plan.txt").write_text(HEADER.format(4) + ROWS)
    (tmp_path / "dump.txt").write_text(STEP)
    return str(tmp_path / "plan.txt"), str(tmp_path / "dump.txt")


def compared(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """Return the facts of a comparison, and the rows of its table by kind and group."""
    assert run(["diff", *arguments, "--format", "json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    (table,) = report["tables"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    return report["facts"], {(row["kind"], row["group"]): row for row in rows}


def test_bytes_by_kind_and_group(paths: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    facts, rows = compared(capsys, *paths, "--axis", "d0=DP", "--axis", "d1=TP")
    figures = {
        key: (row["planned_count"], row["planned_bytes"], row["compiled_count"], row["compiled_bytes"], row["ratio"])
        for key, row in rows.items()
    }
    assert figures == {
        ("all-reduce", "TP"): (2, 786_432, 2, 524_288, 2 / 3),
        ("all-gather", "DP"): (1, 524_288, 1, 524_288, 1),
        ("all-reduce", "DP"): (0, 0, 2, 524_288, None),
        ("all-reduce", "d0,d1"): (0, 0, 1, 262_144, None),
        ("all-to-all", "TP"): (1, 64, 0, 0, None),
    }
    assert {key: row["only_in"] for key, row in rows.items() if row["only_in"]} == {
        ("all-reduce", "DP"): "only in DUMP",
        ("all-reduce", "d0,d1"): "only in DUMP",
        ("all-to-all", "TP"): "only in PLAN",
    }
    planned, compiled = 786_432 + 524_288 + 64, 3 * 524_288 + 262_144
    assert (facts["diff.planned_bytes"], facts["diff.compiled_bytes"]) == (planned, compiled)
    assert facts["diff.plan_ratio"] == pytest.approx(compiled / planned)


def test_without_axes_groups_follow_from_their_sizes(paths: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """With TP 2 x DP 2 a group of two may be either, so that its axis is shown. With DP 8 it is TP."""
    assert ("all-reduce", "d0") in compared(capsys, *paths)[1]
    Path(paths[0]).write_text(HEADER.format(16) + ROWS)
    assert compared(capsys, *paths)[1]["all-reduce", "TP"]["compiled_count"] == 4


def test_first_lines_name_what_is_in_one_only(paths: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *paths, "--axis", "d0=DP", "--axis", "d1=TP"]) == 0
    page = capsys.readouterr().out
    assert "planned 1.25 MiB, compiled 1.75 MiB per device and step: 1.4 ×" in page
    assert "only in PLAN  all-to-all TP" in page
    assert "only in DUMP  all-reduce DP, all-reduce d0,d1" in page


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--fail-if", "different"], 2, "is a workload file: --fail-if compares two dumps"),
        (["--axis", "x=DP"], 2, "the mesh has no axis x; it has d0 (2), d1 (2)"),
        (["--module", "other"], 3, "dump.txt"),
    ],
)
def test_bad_options_are_one_line(
    options: list[str], status: int, message: str, paths: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", *paths, *options]) == status
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)


def test_axes_of_two_dumps_have_no_effect(paths: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", paths[1], paths[1], "--axis", "d0=DP"]) == 2
    assert "--axis has an effect if OLD is a workload file" in capsys.readouterr().err


def test_branches_of_equal_sums_that_run_different_collectives_are_unknown(
    paths: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each branch runs two all-reduces of 32 floats: of 8 and 24, or of 16 and 16. The known part of either is the sum."""

    def branch(name: str, *sizes: int) -> str:
        reduces = "".join(
            f"  %{name}{i} = f32[{size}] parameter({i})\n"
            f"  %{name}r{i} = f32[{size}] all-reduce(%{name}{i}), channel_id={i + 1}, replica_groups=[1,4]<=[4], "
            "use_global_device_ids=true, to_apply=%add\n"
            for i, size in enumerate(sizes)
        )
        return f"%{name} {{\n{reduces}  ROOT %{name}s = f32[] constant(0)\n}}\n\n"

    add = "%add {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)\n}\n\n"
    entry = "%p = pred[] parameter(0)\n  ROOT %c = f32[] conditional(%p), branch_computations={%a, %b}\n"
    text = f"HloModule m, num_partitions=4\n\n{add}{branch('a', 8, 24)}{branch('b', 16, 16)}ENTRY %main {{\n  {entry}}}\n"
    Path(paths[1]).write_text(text)
    facts, _ = compared(capsys, *paths)
    assert (facts["diff.compiled_count"], facts["diff.compiled_count.lower_bound"]) == (None, 2)
    assert (facts["diff.compiled_bytes"], facts["diff.compiled_bytes.lower_bound"]) == (None, 128)


def test_unknown_bytes_and_their_ratio_name_the_row_that_cannot_be_read(
    paths: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(paths[0]).write_text(HEADER.format(4) + ROWS.replace("ALLREDUCE 262144", "ALLREDUCE 26214.4"))
    assert run(["diff", *paths, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report["facts"][f"diff.{name}"] for name in ("planned_count", "planned_bytes", "plan_ratio")] == [3 + 1, None, None]
    why = "the row on line 4 cannot be read whole"
    assert report["notes"] == [f"diff.planned_bytes: {why}", f"diff.plan_ratio: {why}"]
