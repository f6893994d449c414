"""The choice of one file per module in a dump directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.hlo.input.dump_directory import DirectoryFile, dump_files, expanded, is_directory, stage_of

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def write_dumps(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("HloModule m\n", encoding="utf-8")


def chosen_names(root: Path, stage: str | None = None) -> list[str]:
    return [file.path.name for file in dump_files(root, stage)]


def test_the_optimized_text_is_chosen(root: Path) -> None:
    write_dumps(
        root,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0007.fusion.after_fusion.before_dce.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations-buffer-assignment.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations-live-range.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations-memory-usage-report.txt",
        "module_0001.jit_f.thunk_sequence.txt",
        "module_0001.jit_f.thunk_sequence_after_thunk_passes.txt",
        "module_0001.jit_f.debug_options",
        "module_0001.jit_f.ir-with-opt.ll",
        "module_0001.jit_f.ptx",
    )
    assert list(dump_files(root, None)) == [DirectoryFile(root / "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt")]


def test_without_optimized_text_the_latest_pass_is_chosen(root: Path) -> None:
    write_dumps(
        root,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0002.fusion.after_fusion.before_dce.txt",
        "module_0001.jit_f.0010.HLO_passes.after_dce.txt",
        "module_0001.jit_f.0009.fusion.after_dce.before_cse.txt",
    )
    (file,) = dump_files(root, None)
    assert file.path.name == "module_0001.jit_f.0010.HLO_passes.after_dce.txt"
    assert file.note is not None
    assert "no file after optimizations" in file.note


def test_without_passes_the_text_before_optimizations_is_chosen(root: Path) -> None:
    write_dumps(root, "module_0001.jit_f.before_optimizations.txt")
    (file,) = dump_files(root, None)
    assert file.path.name == "module_0001.jit_f.before_optimizations.txt"
    assert (
        file.note
        == "module_0001.jit_f.before_optimizations.txt is read: the dump has no file after optimizations for this module"
    )


def test_modules_are_in_the_order_of_their_numbers(root: Path) -> None:
    write_dumps(
        root,
        "module_0010.jit_b.cpu_after_optimizations.txt",
        "module_10000.jit_e.cpu_after_optimizations.txt",
        "module_0002.jit_a.cpu_after_optimizations.txt.gz",
        "sub/module_0003.jit_c.tpu_after_optimizations.hlo",
        "1700000000000001.module_0004.jit_d.before_optimizations.txt",
        "notes.txt",
        "module_12.short.txt",
    )
    assert chosen_names(root) == [
        "module_0002.jit_a.cpu_after_optimizations.txt.gz",
        "module_0003.jit_c.tpu_after_optimizations.hlo",
        "1700000000000001.module_0004.jit_d.before_optimizations.txt",
        "module_0010.jit_b.cpu_after_optimizations.txt",
        "module_10000.jit_e.cpu_after_optimizations.txt",
    ]


def test_modules_of_several_processes_are_kept_apart(root: Path) -> None:
    """Each process counts its modules from 0, so folders and names distinguish them."""
    write_dumps(
        root,
        "host0/module_0000.jit_f.cpu_after_optimizations.txt",
        "host1/module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
        "module_0000.jit_b.sm_9.0_gpu_after_optimizations.txt",
        "module_0000.jit_b.before_optimizations.txt",
    )
    assert sorted(file.path.relative_to(root).as_posix() for file in dump_files(root, None)) == [
        "host0/module_0000.jit_f.cpu_after_optimizations.txt",
        "host1/module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
        "module_0000.jit_b.sm_9.0_gpu_after_optimizations.txt",
    ]


def test_serialized_modules_are_chosen_if_there_is_no_text(root: Path) -> None:
    write_dumps(
        root,
        "module_0001.jit_f.before_optimizations.hlo.pb",
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb",
        "module_0001.jit_f/compile_options.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
        "module_0003.jit_h.execution_0000.hlo_unoptimized_snapshot.pb",
        "module_0004.jit_i.execution_0000.hlo_snapshot.pb",
    )
    assert chosen_names(root) == [
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
        "module_0003.jit_h.execution_0000.hlo_unoptimized_snapshot.pb",
        "module_0004.jit_i.execution_0000.hlo_snapshot.pb",
    ]
    assert chosen_names(root, "before") == [
        "module_0001.jit_f.before_optimizations.hlo.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
    ]


@pytest.mark.parametrize("text", [".txt", ".txt.gz", ".hlo"])
def test_text_is_preferred_to_a_serialized_module_of_its_stage(root: Path, text: str) -> None:
    write_dumps(root, f"module_0001.jit_f.cpu_after_optimizations{text}", "module_0001.jit_f.cpu_after_optimizations.hlo.pb")
    assert chosen_names(root) == chosen_names(root, "after") == [f"module_0001.jit_f.cpu_after_optimizations{text}"]


def test_an_optimized_module_is_preferred_to_unoptimized_text(root: Path) -> None:
    write_dumps(root, "module_0001.jit_f.before_optimizations.txt", "module_0001.jit_f.cpu_after_optimizations.hlo.pb")
    assert chosen_names(root) == ["module_0001.jit_f.cpu_after_optimizations.hlo.pb"]


def test_a_stage_selects_files_by_a_part_of_their_name(root: Path) -> None:
    write_dumps(
        root,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0002.jit_g.before_optimizations.txt",
    )
    assert chosen_names(root, "before_optimizations") == [
        "module_0001.jit_f.before_optimizations.txt",
        "module_0002.jit_g.before_optimizations.txt",
    ]
    with pytest.raises(UsageError) as caught:
        chosen_names(root, "spmd")
    assert str(caught.value) == (
        f"no file of {root} has 'spmd' in its name; choose from: before_optimizations, cpu_after_optimizations"
    )


def test_a_directory_without_dumps_or_texts_is_an_error(root: Path) -> None:
    write_dumps(root, "notes.bin", "module_0001.jit_f.ptx", ".hidden", ".hidden.txt")
    for stage in (None, "ptx"):
        with pytest.raises(InputError) as caught:
            chosen_names(root, stage)
        message = "is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb) or other texts"
        assert str(caught.value) == f"{root}: {message}; XLA writes dumps with --xla_dump_to=DIR"


def test_each_text_of_a_directory_without_dumps_is_read(root: Path) -> None:
    write_dumps(root, "b.txt", "a.hlo.txt.xz", "sub/step", "c.log.gz", "d.hlo.pb", "e.ptx", "f.npy", ".g.txt", "h.json")
    files = list(dump_files(root, None))
    assert [file.path.relative_to(root).as_posix() for file in files] == [
        "a.hlo.txt.xz",
        "b.txt",
        "c.log.gz",
        "d.hlo.pb",
        "sub/step",
    ]
    assert {(file.note, file.may_hold) for file in files} == {(None, True)}
    assert chosen_names(root, "txt") == ["a.hlo.txt.xz", "b.txt"]
    with pytest.raises(UsageError, match=r"has 'b.text' in its name; choose from: .*; did you mean 'b.txt'"):
        chosen_names(root, "b.text")


def test_the_stage_of_a_file_is_read_from_its_name(root: Path) -> None:
    assert [
        stage_of(f"some/folder/module_0001.{stem}.txt")
        for stem in (
            "jit_f.before_optimizations",
            "jit_f.sm_9.0a_gpu_after_optimizations",
            "jit_f.cl_933746096.after_optimizations",
            "train_step.6.cpu_after_optimizations",
            "jit_f.0007.fusion.after_fusion.before_dce",
        )
    ] == [
        "before_optimizations",
        "sm_9.0a_gpu_after_optimizations",
        "after_optimizations",
        "cpu_after_optimizations",
        "0007.fusion.after_fusion.before_dce",
    ]
    assert [stage_of(name) for name in ("step.txt", "-", "<text>", "module_1.jit_f.before_optimizations.txt")] == [""] * 4


def test_a_full_stage_name_selects_only_that_stage(root: Path) -> None:
    """Stages of TPU before and after buffer assignment contain the name of the optimized stage."""
    write_dumps(
        root,
        "module_0000.jit_step.cl_1.after_optimizations.txt",
        "module_0000.jit_step.cl_1.after_optimizations_after_buffer_assignment.txt",
        "module_0000.jit_step.cl_1.before_optimizations.txt",
        "module_0001.jit_g.cpu_after_optimizations.txt",
    )
    assert chosen_names(root, "after_optimizations") == [
        "module_0000.jit_step.cl_1.after_optimizations.txt",
        "module_0001.jit_g.cpu_after_optimizations.txt",
    ]
    assert chosen_names(root, "after_buffer") == ["module_0000.jit_step.cl_1.after_optimizations_after_buffer_assignment.txt"]
    with pytest.raises(UsageError) as caught:
        chosen_names(root, "before_optimisations")
    assert str(caught.value) == (
        f"no file of {root} has 'before_optimisations' in its name; choose from: after_optimizations, "
        "after_optimizations_after_buffer_assignment, before_optimizations, cpu_after_optimizations; did you mean "
        "'before_optimizations' or 'after_optimizations' or 'cpu_after_optimizations'?"
    )


def test_a_glob_pattern_expands_to_the_files_that_match(root: Path) -> None:
    write_dumps(root, "b.txt", "a.txt", "sub/c.txt", "odd[1].txt")
    assert expanded(f"{root}/[ab].txt") == [root / "a.txt", root / "b.txt"]
    assert expanded(f"{root}/**/c.*") == [root / "sub/c.txt"]
    assert expanded(f"{root}/odd[1].txt") == [root / "odd[1].txt"]  # it exists
    assert expanded("-") == ["-"]
    assert expanded(f"{root}/missing.txt") == [root / "missing.txt"]
    with pytest.raises(InputError, match=r"z\*.txt: no file or directory matches this pattern"):
        expanded(f"{root}/z*.txt")


def test_chosen_files_of_a_real_dump_directory() -> None:
    files = list(dump_files(DATA / "xla_dump_to", None))
    assert [(file.path.name, file.note is None) for file in files] == [
        ("module_0000.jit_step.cpu_after_optimizations.txt", True),
        ("module_0002.jit_step.before_optimizations.txt", False),
    ]
    assert chosen_names(DATA / "xla_dump_to", "after_spmd-partitioning") == [
        "module_0000.jit_step.0001.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt"
    ]


def test_only_existing_directories_are_directories(root: Path) -> None:
    write_dumps(root, "a.txt")
    assert is_directory(root)
    assert is_directory(str(root))
    assert is_directory(os.fspath(root) + os.sep)
    for other in (root / "a.txt", root / "missing", f"{root}\n", "x" * 5000, "a\0b", b"HloModule m", "-"):
        assert not is_directory(other)


def test_a_named_pipe_in_a_directory_is_an_error_and_the_files_are_read(root: Path) -> None:
    """Nothing writes to the pipe, so that opening it would wait."""
    write_dumps(root, "a.txt", "inner/b.txt")
    os.mkfifo(root / "c.txt")
    os.mkfifo(root / "control.sock")  # no text
    files = dump_files(root, None)
    assert [next(files).path.name for _ in range(2)] == ["a.txt", "b.txt"]
    with pytest.raises(InputError, match=r"c\.txt: is a named pipe"):
        next(files)
