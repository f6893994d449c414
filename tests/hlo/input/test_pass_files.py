"""Files that XLA writes per compiler pass, and the pass that made each."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.errors import InputError
from hlo_inspect.hlo.input.dump_directory import compiled_modules


def names(tmp_path: Path, *files: str) -> list[str]:
    for file in files:
        (tmp_path / f"module_0001.jit_f.{file}.txt").write_text("HloModule m\n", encoding="utf-8")
    (module,) = compiled_modules(str(tmp_path))
    assert module.name == "jit_f"
    return [file.label for file in module.files]


def test_a_file_is_labelled_by_the_pass_that_made_it(tmp_path: Path) -> None:
    labels = names(
        tmp_path,
        "before_optimizations",
        "0001.simplification.after_algsimp.before_dce",
        "0002.simplification.after_dce.before_pipeline-end",
        "0003.copy-insertion.after_adding_copies",
        "sm_9.0_gpu_after_optimizations",
        "sm_9.0_gpu_after_optimizations-buffer-assignment",
    )
    assert labels == ["before optimizations", "algsimp (0001)", "dce (0002)", "adding_copies (0003)", "after optimizations"]


def test_pass_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    assert names(tmp_path, "10000.p.after_b.before_c", "9999.p.after_a.before_b") == ["a (9999)", "b (10000)"]


def test_the_first_text_of_a_pipeline_is_labelled_by_its_outer_pass(tmp_path: Path) -> None:
    """`partition` changes the text, then runs the pipeline `cleanup`."""
    labels = names(
        tmp_path,
        "0000.outer.after_inline.before_partition",
        "0001.cleanup.after_pipeline-start.before_dce",
        "0002.cleanup.after_dce.before_pipeline-end",
        "0003.outer.after_partition.before_next",
        "0004.later.after_pipeline-start.before_x",
    )
    assert labels == ["inline (0000)", "partition (0001)", "dce (0002)", "partition (0003)", "before later (0004)"]


def test_pass_files_may_be_compressed_and_have_timestamps(tmp_path: Path) -> None:
    (tmp_path / "1712.module_0001.jit_f.0000.p.after_a.before_b.txt.gz").write_bytes(b"")
    (module,) = compiled_modules(str(tmp_path))
    assert [file.name for file in module.files] == ["a"]


def test_only_modules_with_pass_files_are_listed(tmp_path: Path) -> None:
    for file in (
        "module_0001.a.0000.p.after_x.before_y.txt",
        "module_0002.b.before_optimizations.txt",
        "module_0003.c.0000.p.after_x.txt",
    ):
        (tmp_path / file).write_text("HloModule m\n", encoding="utf-8")
    assert [module.name for module in compiled_modules(str(tmp_path))] == ["a", "c"]


def test_a_directory_without_pass_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="is a directory without XLA dumps: history reads a file for each pass; XLA writes them with"
    ):
        compiled_modules(str(tmp_path))
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text("HloModule m\n", encoding="utf-8")
    with pytest.raises(InputError, match="no module of this dump directory has files of compiler passes"):
        compiled_modules(str(tmp_path))
    with pytest.raises(InputError, match="no such directory"):
        compiled_modules(str(tmp_path / "gone"))
    with pytest.raises(InputError, match="is not a directory"):
        compiled_modules(str(tmp_path / "module_0001.jit_f.before_optimizations.txt"))
