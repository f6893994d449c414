"""Reasons of compiles: those of dumps whose causes are known, and of texts written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.compare.programs.recompilation import Compile, RecompiledFunction
from hlo_inspect.inspection.recompilations import Recompilations

DATA = Path(__file__).parents[2] / "data" / "recompiles"
SHARED = Path(__file__).parents[4] / "shared" / "dumps" / "recompiles"


def functions_of(*directories: Path | str) -> list[RecompiledFunction]:
    recompilations = Recompilations()
    functions = recompilations.read(list(map(str, directories)))
    assert recompilations.errors == []
    return functions


def compiles_of(*directories: Path | str) -> dict[int | None, Compile]:
    return {compile_.record.number: compile_ for function in functions_of(*directories) for compile_ in function.compiles}


def check_rows(directory: Path, rows: list[dict[str, Any]]) -> None:
    """Assert function, reasons and detail of each compile, and the nearest one and avoidable if the rows have them."""
    compiles = compiles_of(directory)
    assert sorted(compiles) == sorted(row["module"] for row in rows)  # type: ignore[type-var]
    for row in rows:
        compile_ = compiles[row["module"]]
        expected = row["reasons"] if isinstance(row["reasons"], list) else [row["reasons"]]
        assert (compile_.record.function, list(compile_.reasons or ())) == (row["function"], expected)
        assert [text for text in row["detail"] if text not in compile_.detail] == []
        assert row.get("avoidable", expected == ["nothing"]) == compile_.avoidable
        if "nearest" in row:
            assert row["nearest"] == (compile_.nearest.number if compile_.nearest is not None else None)


@pytest.mark.parametrize("name", ["loop", "server"])
def test_compiles_of_known_causes(name: str) -> None:
    check_rows(DATA / name, json.loads((DATA / "expect.json").read_text(encoding="utf-8"))[name])


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the dumps beside the checkout")
@pytest.mark.parametrize("name", ["seven", "serving", "training", "cached"])
def test_compiles_of_more_known_causes(name: str) -> None:
    check_rows(SHARED / name, json.loads((SHARED / "expect.json").read_text(encoding="utf-8"))[name]["compiles"])


# -- texts by hand -----------------------------------------------------------------------------------------------------

HEADER = "HloModule jit_f, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}"
PROGRAM = """\
ENTRY main {
  x.1 = f32[4]{0} parameter(0), metadata={op_name="x"}
  y.1 = f32[4]{0} parameter(1), metadata={op_name="y"}
  two.1 = f32[] constant(2)
  twos.1 = f32[4]{0} broadcast(two.1), dimensions={}, metadata={op_name="mul" source_file="/run/train.py" source_line=3}
  half.1 = f32[] constant(0.5)
  halves.1 = f32[4]{0} broadcast(half.1), dimensions={}, metadata={op_name="add" source_file="/run/train.py" source_line=4}
  mul.1 = f32[4]{0} multiply(x.1, twos.1), metadata={op_name="mul" source_file="/run/train.py" source_line=3}
  ROOT add.1 = f32[4]{0} add(mul.1, halves.1), metadata={op_name="add" source_file="/run/train.py" source_line=4}
}
"""
MESH = ", frontend_attributes={xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>}}"
FREE = ", allow_spmd_sharding_propagation_to_parameters={true,true}"
CHANGES: list[tuple[str, list[tuple[str, str]], tuple[str, ...], str]] = [
    ("names", [("mul.1", "product.7"), ("jit_f,", "jit_f,")], ("nothing",), "made anew"),
    (
        "another function",
        [('"/run/train.py" source_line=3', '"/run/serve.py" source_line=9')],
        ("nothing",),
        "another function of this name and program: train.py:3 and serve.py:9; share one jit function",
    ),
    ("number", [("constant(2)", "constant(3)")], ("constant",), "constant f32[]: 2 -> 3 (train.py:3)"),
    ("other number", [("constant(0.5)", "constant(2)")], ("constant",), "constant f32[]: 0.5 -> 2 (train.py:4)"),
    ("opcode", [("multiply(", "subtract(")], ("program",), "+1 subtract f32[4]{0} (train.py:3), -1 multiply f32[4]{0}"),
    ("operand", [("multiply(x.1, twos.1)", "multiply(y.1, twos.1)")], ("program",), "with other operands"),
    ("layout", [("(f32[4]{0}, f32", "(f32[4]{0:T(8)}, f32")], ("layout",), "argument 0: {0} -> {0:T(8)}"),
    (
        "tiles of a dtype",
        [("(f32[4]{0}, f32", "(bf16[4]{0:T(8)}, f32"), ("x.1 = f32", "x.1 = bf16")],
        ("dtype",),
        "f32[4] -> bf16",
    ),
    ("result layout", [("->f32[4]{0}", "->f32[4]{0:S(5)}")], ("layout",), "result 0: {0} -> {0:S(5)}"),
    (
        "committed",
        [("parameter(0)", "parameter(0), sharding={replicated}"), ("->f32[4]{0}}", "->f32[4]{0}}" + MESH)],
        ("sharding",),
        "argument 0: no sharding -> {replicated}",
    ),
    ("free", [("->f32[4]{0}}", "->f32[4]{0}}" + FREE)], ("sharding",), "free shardings of arguments:  -> {true,true}"),
    (
        "donation and layout",
        [("jit_f, entry", "jit_f, input_output_alias={ {}: (1, {}, may-alias) }, entry"), ("->f32[4]{0}", "->f32[4]{0:S(5)}")],
        ("layout", "donation"),
        "argument 1: not donated -> donated to output 0 (y)",
    ),
    ("replicas", [("->f32[4]{0}}", "->f32[4]{0}}, replica_count=2")], ("sharding",), "1 -> 2 replicas"),
    ("partitions", [("->f32[4]{0}}", "->f32[4]{0}}, num_partitions=2")], ("sharding",), "1 -> 2 partitions"),
    ("header", [("->f32[4]{0}}", "->f32[4]{0}}, is_dynamic=true")], ("program",), "header is_dynamic: none -> true"),
    (
        "consequences",
        [("f32[4]", "f32[6]"), ("constant(2)", "constant(3)"), ("multiply(", "divide(")],
        ("shape",),
        "argument 0: f32[4] -> f32[6] (x); argument 1: f32[4] -> f32[6] (y)",
    ),
    (
        "a smaller shape",
        [("f32[4]", "f32[3]")],
        ("shape",),
        "argument 0: f32[4] -> f32[3] (x), fits if padded; argument 1: f32[4] -> f32[3] (y), fits if padded",
    ),
    (  # as jax 0.12 writes `out_shardings=Format(Layout(...), device)`
        "layout that is asked for",
        [
            ("->f32[4]{0}}", "->f32[4]{0:S(5)}}"),
            ("ROOT add.1 =", "add.1 ="),
            (
                "source_line=4}\n}",
                "source_line=4}\n  tuple.1 = (f32[4]{0}) tuple(add.1)\n  ROOT gte.1 = f32[4]{0} get-tuple-element(tuple.1)"
                ", index=0, sharding={mesh[], [{}]}\n}",
            ),
        ],
        ("layout",),
        "result 0: {0} -> {0:S(5)}",
    ),
    (
        "named sharding",
        [("parameter(0)", "parameter(0), sharding={mesh['data'=4,'model'=2], [{'data','model'}]}")],
        ("sharding",),
        'argument 0: no sharding -> (("data", "model"),) over data=4, model=2',
    ),
    (
        "named, replicated",
        [("parameter(0)", "parameter(0), sharding={mesh['data'=8], [{}]}")],
        ("sharding",),
        "argument 0: no sharding -> replicated over data=8",
    ),
    ("shape and dtype", [("f32[4]", "bf16[6]"), ("f32[]", "bf16[]")], ("shape", "dtype"), "argument 0: f32[4] -> bf16[6] (x)"),
    (
        "argument",
        [("f32[4]{0}, f32[4]{0})", "f32[4]{0})"), ('  y.1 = f32[4]{0} parameter(1), metadata={op_name="y"}\n', "")],
        ("arguments",),
        "2 -> 1 arguments: -y f32[4]",
    ),
]


@pytest.mark.parametrize(("replacements", "reasons", "detail"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_has_its_reason(
    tmp_path: Path, replacements: list[tuple[str, str]], reasons: tuple[str, ...], detail: str
) -> None:
    text = changed = f"{HEADER}\n\n{PROGRAM}"
    for old, new in replacements:
        assert old in changed
        changed = changed.replace(old, new)
    for number, content in ((1, text), (2, changed)):
        (tmp_path / f"module_000{number}.jit_f.before_optimizations.txt").write_text(content, encoding="utf-8")
    compile_ = compiles_of(tmp_path)[2]
    assert compile_.reasons == reasons
    assert detail in compile_.detail
    assert compile_.is_distinct == (reasons != ("nothing",))


def write(folder: Path, number: int, text: str, debug_options: str = "xla_a: 1\n", mlir: str = "") -> None:
    """Write the files of a compile of `jit_f`."""
    stem = folder / f"module_{number:04d}.jit_f"
    stem.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem.name}.before_optimizations.txt").write_text(text, encoding="utf-8")
    (folder / f"{stem.name}.cpu_after_optimizations.txt").write_text(text, encoding="utf-8")
    (folder / f"{stem.name}.debug_options").write_text(debug_options, encoding="utf-8")
    (stem / "module.mlir").write_text(mlir, encoding="utf-8")


TEXT = f"{HEADER}\n\n{PROGRAM}"
TABLE = TEXT.replace("f32[] constant(2)", "f32[] constant(2)\n  table.1 = f32[12]{0} constant({...})").replace(
    "multiply(x.1, twos.1)", 'custom-call(x.1, table.1), custom_call_target="look_up"'
)
MLIR = '  func.func public @main(%arg0: tensor<12xf32>) {{\n    %c = stablehlo.constant dense<"0x{}"> : tensor<12xf32>\n'


def test_the_nearest_compile_has_the_fewest_reasons_then_the_fewest_differences(tmp_path: Path) -> None:
    other = TEXT.replace("f32[4]", "f32[8]")
    one_other = TEXT.replace("y.1 = f32[4]", "y.1 = f32[8]").replace("{0}, f32[4]{0})", "{0}, f32[8]{0})")
    for number, text in enumerate((TEXT, other, one_other, TEXT.replace("(2)", "(3)"), other.replace("(2)", "(4)"))):
        write(tmp_path, number, text)
    compiles = compiles_of(tmp_path)
    nearest = [compile_.nearest.number if compile_.nearest else None for compile_ in compiles.values()]
    assert nearest == [None, 0, 0, 0, 1]
    assert [compile_.reasons for compile_ in compiles.values()][2:] == [("shape",), ("constant",), ("constant",)]


def test_a_compile_of_other_shapes_is_not_nearer_if_it_hides_other_constants(tmp_path: Path) -> None:
    other_shape, other_constants = TEXT.replace("f32[4]", "f32[8]"), TEXT.replace("(2)", "(3)").replace("(0.5)", "(7)")
    for number, text in enumerate((TEXT, other_shape, other_constants, other_constants.replace("f32[4]", "f32[8]"))):
        write(tmp_path, number, text)
    compiles = compiles_of(tmp_path)
    nearest = [compiles[number].nearest for number in (2, 3)]
    assert [record.number if record else None for record in nearest] == [0, 1]
    assert [compiles[number].reasons for number in (2, 3)] == [("constant",), ("constant",)]


def test_compiles_of_another_process_need_a_persistent_cache(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        write(tmp_path / folder, 3, TEXT)
    (function,) = functions_of(tmp_path / "first", tmp_path / "second")
    assert [compile_.reasons for compile_ in function.compiles] == [("first",), ("nothing",)]
    assert "jax_compilation_cache_dir" in function.compiles[1].detail


def test_flags_with_dumps_and_logs_are_no_reason(tmp_path: Path) -> None:
    write(tmp_path, 0, TEXT, 'xla_dump_to: "/a"\nxla_detailed_logging: true\n')
    write(tmp_path, 1, TEXT, 'xla_dump_to: "/b"\n')
    write(tmp_path, 2, TEXT, 'xla_b: "x\x1b[1m"\n')
    compiles = compiles_of(tmp_path)
    assert (compiles[1].reasons, compiles[2].reasons) == (("nothing",), ("flag",))
    assert compiles[2].detail == "xla_b: default -> x\x1b[1m"


def test_values_of_elided_constants_come_from_stablehlo(tmp_path: Path) -> None:
    for number, values in enumerate(("00", "00", "01")):
        write(tmp_path, number, TABLE, mlir=MLIR.format(values))
    write(tmp_path, 3, TABLE)
    compiles = compiles_of(tmp_path)
    assert [compiles[number].reasons for number in (1, 2)] == [("nothing",), ("constant",)]
    assert compiles[2].detail == "constant f32[12]: other values (train.py:3)"
    assert len({compiles[number].record.program for number in (0, 1, 2)}) == 2
    assert compiles[3].reasons == ("nothing",)
    assert "values of elided constants are unknown" in compiles[3].detail


def test_reasons_of_a_truncated_text_are_those_of_its_arguments(tmp_path: Path) -> None:
    cut = TEXT[: TEXT.index("half.1")]
    write(tmp_path, 0, TEXT)
    write(tmp_path, 1, cut)
    write(tmp_path, 2, cut.replace("f32[4]", "f32[8]"))
    compiles = compiles_of(tmp_path)
    assert (compiles[1].reasons, compiles[1].avoidable) == (None, None)
    assert "truncated" in compiles[1].detail
    assert (compiles[2].reasons, compiles[2].avoidable) == (("shape",), False)


def test_a_load_belongs_to_the_compile_with_its_optimized_program(tmp_path: Path) -> None:
    write(tmp_path, 0, TEXT.replace("(2)", "(3)"))
    write(tmp_path, 1, TEXT)
    for number, text in ((4, TEXT), (5, TEXT.replace("(2)", "(9)"))):
        (tmp_path / f"module_000{number}.jit_f.after_optimizations.txt").write_text(text, encoding="utf-8")
    (function,) = functions_of(tmp_path)
    loads = function.compiles[2:]
    assert [load.reasons for load in loads] == [("loaded",), ("loaded",)]
    assert [load.nearest.number if load.nearest else None for load in loads] == [1, None]
    assert (function.count(), function.distinct(), function.avoidable()) == (2, 2, 0)


def test_optimized_texts_alone_are_compiles(tmp_path: Path) -> None:
    for number, text in ((0, TEXT), (1, TEXT.replace("(2)", "(3)"))):
        (tmp_path / f"module_000{number}.jit_f.cl_1.after_optimizations.txt").write_text(text, encoding="utf-8")
    assert [compile_.reasons for compile_ in compiles_of(tmp_path).values()] == [("first",), ("constant",)]
