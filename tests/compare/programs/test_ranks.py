"""Ranks that deviate: verdicts, first instructions and deadlocks of directories whose deviations are known by construction."""

from __future__ import annotations

import json
import lzma
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from hlo_inspect.errors import InputError
from hlo_inspect.inspection.rank_reports import RankReports
from tests.compare.programs.jobs import DATA, FINAL, Edit, compared, deviations, facts, replaced, swapped, write_job

SHARED = Path(__file__).parents[4] / "shared" / "dumps" / "ranks"


def test_names_numbers_and_paths_are_no_deviation(tmp_path: Path) -> None:
    report = compared(write_job(tmp_path))
    assert facts(report) == {"count": 4, "modules": 6, "deviating": 0, "hangs": 0}
    assert deviations(report) == []
    assert {row["verdict"] for row in report.table("rank_modules").records()} == {"names"}
    assert report.headline[0].parts == ("4 ranks, 6 modules: all ranks run the same programs",)


def test_swapped_collectives_over_one_group_hang(tmp_path: Path) -> None:
    report = compared(write_job(tmp_path, {(2, f"train{FINAL}"): swapped("psum.7", "pmax.7")}))
    (row,) = deviations(report)
    assert (row["module"], row["rank"], row["verdict"], row["hangs"]) == ("jit_train", "2", "order", True)
    assert (row["instruction"], row["majority_instruction"]) == ("pmax.207", "psum.7")
    assert facts(report) == {"count": 4, "modules": 6, "deviating": 1, "hangs": 1}
    assert str(report.headline[0].parts[0]).startswith(
        "4 ranks, 6 modules: rank 2 deviates in jit_train and hangs at pmax.207 (make_ranks.py:"
    )


@pytest.mark.parametrize(("ranks", "hangs"), [((0,), False), ((3,), False), ((0, 3), True), ((1, 2), True), ((0, 1), False)])
def test_orders_on_a_mesh_may_hang_only_together(tmp_path: Path, ranks: tuple[int, ...], hangs: bool) -> None:
    """A rank alone ends, and so do ranks in a row; those of a diagonal wait for each other in a cycle."""
    edits = {(rank, f"mesh{FINAL}"): swapped("psum.14", "psum.15") for rank in ranks}
    report = compared(write_job(tmp_path, edits))
    rows = deviations(report)
    deviating = [str(rank) for rank in ranks] if ranks not in [(0, 3), (0, 1)] else [str(r) for r in range(4) if r not in ranks]
    assert [row["rank"] for row in rows] == deviating  # of two equal halves the one with rank 0 is the majority
    assert {(row["verdict"], row["hangs"]) for row in rows} == {("order", hangs)}


def test_permutes_without_a_common_device_may_swap(tmp_path: Path) -> None:
    (row,) = deviations(compared(write_job(tmp_path, {(1, f"pairs{FINAL}"): swapped("ppermute.6", "ppermute.7")})))
    assert (row["verdict"], row["hangs"]) == ("order", False)


def test_a_loop_is_compared_once(tmp_path: Path) -> None:
    (row,) = deviations(compared(write_job(tmp_path, {(3, f"rounds{FINAL}"): swapped("ppermute.3", "psum.7")})))
    assert (row["verdict"], row["hangs"], row["instruction"]) == ("order", True, "psum.307")


@pytest.mark.parametrize(
    ("edit", "detail"),
    [
        (replaced("f32[16]{0} all-reduce(", "f32[16]{0} all-gather("), "all-gather f32[16] max (pmax.107)"),
        (replaced("replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}"), "groups {{0,1},{2,3}}, in the majority"),
        (replaced("to_apply=%region_2.0", "to_apply=%region_0.0"), "all-reduce f32[16] add (pmax.107), in the majority"),
    ],
)
def test_other_collectives_hang(tmp_path: Path, edit: Edit, detail: str) -> None:
    (row,) = deviations(compared(write_job(tmp_path, {(1, f"train{FINAL}"): edit})))
    assert (row["verdict"], row["hangs"]) == ("collective", True)
    assert detail in str(row["detail"])


def test_the_constant_inside_a_fusion_is_the_first_that_deviates(tmp_path: Path) -> None:
    (row,) = deviations(compared(write_job(tmp_path, {(3, f"scale{FINAL}"): replaced("constant(0.5)", "constant(0.25)")})))
    assert (row["verdict"], row["hangs"]) == ("program", False)
    assert str(row["instruction"]).startswith("constant")
    assert row["detail"] == "constant 0.25, in the majority 0.5; equal before optimizations"
    assert (row["source"], row["path"]) == ("/host3/train/make_ranks.py:79", f"{tmp_path}/3/module_0040.jit_scale{FINAL}")


def test_a_large_constant_that_the_text_elides_is_another_program(tmp_path: Path) -> None:
    (row,) = deviations(compared(write_job(tmp_path, {(1, "table/module.mlir"): replaced('dense<"0x0000', 'dense<"0x0100')})))
    assert (row["module"], row["verdict"], row["hangs"]) == ("jit_table", "program", False)
    assert "large constant" in str(row["detail"])


def test_large_constants_are_not_compared_if_a_rank_lacks_them(tmp_path: Path) -> None:
    edits = {(1, "table/module.mlir"): replaced('dense<"0x0000', 'dense<"0x0100'), (2, "table/module.mlir"): None}
    report = compared(write_job(tmp_path, edits))
    assert deviations(report) == []
    assert "large constants of jit_table are not compared: not every rank has its module.mlir" in report.notes


def test_another_schedule_does_not_hang(tmp_path: Path) -> None:
    (row,) = deviations(
        compared(write_job(tmp_path, {(1, f"train{FINAL}"): swapped("broadcast_multiply_fusion", "wrapped_reduce")}))
    )
    assert (row["verdict"], row["hangs"]) == ("schedule", False)


def test_flags_and_options_deviate(tmp_path: Path) -> None:
    edits = {
        (2, "scale.debug_options"): replaced("xla_cpu_enable_fast_min_max: false\n", ""),
        (3, "train/compile_options.textproto"): replaced(
            "  num_partitions: 4", "  num_partitions: 4\n  use_auto_spmd_partitioning: true"
        ),
    }
    rows = {row["rank"]: row for row in deviations(compared(write_job(tmp_path, edits)))}
    assert {rank: (row["module"], row["verdict"], row["hangs"]) for rank, row in rows.items()} == {
        "2": ("jit_scale", "flags", False),
        "3": ("jit_train", "flags", False),
    }
    assert "use_auto_spmd_partitioning: true, in the majority default" in str(rows["3"]["detail"])


def test_a_rank_without_a_module_hangs_if_it_communicates(tmp_path: Path) -> None:
    edits = {(1, "pairs"): None, (2, "scale"): None, (3, "train"): None}
    report = compared(write_job(tmp_path, edits))
    assert {(row["module"], row["rank"], row["verdict"], row["hangs"]) for row in deviations(report)} == {
        ("jit_pairs", "1", "missing", True),
        ("jit_scale", "2", "missing", False),
        ("jit_train", "3", "missing", True),
    }
    assert facts(report) == {"count": 4, "modules": 6, "deviating": 3, "hangs": 2}


def test_a_module_of_a_minority_is_extra(tmp_path: Path) -> None:
    edits = {(rank, name): None for name in ("scale", "train") for rank in (1, 2, 3)}
    report = compared(write_job(tmp_path, edits))
    assert {(row["module"], row["rank"], row["verdict"], row["hangs"]) for row in deviations(report)} == {
        ("jit_scale", "0", "extra", False),
        ("jit_train", "0", "extra", True),
    }


def test_half_of_the_ranks_with_the_lowest_one_are_the_majority(tmp_path: Path) -> None:
    edits = {(rank, f"scale{FINAL}"): replaced("constant(0.5)", "constant(0.25)") for rank in (1, 3)}
    assert [row["rank"] for row in deviations(compared(write_job(tmp_path, edits)))] == ["1", "3"]


@pytest.mark.skipif(not SHARED.exists(), reason="the sample directories are not there")
@pytest.mark.parametrize("name", ["clean", "broken"])
def test_samples_are_as_expected(tmp_path: Path, name: str) -> None:
    expected = json.loads((SHARED / "expect.json").read_text())[name]
    with tarfile.open(SHARED / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    report = compared(str(tmp_path / expected["pattern"]))
    assert report.facts == expected["facts"]
    rows = deviations(report)
    assert sorted({str(row["rank"]) for row in rows}) == expected["deviating"]
    keys = ("module", "rank", "verdict", "hangs", "instruction", "majority_instruction")
    assert sorted([[row[key] for key in keys] for row in rows], key=str) == sorted(
        [[row[key] for key in keys] for row in expected["deviations"]], key=str
    )


# -- devices of the ranks ---------------------------------------------------------------------------------------------------

OPTIONS = "compile_options.textproto"


def on_devices(*devices: int) -> Edit:
    """Return an edit of the options of a compile that places its partitions on these devices."""

    def edit(text: str) -> str:
        numbers = iter(devices)
        return re.sub(r"replica_device_ids: \d+", lambda _: f"replica_device_ids: {next(numbers)}", text)

    return edit


def test_programs_on_devices_of_their_own_do_not_wait_for_other_ranks(tmp_path: Path) -> None:
    edits: dict[tuple[int, str], Edit | None] = {
        (rank, f"pairs/{OPTIONS}"): on_devices(*range(4 * rank, 4 * rank + 4)) for rank in range(4)
    }
    edits |= {(rank, f"scale/{OPTIONS}"): on_devices(rank) for rank in range(4)}
    report = compared(write_job(tmp_path, edits | {(2, "pairs"): None}))
    assert [(row["rank"], row["verdict"], row["hangs"]) for row in deviations(report)] == [("2", "missing", False)]


def test_the_device_assignment_decides_which_ranks_meet(tmp_path: Path) -> None:
    """Ranks 0 and 3 are a diagonal of the mesh unless its positions 1 and 3 are exchanged: then they are one row."""
    edits: dict[tuple[int, str], Edit | None] = {(rank, f"mesh{FINAL}"): swapped("psum.14", "psum.15") for rank in (0, 3)}
    edits |= {(rank, f"mesh/{OPTIONS}"): on_devices(0, 3, 2, 1) for rank in range(4)}
    assert [row["hangs"] for row in deviations(compared(write_job(tmp_path, edits)))] == [False, False]


def test_ranks_that_do_not_divide_the_devices_leave_it_unknown(tmp_path: Path) -> None:
    pattern = write_job(tmp_path, {(2, f"train{FINAL}"): swapped("psum.7", "pmax.7")}, ranks=3)
    report = compared(pattern)
    assert [row["hangs"] for row in deviations(report)] == [None]
    assert "whether jit_train hangs is unknown: 4 devices are not divided by 3 ranks" in report.notes


def test_processes_that_no_directory_belongs_to_leave_it_unknown(tmp_path: Path) -> None:
    edits: dict[tuple[int, str], Edit | None] = {(1, f"train{FINAL}"): swapped("psum.7", "pmax.7")}
    edits |= {(rank, f"train/{OPTIONS}"): replaced("process_count: 1", "process_count: 4") for rank in range(2)}
    report = compared(write_job(tmp_path, edits, ranks=2))
    assert [row["hangs"] for row in deviations(report)] == [None]
    assert "the options state 4 processes; directories that fit the pattern: 2" in report.notes


# -- another platform -------------------------------------------------------------------------------------------------------

GPU = (DATA / "ranks" / "gpu_step.hlo").read_text()


def write_gpu_job(folder: Path, edit: Edit) -> str:
    for rank in range(4):
        path = folder / str(rank) / "module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt"
        path.parent.mkdir()
        path.write_text(edit(GPU) if rank == 2 else GPU)
    return f"{folder}/*"


@pytest.mark.parametrize(
    ("edit", "verdict", "hangs", "deviating"),
    [
        (replaced('"13"', '"7"'), "algorithm", False, 0),
        (replaced("s8[4194304]", "s8[33554432]"), "algorithm", False, 0),
        (replaced('"alpha_real":1,"selected_algorithm":"13"', '"selected_algorithm":"13","alpha_real":1'), None, None, 0),
        (replaced('"alpha_real":1', '"alpha_real":2'), "program", False, 1),
        (swapped("start.1", "start.2"), "order", True, 1),
        (swapped("done.1", "done.2"), "schedule", False, 1),
    ],
)
def test_autotuning_and_starts_on_gpus(
    tmp_path: Path, edit: Edit, verdict: str | None, hangs: bool | None, deviating: int
) -> None:
    report = compared(write_gpu_job(tmp_path, edit))
    rows = [(row["rank"], row["verdict"], row["hangs"]) for row in deviations(report)]
    assert rows == ([("2", verdict, hangs)] if verdict is not None else [])
    assert report.facts["ranks.deviating"] == deviating
    assert "flags are not compared: no module has a .debug_options or compile_options.textproto beside it" in report.notes


# -- directories that are not as they should be -------------------------------------------------------------------------------


def test_a_rank_with_another_number_of_modules_of_one_name(tmp_path: Path) -> None:
    pattern = write_job(tmp_path)
    (copied,) = (tmp_path / "1").glob(f"*jit_scale{FINAL}")
    (tmp_path / "1" / f"module_0999.jit_scale{FINAL}").write_text(copied.read_text())
    report = compared(pattern)
    (row,) = deviations(report)
    assert (row["module"], row["rank"], row["verdict"], row["hangs"]) == ("jit_scale", "1", "count", None)
    assert facts(report) == {"count": 4, "modules": 6, "deviating": 1, "hangs": 0}


def test_modules_of_one_name_pair_by_content(tmp_path: Path) -> None:
    """All ranks have two programs of one name, rank 3 in the other order; rank 2 has another one in the place of the second."""
    pattern = write_job(tmp_path)
    for rank in range(4):
        (text,) = (path.read_text() for path in (tmp_path / str(rank)).glob(f"*jit_scale{FINAL}"))
        other = text.replace("constant(0.5)", "constant(0.25)" if rank != 2 else "constant(0.75)")
        (tmp_path / str(rank) / f"module_{9999 if rank != 3 else 0:04d}.jit_scale{FINAL}").write_text(other)
    report = compared(pattern)
    (row,) = deviations(report)
    assert (row["module"], row["rank"], row["verdict"]) == ("jit_scale", "2", "program")
    assert "0.75, in the majority 0.25" in str(row["detail"])
    assert report.facts["ranks.modules"] == 7


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text[: len(text) // 2], "TRUNCATED jit_mesh of rank 3: not compared"),
        (lambda _: "", "jit_mesh of rank 3 cannot be read: not compared"),
        (None, "jit_mesh of rank 3 has no text after optimizations: not compared"),
    ],
)
def test_half_written_files_are_no_deviation(tmp_path: Path, edit: Edit | None, said: str) -> None:
    report = compared(write_job(tmp_path, {(3, f"mesh{FINAL}"): edit}))
    assert deviations(report) == []
    assert said in (*report.notes, *(row.parts[0] for row in report.headline))
    verdicts = [row.parts[0] for row in report.headline]
    assert "4 ranks, 6 modules: no rank deviates, but rank 3 cannot be compared in all modules" in verdicts


def test_a_text_that_cannot_be_read_is_an_error_and_no_deviation(tmp_path: Path) -> None:
    pattern = write_job(tmp_path)
    (text,) = (tmp_path / "3").glob(f"*jit_mesh{FINAL}")
    broken = text.rename(text.with_name(f"{text.name}.xz"))
    broken.write_bytes(lzma.compress(broken.read_bytes())[:-40])
    comparison = RankReports((pattern,))
    report = comparison.report()
    assert [str(error.location) for error in comparison.errors] == [str(broken)]
    assert deviations(report) == []
    assert "jit_mesh of rank 3 cannot be read: not compared" in report.notes


def test_of_several_modules_in_a_file_the_first_is_compared(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"{rank}.hlo").write_text(GPU * (1 + rank))
    report = compared(f"{tmp_path}/{{rank}}.hlo")
    assert report.facts["ranks.count"] == 2
    assert f"{tmp_path}/1.hlo: holds several modules; only the first is compared" in report.notes


def test_a_directory_of_two_runs_is_noted(tmp_path: Path) -> None:
    pattern = write_job(tmp_path)
    (copied,) = (tmp_path / "1").glob(f"*jit_scale{FINAL}")
    copied.with_name(f"module_0000.jit_other{FINAL}").write_text(copied.read_text().replace("jit_scale", "jit_other"))
    report = compared(pattern)
    assert [(row["module"], row["verdict"]) for row in deviations(report)] == [("jit_other", "extra")]
    note = f"{tmp_path}/1: module_0000 is jit_other and jit_train: it may hold files of two runs, or of two ranks"
    assert note in report.notes


def test_another_order_of_module_numbers_is_noted(tmp_path: Path) -> None:
    pattern = write_job(tmp_path)
    for path in (tmp_path / "2").glob("*jit_mesh*"):
        path.rename(path.with_name(path.name.replace("module_0006", "module_0999")))
    notes = compared(pattern).notes
    assert notes == ("the modules of rank 2 have another order: rank 2 has jit_rounds in the place of jit_mesh",)


def test_unreadable_options_are_noted(tmp_path: Path) -> None:
    edits = {(1, "mesh.debug_options"): lambda _: "what is this\n", (2, f"mesh/{OPTIONS}"): lambda text: text[:200]}
    report = compared(write_job(tmp_path, edits))
    assert deviations(report) == []
    assert [note.partition(":")[0] for note in report.notes] == ["jit_mesh of rank 1", "jit_mesh of rank 2"]


def test_a_rank_without_modules_is_an_error_and_no_deviation(tmp_path: Path) -> None:
    pattern = write_job(tmp_path)
    shutil.rmtree(tmp_path / "2")
    (tmp_path / "2").mkdir()
    comparison = RankReports((pattern,))
    report = comparison.report()
    assert [str(error.location) for error in comparison.errors] == [f"{tmp_path}/2"]
    assert (report.facts["ranks.count"], deviations(report)) == (4, [])


def test_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no directory fits this pattern"):
        RankReports((f"{tmp_path}/{{rank}}",)).report()
