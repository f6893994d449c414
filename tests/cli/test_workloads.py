"""Workload files on the command line: commands that answer, those that say what the file is, checks, and other dialects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import call as run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/data/workloads"
SIMAI, ASTRA_SIM = FOLDER / "simai.txt", FOLDER / "astra_sim.txt"


@pytest.mark.parametrize("command", ["workload", "summary", "collectives"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_and_a_directory(command: str, jobs: str) -> None:
    reports = json.loads(run(command, FOLDER, SIMAI, "--format", "json", "-j", jobs).stdout)["reports"]
    fact = "collectives.executed_operand_bytes" if command == "collectives" else "workload.bytes"
    assert [report["facts"][fact] for report in reports] == [359, 3448, 3448]


def test_a_list_has_a_row_for_each() -> None:
    (table,) = json.loads(run("list", FOLDER, "--format", "json").stdout)["tables"]
    names = [column["name"] for column in table["columns"]]
    assert [(row[names.index("name")], row[names.index("collectives")]) for row in table["rows"]] == [
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", 11),
        ("HYBRID_DLRM", 6),
    ]


def test_a_command_that_has_no_answer_says_what_the_file_is() -> None:
    done = run("optimizer", SIMAI)
    assert done.returncode == 3
    assert b"is a workload file of a network simulator; `optimizer` does not read it" in done.stderr
    assert run("check", SIMAI, "--assert", "fusions.count == 0").returncode == 3


def test_what_is_no_workload() -> None:
    done = run("workload", ROOT / "tests/data/gpu")
    assert (done.returncode, b"is a directory without a file that holds" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("assertion", "status"),
    [
        ("workload.rows == 8", 0),
        ("workload.tp.bytes <= 1 KiB", 0),
        ("collectives.all-to-all.executed_count == 2", 0),
        ("collectives.all-to-all.count == 0", 1),
        ("workload.alltoal.bytes == 0", 2),
    ],
)
def test_checks(assertion: str, status: int) -> None:
    assert run("check", SIMAI, "--assert", assertion).returncode == status


def test_a_fact_of_another_kind_of_input_fails_a_check() -> None:
    done = run("check", SIMAI, "--assert", "workload.rows == 8", "--assert", "fusions.kind.kLoop == 0", "--format", "json")
    (table,) = [table for table in json.loads(done.stdout)["tables"] if table["name"] == "checks"]
    assert done.returncode == 1
    assert [row[:3] for row in table["rows"]] == [["fusions.kind.kLoop", "failed", None], ["workload.rows", "passed", 8]]


def test_check_refuses_a_truncated_workload_file() -> None:
    text = SIMAI.read_bytes()[:400]
    arguments = ("check", "-", "--assert", "workload.policy == HYBRID_TRANSFORMER_FWD_IN_BCKWD")
    refused = run(*arguments, given=text)
    assert (refused.returncode, b"is truncated" in refused.stderr) == (3, True)
    assert run(*arguments, "--allow-partial", given=text).returncode == 0


def test_the_same_dialect_gives_the_same_bytes(tmp_path: Path) -> None:
    assert run("workload", SIMAI, "--to", "simai").stdout == SIMAI.read_bytes()
    assert run("workload", "-", "--to", "astra-sim", given=ASTRA_SIM.read_bytes()).stdout == ASTRA_SIM.read_bytes()
    assert run("workload", SIMAI, "--to", "aicb", "-o", tmp_path / "out.txt").returncode == 0
    assert (tmp_path / "out.txt").read_bytes() == SIMAI.read_bytes()


def test_another_dialect_is_refused_where_something_is_lost() -> None:
    done = run("workload", SIMAI, "--to", "astra-sim")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot be written as astra-sim: pp: 2 (pipeline stages (PP)) has no place in the header" in done.stderr
    assert run("workload", SIMAI, ASTRA_SIM, "--to", "simai").returncode == 2


def test_alpha_and_beta_are_of_a_model() -> None:
    assert run("collectives", ROOT / "tests/data/cpu/adamw_step.after.txt", "--beta", "d0=1").returncode == 2
    shown = run(
        "collectives", ROOT / "tests/data/cpu/adamw_step.after.txt", "--cost-model", "alpa-mesh", "--table", "alpa_mesh"
    )
    assert b"39.41" in shown.stdout
