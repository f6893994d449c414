"""`bisect` on a program of one device: which pass merges two equal sines, outputs worked out by hand, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.bisection import passes
from hlo_inspect.bisection.conditions import TriedOutputs
from hlo_inspect.bisection.passes import names_in_log
from hlo_inspect.bisection.trials import Trials
from hlo_inspect.compiler.program import read_program
from hlo_inspect.compiler.targets import HOST
from hlo_inspect.inspection.compilations import DEFAULT_LIMITS, Compilations
from tests.calling import answer_and_lines, call_text
from tests.compiler.programs import STEP
from tests.tables import rows

jaxlib = pytest.importorskip("jaxlib")
pytest.importorskip("jaxlib.mlir.dialects.sdy")
np = pytest.importorskip("numpy")

SINES = (Path(__file__).parents[1] / "data/stablehlo/sines.mlir").read_text(encoding="utf-8")
"""Two equal sines, which only `cse` merges."""
DOUBLED = SINES.replace("stablehlo.multiply %a, %b", "stablehlo.add %x, %x").replace(
    "%x: tensor<6xf32>, %n: tensor<2xi32>", '%x: tensor<6xf32> loc("x"), %n: tensor<2xi32> loc("n")'
)
"""2 x and 2 n, which are exact; the arguments have names, as those of JAX."""
COUNTED = """\
module @jit_counted {
  func.func public @main(%n: tensor<i32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4x4xf32>
      cond {
        %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %i, %one : tensor<i32>
        %z = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        stablehlo.return %next, %z : tensor<i32>, tensor<4x4xf32>
      }
    return %end#1 : tensor<4x4xf32>
  }
}
"""
"""A product in a loop whose trip count is an argument."""
CASES = Path(__file__).parents[3] / "shared/dumps/bisect"


@pytest.fixture
def sines(tmp_path: Path) -> Path:
    """Return a folder of one module, as XLA writes it beside a text."""
    (tmp_path / "module.mlir").write_text(SINES, encoding="utf-8")
    return tmp_path


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    path = tmp_path / "doubled.mlir"
    path.write_text(DOUBLED, encoding="utf-8")
    return path


def bisect(*arguments: object, status: int = 0) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of a bisection and the lines that it tells."""
    return answer_and_lines("bisect", *arguments, status=status)


def refusal(*arguments: object, status: int) -> str:
    """Return the last line of a command that fails."""
    done = call_text("bisect", *map(str, arguments))
    assert done.returncode == status
    return done.stderr.splitlines()[-1]


def test_the_pass_that_merges_equal_instructions(sines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cse` changes the module, so that it is tried first; it removes a sine. Every fifth of the others is enough here."""

    def some_names(log: str) -> list[str]:
        names = names_in_log(log)
        assert len(names) > 50, "passes that changed nothing are names too"
        return [name for number, name in enumerate(names) if name == "cse" or number % 5 == 0]

    monkeypatch.setattr(passes, "names_in_log", some_names)
    report, lines = bisect(sines, "--over", "passes", "--if", "opcode.sine == 1")
    assert rows(report, "necessary") == [
        {"name": "cse", "value": "opcode.sine 2", "change": "-1 instruction", "old": None, "new": None}
    ]
    assert rows(report, "required") == []
    assert lines[0].endswith("  all passes: opcode.sine 1  holds")
    assert any(line.endswith("without cse: opcode.sine 2  does not hold") for line in lines[1:4])
    assert len(lines) > 10, "passes that changed nothing are tried too"
    assert len(lines) == int(lines[0].split()[2])


def test_the_least_flags_that_turn_a_condition(sines: Path, tmp_path: Path) -> None:
    """Five flags differ; the one that disables `cse` leaves two sines."""
    others = ("xla_cpu_enable_fast_math", "xla_cpu_enable_fast_min_max", "xla_allow_excess_precision", "xla_cpu_use_onednn")
    old, new = tmp_path / "old.debug_options", " ".join([f"{name}=true" for name in others] + ["xla_disable_hlo_passes=cse"])
    old.write_text("".join(f"{name}: false\n" for name in others), encoding="utf-8")
    report, lines = bisect(sines, old, new, "--over", "flags", "--if", "opcode.sine == 2")
    (row,) = rows(report, "necessary")
    assert (row["name"], row["old"], row["new"]) == ("xla_disable_hlo_passes", None, "cse")
    assert lines[:2] == ["1  flags of A: opcode.sine 1  does not hold", "2  flags of B: opcode.sine 2  holds"]
    assert lines[-1] == "6  with xla_disable_hlo_passes of B: opcode.sine 2  holds"


def test_outputs_are_compared_in_units_in_the_last_place(doubled: Path, tmp_path: Path) -> None:
    x, n = np.arange(1, 7, dtype="float32"), np.array([3, 4], "int32")
    inputs, right, near, wrong = (tmp_path / f"{name}.npz" for name in ("inputs", "right", "near", "wrong"))
    np.savez(inputs, n=n, x=x)
    np.savez(right, 2 * x, 2 * n)
    np.savez(near, np.nextafter(2 * x, np.float32(100)), 2 * n)
    np.savez(wrong, 2 * x, 2 * n + np.array([1, 0], "int32"))
    expected = {
        (right, 0): "0 of 8 elements differ",
        (near, 0): "6 of 8 elements differ by up to 1 ULP",
        (near, 1): "0 of 8 elements differ",
        (wrong, 5): "1 of 8 elements differ",
    }
    with Compilations(read_program(str(doubled)), HOST, DEFAULT_LIMITS, {}) as compilations:
        for (file, tolerance), value in expected.items():
            trials = Trials(compilations, TriedOutputs(str(file), str(inputs), tolerance), print)
            assert trials.of({}).value == value
    options = ("--inputs", inputs, "--tolerance", 1)
    _, lines = bisect(doubled, "--over", "passes", "--if-differs", near, *options, status=1)
    assert "0 of 8 elements differ  does not hold" in lines[0]


def test_without_expected_outputs_those_without_optimizations_are(doubled: Path) -> None:
    report, lines = bisect(doubled, "--over", "passes", "--if-differs", status=1)
    assert len(lines) == 1, "a condition that does not hold is said first"
    assert "0 of 8 elements differ  does not hold" in lines[0]
    assert rows(report, "necessary") == []
    assert any("compiled without passes" in note for note in report["notes"])
    assert any("made from the seed" in note for note in report["notes"])


def test_a_command_is_run_on_the_folder(sines: Path) -> None:
    """The command fails if the optimized text has two sines, which it has without `cse`."""
    command = """sh -c '[ $(cat "$0"/*after_optimizations.txt | grep -c " sine(") -lt 2 ]' {}"""
    flags = "", "xla_disable_hlo_passes=cse"
    report, lines = bisect(sines, *flags, "--over", "flags", "--run", command)
    assert [row["name"] for row in rows(report, "necessary")] == ["xla_disable_hlo_passes"]
    assert lines[:2] == ["1  flags of A: status 0  does not hold", "2  flags of B: status 1  holds"]


def test_a_condition_that_is_not_stable_ends_it(sines: Path, tmp_path: Path) -> None:
    """The command fails at its first call only."""
    marker = tmp_path / "called"
    line = refusal(sines, "--over", "passes", "--run", f"sh -c 'test -e {marker} || ! touch {marker} #{{}}'", status=3)
    assert "two runs of the same disagree, with all passes: status 1, then status 0" in line


def test_inputs_that_do_not_fit_are_named(doubled: Path, tmp_path: Path) -> None:
    single, shaped = tmp_path / "one.npz", tmp_path / "shaped.npz"
    np.savez(single, np.zeros(6, "float32"))
    np.savez(shaped, x=np.zeros(6, "float32"), n=np.zeros(3, "int64"))
    run_it = (doubled, "--over", "passes", "--if-differs")
    assert refusal(*run_it, single, status=3).endswith("one.npz: has 1 arrays, the program 2 outputs")
    line = refusal(*run_it, shaped, status=3)
    assert line.endswith("shaped.npz: n is int64[3]; output 1 of the program is int32[2]")
    assert "is no file of numpy.savez" in refusal(*run_it, doubled, status=3)


def test_one_message_for_what_cannot_be_asked(sines: Path, tmp_path: Path) -> None:
    over = ("--over", "passes")
    assert "one condition" in refusal(sines, *over, status=2)
    assert "A and B" in refusal(sines, "--over", "flags", "--if", "opcode.sine == 1", status=2)
    assert "need --if-differs" in refusal(sines, *over, "--if", "opcode.sine == 1", "--tolerance", 1, status=2)
    assert "'nosuch {}' begins with no command that is here" in refusal(sines, *over, "--run", "nosuch {}", status=2)
    assert "has no {}" in refusal(sines, *over, "--run", "true", status=2)
    flags = ("--over", "flags", "--if", "opcode.sine == 1")
    assert "flags of B: No such compile option: 'xla_nosuch'" in refusal(sines, "", "xla_nosuch=1", *flags, status=3)
    line = refusal(sines, "", "xla_disable_hlo_passes=csee", *flags, status=2)
    assert line.endswith("'csee' is no pass that runs for this program; did you mean 'cse'?")
    assert "neither a file" in refusal(sines, "", "fast", *flags, status=2)
    line = refusal(sines, "", "xla_a='open", *flags, status=2)
    assert line.endswith("""--over flags: "xla_a='open" cannot be split into words: No closing quotation""")
    path = tmp_path / "nosuch.mlir"
    path.write_text(SINES.replace("sine %x :", "custom_call @nosuch(%x) : (tensor<6xf32>) ->"), encoding="utf-8")
    line = refusal(path, *over, "--if", "opcode.sine == 1", status=3)
    assert line.startswith("hlo-inspect: the program does not compile: No registered implementation")
    step = tmp_path / "step.mlir"
    step.write_text(STEP, encoding="utf-8")
    assert "8 partitions" in refusal(step, *over, "--if-differs", status=2)


def test_a_fact_that_is_unknown_decides_nothing(tmp_path: Path) -> None:
    """The trip count of the loop is an argument, so that its FLOPs are unknown."""
    path = tmp_path / "counted.mlir"
    path.write_text(COUNTED, encoding="utf-8")
    asked = ("--if", "cost.executed_flops > 1 GFLOP")
    line = refusal(path, "--over", "passes", *asked, status=3)
    assert "there is nothing to bisect: as it is, cost.executed_flops is unknown: the trip count" in line
    line = refusal(path, "", "xla_cpu_enable_fast_math=true", "--over", "flags", *asked, status=3)
    assert "there is nothing to bisect: with the flags of A, cost.executed_flops is unknown" in line


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the dumps beside the checkout")
def test_an_open_miscompilation() -> None:
    folder = CASES / "shifted_rows"
    if json.loads((folder / "case.json").read_text(encoding="utf-8"))["jaxlib"] != jaxlib.__version__:
        pytest.skip("needs the jaxlib of the case")
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    files = ("--if-differs", folder / "expected.npz", "--inputs", folder / "inputs.npz")
    report, lines = bisect(folder, "--over", "passes", *files)
    assert {row["name"] for row in rows(report, "necessary")} == set(truth["necessary"])
    assert len(lines) == len(truth["passes_run"]) + 1
