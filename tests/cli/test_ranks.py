"""`ranks` on the command line: patterns, exit statuses, formats, and the verdict that comes first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from tests.compare.programs.jobs import FINAL, swapped, write_job


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a job whose rank 2 hangs."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder / "dumps", {(2, f"train{FINAL}"): swapped("psum.7", "pmax.7")})
    return folder


def test_patterns_and_directories_name_the_ranks(
    job: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job)
    for arguments in (["dumps/{rank}"], ["dumps/*/"], ["dumps"], [f"dumps/{rank}" for rank in (3, 2, 0, 1)]):
        assert run(["ranks", *arguments, "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["facts"] == {"ranks.count": 4, "ranks.modules": 6, "ranks.deviating": 1, "ranks.hangs": 1}
        assert [row[:4] for row in report["tables"][0]["rows"]] == [["jit_train", "2", "order", True]]


def test_a_folder_too_high_names_the_one_with_the_ranks(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ranks", str(job)]) == 3
    assert f"holds one folder, dumps, which holds the ranks; name that: '{job}/dumps'" in capsys.readouterr().err
    single = job.with_name("single")
    shutil.copytree(job / "dumps" / "0", single / "0")  # a job of one rank is none too high
    assert run(["ranks", str(single)]) == 0


@pytest.mark.parametrize("columns", ["80", "160"])
def test_the_verdict_comes_first(
    job: Path, columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["ranks", f"{job}/dumps/{{rank}}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    verdict = "4 ranks, 6 modules: rank 2 deviates in jit_train and hangs at pmax.207 (make_ranks.py:59)"
    assert " ".join(lines[:2]).startswith(verdict) if columns == "80" else lines[0] == verdict
    assert max(map(len, lines[2:])) <= int(columns)


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("ranks.hangs > 0", 1),
        ("ranks.deviating == 1", 1),
        ("ranks.count != 4", 0),
        ("ranks.hang > 0", 2),
        ("ranks.hangs > many", 2),
    ],
)
def test_conditions_decide_the_exit_status(job: Path, condition: str, status: int) -> None:
    assert run(["ranks", f"{job}/dumps/{{rank}}", "--fail-if", condition]) == status


def test_all_formats_have_the_rows(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("table", "json", "jsonl", "csv", "tsv", "markdown"):
        assert run(["ranks", f"{job}/dumps/{{rank}}", "--format", name]) == 0
        assert "pmax.207" in capsys.readouterr().out
    assert run(["ranks", f"{job}/dumps/{{rank}}", "--table", "rank_modules", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("module,ranks,programs,majority,deviating,verdict\njit_train,4,2,")


def test_columns_are_those_of_the_contract(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ranks", f"{job}/dumps/{{rank}}", "--format", "csv"]) == 0
    columns = "module,rank,verdict,hangs,instruction,majority_instruction,line,source,detail,path"
    assert capsys.readouterr().out.partition("\n")[0] == columns


def test_modules_are_chosen_by_name(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ranks", f"{job}/dumps/{{rank}}", "--module", "scale"]) == 0
    assert capsys.readouterr().out.startswith("4 ranks, 1 module: all ranks run the same programs")
    assert run(["ranks", f"{job}/dumps/{{rank}}", "--module", "nosuch"]) == 3
    assert "there are: jit_train, jit_mesh" in capsys.readouterr().err


def test_what_is_no_rank_is_said(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argument, message in (
        (f"{tmp_path}/{{rank}}", "no directory fits this pattern"),
        (f"{tmp_path}/none", "there is no such directory"),
        (f"{job}/dumps/0", "is the dump of one rank"),
        (__file__, "is a file"),
    ):
        assert run(["ranks", argument]) == 3
        assert message in capsys.readouterr().err
    assert run(["ranks", f"{job}/dumps/0", f"{job}/dumps/0"]) == 2
    assert "are both rank '0'" in capsys.readouterr().err


def test_a_rank_without_modules_is_exit_status_3_and_the_others_are_compared(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(job / "dumps", tmp_path / "dumps")
    (tmp_path / "dumps" / "4\x1b[31m").mkdir()
    assert run(["ranks", f"{tmp_path}/dumps"]) == 3
    output = capsys.readouterr()
    assert "rank 2 deviates in jit_train, and it is unknown whether it hangs" in output.out
    assert "is a directory without XLA dumps" in output.err
    assert "\x1b" not in output.out + output.err


def test_an_input_is_not_overwritten(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = (job / "dumps" / "1").glob(f"*jit_scale{FINAL}")
    assert run(["ranks", f"{job}/dumps/{{rank}}", "-o", str(text)]) == 2
    assert "is an input" in capsys.readouterr().err
