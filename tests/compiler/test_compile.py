"""Programs compiled on CPU: figures worked out by hand, refusals, limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.compiler.compiler import Compiler
from hlo_inspect.compiler.program import LoweredProgram, read_program
from hlo_inspect.compiler.targets import HOST
from hlo_inspect.errors import CompileError, InputError, UsageError
from hlo_inspect.inspection.compilations import Compilations
from hlo_inspect.worker_process import Limits
from tests.calling import answer
from tests.compiler.programs import MANUAL, STEP
from tests.tables import rows

pytest.importorskip("jaxlib.mlir.dialects.sdy")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.mlir"
    path.write_text(STEP, encoding="utf-8")
    return path


def test_a_program_is_compiled_and_inspected(step: Path, tmp_path: Path) -> None:
    """A device has 8 × 64 of x, 64 × 64 of w and 64 × 16 of v; each sends half of two halves of 8 × 16."""
    report = answer("compile", step, "-o", tmp_path / "kept")
    facts = report["facts"]
    assert facts["params.bytes"] == 4 * (8 * 64 + 64 * 64 + 64 * 16)
    assert facts["collectives.all-reduce.executed_count"] == 1
    assert facts["collectives.executed_wire_bytes"] == 4 * 8 * 16
    assert any("compiled for cpu by jaxlib" in note for note in report["notes"])
    again = answer("summary", tmp_path / "kept", "--mesh", "data=4,model=2")
    assert again["facts"] == facts, "every other command reads the folder"


def test_another_mesh_is_compared_with_the_own_one(step: Path) -> None:
    report = answer("remesh", step, "--mesh", "data=2,model=4")
    assert report["facts"]["collectives.axis.model.executed_wire_bytes"] == 2 * 3 * (4 * 16 * 16) // 4
    listed = {row["mesh"]: row for row in rows(report, "remesh")}
    assert list(listed) == ["data=4,model=2", "data=2,model=4"]
    assert [row["sent_bytes"] for row in listed.values()] == [512, 1536]
    assert [row["flops"] for row in listed.values()] == [81_920 + 8 * 16, 81_920 + 16 * 16], (
        "two products, an eighth of each, and the sum"
    )


def test_all_meshes_of_as_many_devices(step: Path) -> None:
    """With data=8 nothing is sent and the weights are whole; with model=8 a device has an eighth of them."""
    report = answer("remesh", step, "--mesh", "all", "--profile", "h100-sxm", "-j", 2)
    listed = {row["mesh"]: row for row in rows(report, "remesh")}
    assert set(listed) == {"data=8,model=1", "data=4,model=2", "data=2,model=4", "data=1,model=8"}
    assert {mesh: row["sent_bytes"] for mesh, row in listed.items()} == {
        "data=8,model=1": 0,
        "data=4,model=2": 512,
        "data=2,model=4": 1536,
        "data=1,model=8": 2 * 7 * (4 * 32 * 16) // 8,
    }
    estimates = [row["estimate_s"] for row in rows(report, "remesh")]
    assert estimates == sorted(estimates)
    best = min(listed.values(), key=lambda row: row["needed_bytes"])
    assert best["front"] is True


def test_a_mesh_that_is_refused_is_a_row(step: Path) -> None:
    report = answer("remesh", step, "--mesh", "data=8,model=1", "--mesh", "data=3")
    reasons = {row["mesh"]: row["reason"] for row in rows(report, "remesh")}
    assert reasons["data=8,model=1"] is None
    assert reasons["data=3,model=2"] == "dimension 0 of argument 0 has 32 elements, not divisible by 3 (data)"


def test_the_only_mesh_refused_is_status_1(step: Path) -> None:
    report = answer("remesh", step, "--mesh", "rows=8", status=1)
    (row,) = rows(report, "remesh")
    assert row["reason"] == "no axis rows; the mesh has data, model"


def test_a_shard_map_keeps_its_mesh(tmp_path: Path) -> None:
    path = tmp_path / "ring.mlir"
    path.write_text(MANUAL, encoding="utf-8")
    (row,) = rows(answer("remesh", path, "--mesh", "ring=2", status=1), "remesh")
    assert row["reason"].startswith("shard_map")


def test_no_stablehlo_is_an_input_error_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("module {\n  foo\n}\n", encoding="utf-8")
    assert run(["compile", str(path)]) == 3
    assert f"{path}:2:3: this is no StableHLO" in capsys.readouterr().err


def test_an_unknown_flag_is_refused_in_the_compilers_words(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(step), "--flag", "xla_no_such_flag=1"]) == 1
    assert "xla_no_such_flag" in capsys.readouterr().out


def test_a_directory_without_stablehlo_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text("HloModule f\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no module\.mlir.*xla_dump_to"):
        read_program(str(tmp_path))


@pytest.mark.parametrize(
    ("limits", "words"), [(Limits(seconds=0.0), "took more than 0 s"), (Limits(bytes=1), "needed more than 0.0 GiB of memory")]
)
def test_a_compile_ends_at_its_limits(limits: Limits, words: str, tmp_path: Path) -> None:
    """Its process is new: in one that has compiled before, this takes less time than passes between two looks at it."""
    program = LoweredProgram("step.mlir", STEP.encode())
    with Compiler(HOST, Limits()) as compiler:
        description = compiler.describe(program)
    with Compiler(HOST, limits, {"LIMITED": str(limits)}) as limited, pytest.raises(CompileError, match=words):
        limited.compile(program, description, tmp_path)


LOWERED = """
import hlo_inspect, jax
arrays = jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((32, 8), "float32")
product = jax.jit(jax.numpy.matmul)
for program, arguments in ((product, arrays), (product.lower(*arrays), ())):
    facts = hlo_inspect.compile(program, *arguments, passes=("params", "cost")).facts
    print(facts["params.bytes"], facts["cost.flops"])
"""


def test_what_jax_lowers_is_compiled() -> None:
    """A product of 16 × 32 and 32 × 8 has 2 × 16 × 32 × 8 FLOPs. JAX has threads, so it gets a process of its own."""
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", LOWERED], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == f"{4 * (16 * 32 + 32 * 8)} {2 * 16 * 32 * 8}\n" * 2


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(UsageError, match="list is no program"):
        hlo_inspect.compile([])


EXPORTED = """
import sys, jax
from jax import export
arrays = jax.ShapeDtypeStruct(export.symbolic_shape("b, 32"), "float32"), jax.ShapeDtypeStruct((32, 8), "float32")
open(sys.argv[1], "wb").write(export.export(jax.jit(jax.numpy.matmul))(*arrays).serialize())
"""


def test_a_file_of_jax_export_has_the_sizes_that_the_user_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flatbuffers")
    path = tmp_path / "matmul.exported"
    subprocess.run([sys.executable, "-c", EXPORTED, str(path)], check=True)
    facts = answer("compile", path, "--set", "b=16")["facts"]
    assert facts["params.bytes"] == 4 * (16 * 32 + 32 * 8)
    with Compilations(read_program(str(path)), HOST, Limits(), {}, sizes={"b": 16}) as compilations:
        compilations.describe()
        assert compilations.describe().partitions == 1, "a program is described for each version of a compiler"
    assert run(["compile", str(path)]) == 3
    assert f"{path}: the size b is not set; write --set b=N" in capsys.readouterr().err


def test_another_file_is_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flatbuffers")
    path = tmp_path / "other"
    path.write_bytes(b"\x00\x01 other")
    assert run(["compile", str(path)]) == 3
    assert f"{path}: is neither StableHLO nor a file of jax.export" in capsys.readouterr().err


def test_stablehlo_has_no_sizes_to_set(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(step), "--set", "b=16"]) == 2
    assert "has no symbolic sizes to set" in capsys.readouterr().err
