"""Which file of a dump directory tells most of each module."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.hlo.dump_directory import dump_files, is_directory

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("HloModule m\n", encoding="utf-8")


def chosen(root: Path, stage: str | None = None) -> list[str]:
    return [path.name for path, _ in dump_files(root, stage)]


def test_the_optimized_text_is_chosen(root: Path) -> None:
    fill(
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
    assert list(dump_files(root, None)) == [(root / "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt", None)]


def test_else_the_latest_pass(root: Path) -> None:
    fill(
        root,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0002.fusion.after_fusion.before_dce.txt",
        "module_0001.jit_f.0010.HLO_passes.after_dce.txt",
        "module_0001.jit_f.0009.fusion.after_dce.before_cse.txt",
    )
    ((path, note),) = dump_files(root, None)
    assert path.name == "module_0001.jit_f.0010.HLO_passes.after_dce.txt"
    assert note is not None
    assert "no file after optimizations" in note


def test_else_the_text_before(root: Path) -> None:
    fill(root, "module_0001.jit_f.before_optimizations.txt")
    ((path, note),) = dump_files(root, None)
    assert path.name == "module_0001.jit_f.before_optimizations.txt"
    assert note == "module_0001.jit_f.before_optimizations.txt: the dump has no file after optimizations for this module"


def test_every_module_is_read_in_the_order_of_its_number(root: Path) -> None:
    fill(
        root,
        "module_0010.jit_b.cpu_after_optimizations.txt",
        "module_10000.jit_e.cpu_after_optimizations.txt",
        "module_0002.jit_a.cpu_after_optimizations.txt.gz",
        "sub/module_0003.jit_c.tpu_after_optimizations.hlo",
        "1700000000000001.module_0004.jit_d.before_optimizations.txt",
        "notes.txt",
        "module_12.short.txt",
    )
    assert chosen(root) == [
        "module_0002.jit_a.cpu_after_optimizations.txt.gz",
        "module_0003.jit_c.tpu_after_optimizations.hlo",
        "1700000000000001.module_0004.jit_d.before_optimizations.txt",
        "module_0010.jit_b.cpu_after_optimizations.txt",
        "module_10000.jit_e.cpu_after_optimizations.txt",
    ]


def test_modules_of_several_processes_are_told_apart(root: Path) -> None:
    """Each process counts its modules from 0; their folders or names tell them apart."""
    fill(
        root,
        "host0/module_0000.jit_f.cpu_after_optimizations.txt",
        "host1/module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
        "module_0000.jit_b.sm_9.0_gpu_after_optimizations.txt",
        "module_0000.jit_b.before_optimizations.txt",
    )
    assert sorted(path.relative_to(root).as_posix() for path, _ in dump_files(root, None)) == [
        "host0/module_0000.jit_f.cpu_after_optimizations.txt",
        "host1/module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
        "module_0000.jit_b.sm_9.0_gpu_after_optimizations.txt",
    ]


def test_serialized_modules_where_there_is_no_text(root: Path) -> None:
    fill(
        root,
        "module_0001.jit_f.before_optimizations.hlo.pb",
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb",
        "module_0001.jit_f/compile_options.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
        "module_0003.jit_h.execution_0000.hlo_unoptimized_snapshot.pb",
        "module_0004.jit_i.execution_0000.hlo_snapshot.pb",
    )
    assert chosen(root) == [
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
        "module_0003.jit_h.execution_0000.hlo_unoptimized_snapshot.pb",
        "module_0004.jit_i.execution_0000.hlo_snapshot.pb",
    ]
    assert chosen(root, "before") == [
        "module_0001.jit_f.before_optimizations.hlo.pb",
        "module_0002.jit_g.before_optimizations.hlo.pb.gz",
    ]


@pytest.mark.parametrize("text", [".txt", ".txt.gz", ".hlo"])
def test_text_is_preferred_to_the_same_stage_serialized(root: Path, text: str) -> None:
    fill(root, f"module_0001.jit_f.cpu_after_optimizations{text}", "module_0001.jit_f.cpu_after_optimizations.hlo.pb")
    assert chosen(root) == chosen(root, "after") == [f"module_0001.jit_f.cpu_after_optimizations{text}"]


def test_the_optimized_module_is_preferred_to_text_before(root: Path) -> None:
    fill(root, "module_0001.jit_f.before_optimizations.txt", "module_0001.jit_f.cpu_after_optimizations.hlo.pb")
    assert chosen(root) == ["module_0001.jit_f.cpu_after_optimizations.hlo.pb"]


def test_a_stage_is_a_part_of_the_name(root: Path) -> None:
    fill(
        root,
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0002.jit_g.before_optimizations.txt",
    )
    assert chosen(root, "before_optimizations") == [
        "module_0001.jit_f.before_optimizations.txt",
        "module_0002.jit_g.before_optimizations.txt",
    ]
    with pytest.raises(UsageError) as caught:
        chosen(root, "spmd")
    assert str(caught.value) == (
        f"no file of {root} has 'spmd' in its name; there are: before_optimizations, cpu_after_optimizations"
    )


def test_a_directory_without_dumps(root: Path) -> None:
    fill(root, "notes.txt", "module_0001.jit_f.ptx")
    with pytest.raises(InputError) as caught:
        chosen(root)
    assert str(caught.value) == f"{root}: is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb)"


def test_what_xla_wrote() -> None:
    files = list(dump_files(DATA / "xla_dump_to", None))
    assert [(path.name, note is None) for path, note in files] == [
        ("module_0000.jit_step.cpu_after_optimizations.txt", True),
        ("module_0002.jit_step.before_optimizations.txt", False),
    ]
    assert chosen(DATA / "xla_dump_to", "after_spmd-partitioning") == [
        "module_0000.jit_step.0001.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt"
    ]


def test_what_is_a_directory(root: Path) -> None:
    fill(root, "a.txt")
    assert is_directory(root)
    assert is_directory(str(root))
    assert is_directory(os.fspath(root) + os.sep)
    for other in (root / "a.txt", root / "missing", f"{root}\n", "x" * 5000, "a\0b", b"HloModule m", "-"):
        assert not is_directory(other)
