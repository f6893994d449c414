"""`diff` on the command line: inputs, exit statuses, and messages if something cannot be compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run

MODULE = """HloModule {name}, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT n = f32[8]{{0}} {opcode}(p)
}}
"""


def module(name: str = "m", opcode: str = "negate") -> str:
    return MODULE.format(name=name, opcode=opcode)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text(module())
    new.write_text(module(opcode="cosine"))
    return str(old), str(new)


def differing(output: str) -> dict[str, tuple[object, object]]:
    """Return the facts of a JSON report of `diff`, old and new."""
    report = json.loads(output)
    (table,) = [table for table in report["tables"] if table["name"] == "facts"]
    return {row[0]: (row[1], row[2]) for row in table["rows"]}


def test_a_difference_is_no_failure_by_itself(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *files, "--format", "json"]) == 0
    changes = differing(capsys.readouterr().out)
    assert (changes["opcode.negate"], changes["opcode.cosine"]) == ((1, 0), (0, 1))


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("different", 1),
        ("opcode.negate < 0", 1),
        ("opcode.negate < -100%", 0),
        ("params.bytes != 0", 0),
        ("params.bites != 0", 2),
        ("params.bytes known", 2),
    ],
)
def test_conditions_decide_the_exit_status(files: tuple[str, str], condition: str, status: int) -> None:
    assert run(["diff", *files, "--fail-if", condition]) == status
    assert run(["diff", files[0], files[0], "--fail-if", condition]) == (status if status == 2 else 0)


def test_a_saved_report_is_an_input(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "old.json"
    assert run(["summary", files[0], "--format", "json", "-o", str(saved)]) == 0
    assert run(["diff", str(saved), files[1], "--format", "json"]) == 0
    changes = differing(capsys.readouterr().out)
    assert (changes["opcode.negate"], changes["opcode.cosine"]) == ((1, 0), (0, 1))
    assert run(["diff", str(saved), str(saved), "--fail-if", "different"]) == 0
    for option, value in (("--module", "nosuch"), ("--profile", "tpu-v5e"), ("--mesh", "data=3")):
        capsys.readouterr()
        assert run(["diff", str(saved), str(saved), option, value]) == 2
        assert f"{option} does not apply to saved reports" in capsys.readouterr().err


def test_an_error_in_a_condition_names_its_option_or_its_line(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("fail-if:\n  - different\n  - nosuch.x != 0\n")
    assert run(["diff", *files, "--fail-if", "nosuch.x != 0"]) == 2
    assert "--fail-if:1:1: there is no fact 'nosuch.x'" in capsys.readouterr().err
    assert run(["check", files[1], "--baseline", files[0], "--policy", str(policy)]) == 2
    assert "p.yaml:3:5: there is no fact 'nosuch.x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 7}', "is a report of schema 7; this version reads schema 1"),
        ('{"schema_version": 1}', "is a report whose 'facts' makes no sense"),
        ('{"schema_version": true}', "is a report of schema True"),
        ('{"a": 1}', "is JSON, but not a report"),
        ('{"a": ', "is unreadable JSON"),
        ('{"a": ' + "[" * 100_000, "nested too deep"),
    ],
)
def test_bad_saved_reports(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    saved = tmp_path / "bad.json"
    saved.write_text(text)
    assert run(["diff", str(saved), files[1]]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("command", 7), ("tool", {"name": 1, "version": "0"}), ("profile", 3), ("notes", "none"), ("notes", [1])],
        *[("input", {"path": "a", "first_line": True, "lines": 1, "bytes": 1}), ("facts", {"module.name": []})],
    ],
)
def test_a_saved_report_with_a_value_of_another_type_is_refused(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: object
) -> None:
    saved = tmp_path / "saved.json"
    assert run(["params", files[0], "--format", "json", "-o", str(saved)]) == 0
    saved.write_text(json.dumps(json.loads(saved.read_text()) | {key: value}))
    assert run(["diff", str(saved), files[1]]) == 3
    assert "makes no sense" in capsys.readouterr().err


def test_an_unreadable_input_of_diff_is_status_3(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", files[0], str(tmp_path / "none.txt")]) == 3
    assert "No such file" in capsys.readouterr().err
    assert run(["diff", "-", "-"]) == 2


def test_standard_input_that_was_looked_into_is_closed_in_silence(files: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "hlo_inspect", "diff", "-", files[0]]
    done = subprocess.run(command, input=Path(files[0]).read_bytes(), capture_output=True, check=True)
    assert (b"same program" in done.stdout, done.stderr) == (True, b"")


def test_modules_of_directories_are_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, names in (("old", "abc"), ("new", "cbd")):
        (tmp_path / side).mkdir()
        for number, name in enumerate(names):
            opcode = {"newb": "sine", "olda": "cosine"}.get(side + name, "negate")
            (tmp_path / side / f"{number}.txt").write_text(module(f"jit_{name}", opcode))
    assert run(["diff", str(tmp_path / "old"), str(tmp_path / "new"), "--fail-if", "different"]) == 1
    output = capsys.readouterr().out
    lines = [line.split()[:3] for line in output.splitlines() if line.startswith(("jit_", "only in"))]
    assert [line[0] for line in lines if line[0] != "only"] == ["jit_b", "jit_c", "jit_a", "jit_d"]
    assert [line for line in lines if line[0] == "only"] == [["only", "in", "OLD:"], ["only", "in", "NEW:"]]
    assert output.count("same program\n") == 1


def test_the_output_is_not_written_over_an_input(files: tuple[str, str]) -> None:
    assert run(["diff", *files, "-o", files[1]]) == 2
    folder = str(Path(files[1]).parent)
    before = Path(files[1]).read_bytes()
    assert run(["diff", files[0], folder, "-o", files[1]]) == 2
    profile = Path(folder) / "mine.yaml"
    profile.write_text("extends: h100-sxm\nname: mine\n")
    assert run(["diff", *files, "--profile", str(profile), "-o", str(profile)]) == 2
    assert (Path(files[1]).read_bytes(), profile.read_text()) == (before, "extends: h100-sxm\nname: mine\n")


def test_the_first_line_says_what_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, cut, scheduled = tmp_path / "old.txt", tmp_path / "cut.txt", tmp_path / "scheduled.txt"
    old.write_text(module())
    cut.write_text(module().rpartition("  ROOT")[0])
    scheduled.write_text(module().replace("HloModule m,", "HloModule m, is_scheduled=true,"))
    assert run(["diff", str(old), str(cut)]) == 0
    assert capsys.readouterr().out.startswith("NEW is cut off inside e; only the printed part is compared\n")
    assert run(["diff", str(scheduled), str(old)]) == 0
    assert capsys.readouterr().out.startswith("OLD is scheduled and NEW is not: they come from different stages")


def test_a_saved_report_is_said_to_be_one(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "old.json"
    assert run(["summary", files[0], "--format", "json", "-o", str(saved)]) == 0
    assert run(["diff", str(saved), files[1]]) == 0
    said = "OLD: saved reports and workload files are compared by facts and tables, not by instructions"
    assert said in capsys.readouterr().out


def test_facts_of_workload_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their collectives are cells, and have no shape or groups by which one could be found again."""
    simai = Path(__file__).parents[1] / "data/workloads/simai.txt"
    longer = tmp_path / "longer.txt"
    longer.write_text(simai.read_text().replace("ALLGATHER", "ALLREDUCE"))
    assert run(["diff", str(simai), str(longer), "--format", "json"]) == 0
    facts = differing(capsys.readouterr().out)
    assert facts["collectives.all-gather.count"] == (2, 0)
    assert "collectives.executed_count" not in facts


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--fail-if", "opcode.negate < 0"], 1, "FAILED 1 of 1 module, 1 of 1 check"),
        (["--fail-if", "params.bytes != 0"], 0, "PASSED 1 module, 1 check"),
        (["--fail-if", "different", "--assert", "params.count == 1"], 1, "1 of 2 checks"),
    ],
)
def test_a_check_against_a_baseline(
    files: tuple[str, str], arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", files[1], "--baseline", files[0], *arguments]) == status
    assert words in capsys.readouterr().out


def test_conditions_of_a_policy(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("fail-if:\n  - opcode.cosine > 0\n")
    assert run(["check", files[1], "--baseline", files[0], "--policy", str(policy)]) == 1
    assert "opcode.cosine > 0" in capsys.readouterr().out
    assert run(["check", files[1], "--policy", str(policy)]) == 2
    assert run(["check", files[1], "--baseline", files[0], "--assert", "params.count == 1"]) == 2
    assert run(["check", *files, "--baseline", files[0], "--policy", str(policy)]) == 2


def test_modules_without_a_mate_fail_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, names in (("old", "ab"), ("new", "bc")):
        (tmp_path / side).mkdir()
        for number, name in enumerate(names):
            opcode = {"olda": "cosine"}.get(side + name, "negate")
            (tmp_path / side / f"{number}.txt").write_text(module(f"jit_{name}", opcode))
    arguments = ["--baseline", str(tmp_path / "old"), "--fail-if", "different"]
    assert run(["check", str(tmp_path / "new"), *arguments]) == 1
    output = capsys.readouterr()
    assert "a module to compare with" in output.out
    assert "has no module to compare with jit_a" in output.err


def test_every_format_renders_a_diff(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for form, words in (("markdown", "different programs"), ("csv", "fact,old,new"), ("jsonl", '"diff.same_program":false')):
        assert run(["diff", *files, "--format", form]) == 0
        assert words in capsys.readouterr().out
    assert run(["diff", *files, "--table", "changes", "--format", "csv"]) == 0
    assert "kernels" in capsys.readouterr().out


def test_findings_that_are_new_reach_fail_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A large parameter whose new value is an output is donated in OLD, and could be in NEW."""
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, "
        "entry_computation_layout={(f32[4194304]{0})->f32[4194304]{0}}\n\n"
        "ENTRY e {\n  p = f32[4194304]{0} parameter(0)\n  ROOT n = f32[4194304]{0} negate(p)\n}\n"
    )
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text(text)
    new.write_text(text.replace(" input_output_alias={ {}: (0, {}, may-alias) },", ""))
    assert run(["diff", str(old), str(new), "--fail-on", "error"]) == 0
    capsys.readouterr()
    assert run(["diff", str(old), str(new), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(finding["rule"], finding["severity"]) for finding in report["findings"]] == [("HI101", "warning")]
    assert run(["diff", str(old), str(new), "--fail-on", "warning"]) == 1
    assert run(["diff", str(new), str(old), "--fail-on", "info"]) == 0
    assert (report["facts"]["diff.same_program"], report["facts"]["diff.change_count"]) == (False, 1)
    assert [table["name"] for table in report["tables"]][:2] == ["facts", "changes"]
