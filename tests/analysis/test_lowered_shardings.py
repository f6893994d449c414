"""Shardings of optimized texts of jax 0.12, which print none: part and copies are those that jax says (`expected.json`)."""

from __future__ import annotations

import json
import lzma
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

SHARDINGS = Path(__file__).parents[1] / "data" / "shardings"
PARTITIONERS = ("shardy", "gspmd")
OPTIMIZED = {
    "step": "module_0001.jit_step.cpu_after_optimizations.txt.xz",
    "mixed": "module_0002.jit_mixed.cpu_after_optimizations.txt.xz",
}
NOT_DECIDED = "HI104, HI506 and replicated bytes are not decided"
MIB = 1 << 20


class Lowered:
    """Like `jax.stages.Lowered`."""

    def __init__(self, name: str) -> None:
        self._files = SHARDINGS / name.partition("/")[0], name.partition("/")[2]

    def as_text(self, dialect: str | None = None) -> str:
        folder, name = self._files
        if dialect == "hlo":
            return lzma.decompress((folder / f"{name}.lowered.hlo.xz").read_bytes()).decode()
        return (folder / f"{name}.lowered.mlir").read_text()


def optimized(name: str) -> str:
    """Return the optimized text, which is in no dump directory."""
    partitioner, program = name.split("/")
    return lzma.decompress((SHARDINGS / partitioner / OPTIMIZED[program]).read_bytes()).decode()


def columns(report: Report) -> list[tuple[Any, ...]]:
    return [(row["sharding"], row["partition_spec"], row["copies"]) for row in report.table("params").records()]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("program", OPTIMIZED)
def test_a_dump_directory_tells_part_and_copies_of_each_parameter(partitioner: str, program: str) -> None:
    expected = json.loads((SHARDINGS / partitioner / "expected.json").read_text())[program]
    report = hlo_inspect.inspect(SHARDINGS / partitioner, "params", module=f"jit_{program}$")
    copies = [row["copies"] for row in report.table("params").records()]
    parts = [row["shape"] for row in report.table("params").records()]
    assert parts == [f"f32[{','.join(map(str, parameter['part']))}]" for parameter in expected]
    free = 3 if program == "mixed" else None  # the program states no sharding for it: only the text before partitioning would
    assert copies == [None if number == free else parameter["copies"] for number, parameter in enumerate(expected)]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("program", OPTIMIZED)
def test_what_was_lowered_tells_the_same_as_the_dump(partitioner: str, program: str, tmp_path: Path) -> None:
    """As `Lowered`, as text of either dialect, and as file: shardings have one spelling."""
    name = f"{partitioner}/{program}"
    dump = columns(hlo_inspect.inspect(SHARDINGS / partitioner, "params", module=f"jit_{program}$"))
    lowered = Lowered(name)
    (file := tmp_path / "lowered.mlir").write_text(lowered.as_text())
    for source in (lowered, lowered.as_text(dialect="hlo"), lowered.as_text(), str(file)):
        assert columns(hlo_inspect.inspect(optimized(name), "params", lowered=source)) == dump


def test_a_dump_without_the_text_before_has_stablehlo(tmp_path: Path) -> None:
    shutil.copy(SHARDINGS / "shardy" / OPTIMIZED["step"], tmp_path)
    folder = tmp_path / "module_0001.jit_step"
    folder.mkdir()
    shutil.copy(SHARDINGS / "shardy" / "step.lowered.mlir", folder / "module.mlir")
    (tmp_path / "module_0001.jit_step.debug_options").touch()
    report = hlo_inspect.inspect(tmp_path, "params")
    assert columns(report) == columns(hlo_inspect.inspect(SHARDINGS / "shardy", "params", module="jit_step"))
    assert [row["partition_spec"] for row in report.table("params").records()] == [
        *('(None, "model")', "replicated") * 2,
        '("data", None)',
    ]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_the_rules_on_replicated_arrays(partitioner: str) -> None:
    """The weight `whole` has 32 MiB on each device, and `split` is divided by 2: half of it could be saved.

    The batch is divided by 4 among the devices that hold equal momenta, of 32 and 16 MiB: three quarters could be saved.
    """
    report = hlo_inspect.inspect(SHARDINGS / partitioner, ("params", "optimizer"), module="jit_step")
    assert {finding.rule: finding.stake for finding in report.findings} == {"HI104": 16 * MIB, "HI506": 36 * MIB}
    roles = {row["role"]: row["replicated_bytes"] for row in report.table("params_by_role").records()}
    assert roles == {"weight": 48 * MIB, "first_moment": 48 * MIB, "input": 16 * 2048 * 4}
    assert report.notes == ()


def test_collectives_have_the_axes_of_the_text_itself() -> None:
    """A dump and the same text alone are one program, with equal facts."""
    inside = hlo_inspect.inspect(SHARDINGS / "shardy", "collectives", module="jit_step").facts
    alone = hlo_inspect.inspect(optimized("shardy/step"), "collectives").facts
    assert inside == alone
    assert alone["mesh.shape"] == "4x2"


def test_without_the_text_before_a_note_says_what_is_not_decided() -> None:
    report = hlo_inspect.inspect(optimized("shardy/step"), "params")
    note = f"this text prints no shardings: {NOT_DECIDED}; read it in its dump directory, or pass `lowered=` to `inspect`"
    assert report.notes == (note,)
    assert report.undecided_rules == ("HI104", "HI506")
    assert {row["sharding"] for row in report.table("params").records()} == {None}
    assert [finding.rule for finding in report.findings] == []


def test_a_program_without_weights_decides_their_rules() -> None:
    text = """HloModule m, is_scheduled=true, num_partitions=2, entry_computation_layout={(f32[64,64]{1,0})->f32[64,64]{1,0}}

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  ROOT y = f32[64,64]{1,0} all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
    report = hlo_inspect.inspect(text, "summary")
    assert report.undecided_rules == ()


def test_the_note_counts_parameters_whose_sharding_the_program_leaves_open() -> None:
    report = hlo_inspect.inspect(SHARDINGS / "shardy", "params", module="jit_mixed")
    assert report.notes == (
        f"the sharding of 1 of 6 parameters is unknown: {NOT_DECIDED}; "
        "XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd",
    )


def test_a_text_of_another_program_tells_nothing() -> None:
    """The name differs; then a shape does, and a sharding makes other parts of the array than the device has."""
    text = optimized("shardy/step")
    lowered = Lowered("shardy/step").as_text()
    others = (
        Lowered("shardy/mixed").as_text(),
        Lowered("shardy/mixed").as_text().replace("@jit_mixed", "@jit_step"),
        "module @jit_step {}\n",
        re.sub(r"\d+x\d+xf32> \{", "7xf32> {", lowered),
    )
    for other in others:
        report = hlo_inspect.inspect(text, "params", lowered=other)
        assert report.notes == (f"this text prints no shardings, and what was lowered has none that fit: {NOT_DECIDED}",)
    swapped = lowered.replace('[{"data"}, {}]', '[{}, {"data"}]')  # the batch would be 64 x 512 on a device
    report = hlo_inspect.inspect(text, "params", lowered=swapped)
    assert [row["copies"] for row in report.table("params").records()] == [4, 8, 4, 8, None]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(hlo_inspect.InputError, match=r"none\.mlir"):
        hlo_inspect.inspect(optimized("shardy/step"), "params", lowered=str(tmp_path / "none.mlir"))


def test_older_texts_print_shardings_themselves() -> None:
    text = Path(__file__).parents[1] / "data" / "cpu" / "bf16_master.after.txt"
    report = hlo_inspect.inspect(text, "params", lowered=Lowered("shardy/step"))
    assert report.undecided_rules == ()
    assert all(row["sharding"] for row in report.table("params").records())


def test_the_dump_of_jax_0_12() -> None:
    """Weights and momenta are divided over `model`, 4 of 8 devices; the batch over `data`, 2 of 8."""
    report = hlo_inspect.inspect(
        Path(__file__).parents[1] / "data" / "dump_jax_0_12", "params", module="jit_step", stage="after_opt"
    )
    assert [(row["partition_spec"], row["copies"]) for row in report.table("params").records()] == [
        *[('(None, "model")', 2)] * 3,
        ('("data", None)', 4),
    ]
    assert math.prod((2, 4)) == report.facts["module.devices"]
