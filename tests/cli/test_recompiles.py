"""`recompiles` on the command line: JAX as the oracle, conditions, formats, and bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.cli.main import run

DATA = Path(__file__).parents[1] / "data"
LOOP, SERVER = DATA / "recompiles" / "loop", DATA / "recompiles" / "server"
SHARED = Path(__file__).parents[3] / "shared" / "dumps" / "recompiles"


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["recompiles", *arguments, "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def rows_of(answer: dict[str, Any], name: str = "recompiles") -> list[dict[str, Any]]:
    table = next(table for table in answer["tables"] if table["name"] == name)
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


# -- JAX as the oracle -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jax_calls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, int, list[str]]]]:
    """Return a dump directory, and what JAX said of each call: its name, the compiles and the reasons."""
    pytest.importorskip("jax")
    directory = tmp_path_factory.mktemp("causes")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("XLA_", "JAX_"))}
    command = [sys.executable, str(DATA / "recompile_causes.py"), str(directory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return directory, json.loads(done.stdout)


SAME_FUNCTION = {"first": "first", "made anew": "nothing", "constant": "constant", "program": "program", "option": "option"}
"""Reasons of calls that JAX explains by a function that it does not know."""
SILENT = {"donation": "donation", "committed": "sharding", "devices": "devices", "flag": "flag"}
"""Reasons of calls on which JAX says nothing: they miss the cache of compiled programs only."""


def reason_by_jax(name: str, reasons: list[str]) -> str:
    """Return the reason that JAX's words mean."""
    text = reasons[0] if reasons else ""
    meanings = {
        "never seen function": SAME_FUNCTION.get(name, ""),
        "different input pytree": "arguments",
        "jax_default_matmul_precision differs": "precision",
        "Auto": "sharding",
        "weak_type": "nothing",
    }
    for words, reason in meanings.items():
        if words in text:
            return reason
    if not text:
        return SILENT[name]
    now, before = re.findall(r"(?:now|before) (\S+)", text.splitlines()[-1])
    return "dtype" if now.split("[")[0] != before.split("[")[0] else "shape"


def test_compiles_and_reasons_are_those_of_jax(
    jax_calls: tuple[Path, list[tuple[str, int, list[str]]]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, calls = jax_calls
    answer = report(capsys, str(directory), "--module", "^jit_f$")
    compiled = [call for call in calls if call[1]]
    assert answer["facts"]["recompiles.compiles"] == sum(count for _, count, _ in calls) == len(calls)
    rows = rows_of(answer)
    assert [(name, row["reasons"]) for (name, _, _), row in zip(compiled, rows, strict=True)] == [
        (name, reason_by_jax(name, reasons)) for name, _, reasons in compiled
    ]
    assert [name for (name, _, _), row in zip(compiled, rows, strict=True) if row["avoidable"]] == ["weak type", "made anew"]
    assert {row["reasons"] for row in rows} >= {"first", "shape", "dtype", "arguments", "constant", "program", "donation"}


@pytest.mark.parametrize("directory", [LOOP, SERVER])
def test_jax_names_the_argument_of_shapes_dtypes_and_weak_types(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((DATA / "recompiles" / "expect.json").read_text(encoding="utf-8"))[directory.name]
    rows = {row["module"]: row for row in rows_of(report(capsys, str(directory)))}
    named = 0
    for compile_ in expected:
        for text in compile_["jax"]:
            argument = re.search(r"\* at (\w+), now \w", text)
            if argument is not None and "Auto" not in text:
                assert f"({argument[1]})" in rows[compile_["module"]]["detail"]
                named += 1
    assert named >= 2


# -- facts, conditions, formats ----------------------------------------------------------------------------------------


def test_totals_of_two_directories(capsys: pytest.CaptureFixture[str]) -> None:
    answer = report(capsys, str(LOOP), str(SERVER))
    assert answer["facts"] == {
        "recompiles.functions": 3,
        "recompiles.compiles": 14,
        "recompiles.loaded": 1,
        "recompiles.distinct": 10,
        "recompiles.avoidable": 3,
        "recompiles.reason.first": 3,
        "recompiles.reason.shape": 2,
        "recompiles.reason.dtype": 1,
        "recompiles.reason.sharding": 1,
        "recompiles.reason.donation": 1,
        "recompiles.reason.constant": 2,
        "recompiles.reason.flag": 1,
        "recompiles.reason.nothing": 3,
        "recompiles.reason.loaded": 1,
    }
    functions = [(row["function"], row["compiles"], row["avoidable"]) for row in rows_of(answer, "functions")]
    assert functions == [("jit_train_step", 8, 2), ("jit_decode", 3, 1), ("jit_embed", 3, 0)]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the dumps beside the checkout")
@pytest.mark.parametrize("name", ["seven", "serving", "training", "cached"])
def test_facts_of_known_directories(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((SHARED / "expect.json").read_text(encoding="utf-8"))[name]["facts"]
    facts = report(capsys, str(SHARED / name))["facts"]
    assert {fact: facts[fact] for fact in expected} == expected


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("recompiles.avoidable > 0", 1),
        ("recompiles.compiles > 12", 0),
        ("recompiles.reason.shape >= 1", 1),
        ("recompiles.reason.layout != 0", 0),
    ],
)
def test_a_condition_fails_the_command(condition: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recompiles", str(LOOP), "--fail-if", condition]) == status
    assert f"{'FAILED 1' if status else 'PASSED 0'} of 1 conditions met" in capsys.readouterr().out


@pytest.mark.parametrize("condition", ["recompiles.avoidabel > 0", "recompiles.reason.shap > 0", "recompiles.compiles > many"])
def test_a_wrong_condition_is_status_2(condition: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recompiles", str(LOOP), "--fail-if", condition]) == 2
    assert "--fail-if" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 160])
def test_the_verdict_comes_first(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["recompiles", str(LOOP)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("jit_train_step: 8 compiles, 5 distinct programs, 2 avoidable: module 2: weak")
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "markdown"])
def test_other_formats_have_the_rows(format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recompiles", str(LOOP), "--format", format_]) == 0
    assert "argument 2: f32" in capsys.readouterr().out.replace("\\", "")


def test_text_of_a_dump_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    for number, value in ((0, "a"), (1, "b\x1b[31m")):
        (tmp_path / f"module_000{number}.m.before_optimizations.txt").write_text(text, encoding="utf-8")
        (tmp_path / f"module_000{number}.m.debug_options").write_text(f'xla_a: "{value}"\n', encoding="utf-8")
    assert run(["recompiles", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "xla_a: a -> b\\x1b[31m" in " ".join(shown.split())


# -- bad input ---------------------------------------------------------------------------------------------------------

TEXT = "HloModule jit_f, entry_computation_layout={(f32[])->f32[]}\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def write(folder: Path, name: str, text: str = TEXT) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_directories_without_compiles_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "logs", "train.log", "step 1\n")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("empty", "is a directory without XLA dumps"),
        ("none", "No such file or directory"),
        ("*x", "no file or directory matches this pattern"),
    ):
        assert run(["recompiles", str(tmp_path / name)]) == 3
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1
    assert run(["recompiles", str(tmp_path / "logs")]) == 3
    assert "holds no HLO module" in capsys.readouterr().err


def test_one_bad_directory_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["recompiles", str(tmp_path / "empty"), str(LOOP)]) == 3
    said = capsys.readouterr()
    assert "8 compiles" in said.out
    assert len(said.err.splitlines()) == 1


def test_runs_mixed_in_one_directory_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("0001.jit_f", "0001.jit_g", "0002.jit_f"):
        write(tmp_path, f"module_{name}.before_optimizations.txt")
    write(tmp_path, "module_0002.jit_f.cpu_after_optimizations.txt")
    notes = report(capsys, str(tmp_path))["notes"]
    assert f"{tmp_path}: module 0001 (jit_f, jit_g) has several names: the directory holds more than one run" in notes
    assert f"{tmp_path}: module 0001 has no text after optimizations: its compile did not end" in notes


def test_half_written_files_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (0, 1):
        write(tmp_path, f"module_000{number}.jit_f.before_optimizations.txt")
        write(tmp_path, f"module_000{number}.jit_f.debug_options", f"xla_a: {number}\nxla_b 3\n")
    answer = report(capsys, str(tmp_path))
    row = rows_of(answer)[1]
    assert (row["reasons"], row["detail"]) == ("flag", "xla_a: 0 -> 1")
    place = tmp_path / "module_0000.jit_f.debug_options"
    reason = f"{place}:2:7: expected `:` or `{{` after xla_b; flags that it does not name are unknown"
    assert answer["notes"] == [f"flags or options are unknown for 2 of 2 modules: {reason}"]


def test_unknown_reasons_are_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "module_0000.jit_f.before_optimizations.txt")
    write(tmp_path, "module_0001.jit_f.before_optimizations.txt", TEXT[:-2])
    answer = report(capsys, str(tmp_path))
    assert (answer["facts"]["recompiles.distinct"], answer["facts"]["recompiles.avoidable"]) == (None, None)
    assert "recompiles.avoidable: 1 compile without a known reason" in answer["notes"]
    assert run(["recompiles", str(tmp_path), "--fail-if", "recompiles.avoidable > 0"]) == 1


def test_files_named_one_by_one_are_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    answer = report(capsys, f"{LOOP}/*.txt.xz")
    assert answer["facts"]["recompiles.compiles"] == 8
    answer = report(capsys, str(DATA / "handmade" / "two_modules.txt"))
    assert [(row["function"], row["module"], row["reasons"]) for row in rows_of(answer)] == [
        ("first", None, "first"),
        ("second", None, "first"),
    ]
    assert run(["recompiles", str(LOOP), "--module", "jit_tran_step"]) == 3
    assert "jit_train_step" in capsys.readouterr().err
