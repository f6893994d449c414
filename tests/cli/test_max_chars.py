"""--max-chars on the command line: the last line's command, files, several modules, and commands without reports."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.calling import call_text

ROOT = Path(__file__).parents[2]
FSDP = "tests/data/cpu/scan_fsdp.after.txt"


def test_the_command_of_the_last_line_shows_all() -> None:
    line = ("collectives", FSDP, "--profile", "h100-sxm", "-n", "3")
    cut = call_text(*line, "--max-chars", "1500", folder=ROOT)
    assert (cut.returncode, cut.stderr) == (0, "")
    assert len(cut.stdout) <= 1500
    command = re.search(r" All: (hlo-inspect .*?)\. One table: add (--table \w+)$", cut.stdout.splitlines()[-1])
    assert command is not None
    whole = call_text(*shlex.split(command[1])[1:], folder=ROOT)
    assert whole.stdout == call_text(*line, folder=ROOT).stdout
    table = call_text(*shlex.split(f"{command[1]} {command[2]}")[1:], folder=ROOT)
    assert table.returncode == 0
    assert len(table.stdout) < len(whole.stdout)
    assert call_text(*line, f"--max-chars={len(whole.stdout)}", folder=ROOT).stdout == whole.stdout


def test_modules_of_a_directory() -> None:
    cut = call_text("params", "tests/data/gpu", "--format", "jsonl", "--max-chars", "4000", folder=ROOT)
    *reports, last = map(json.loads, cut.stdout.splitlines())
    left_out = re.search(r"(\d) modules\. All: hlo-inspect params tests/data/gpu --format jsonl\.", last["left_out"])
    assert left_out is not None
    assert len(reports) + int(left_out[1]) == 6


def test_a_limit_that_is_too_small_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before")
    done = call_text("summary", FSDP, "--max-chars", "60", "-o", file, folder=ROOT)
    assert done.returncode == 2
    assert re.fullmatch(r"hlo-inspect: --max-chars 60 is too small: the shortest answer has \d+ characters\n", done.stderr)
    assert file.read_text() == "before"
    assert call_text("summary", FSDP, "--max-chars", "0", folder=ROOT).returncode == 2


def test_a_cut_report_is_no_saved_report(tmp_path: Path) -> None:
    for form in ("json", "jsonl"):
        saved = tmp_path / f"report.{form}"
        call_text("cost", FSDP, "--format", form, "--max-chars", "3000", "-o", saved, folder=ROOT)
        done = call_text("diff", saved, FSDP, folder=ROOT)
        assert done.returncode == 3
        assert "is a report that --max-chars cut; write it again without" in done.stderr


def test_normalize_and_workload() -> None:
    whole = call_text("normalize", FSDP, folder=ROOT).stdout
    cut = call_text("normalize", FSDP, "--max-chars", "2000", folder=ROOT).stdout
    assert len(cut) <= 2000
    *lines, last = cut.splitlines(keepends=True)
    assert whole.startswith("".join(lines))
    assert last == f"// left out: {whole.count(chr(10)) - len(lines)} lines. All: hlo-inspect normalize {FSDP}\n"
    done = call_text("workload", "w.txt", "--to", "simai", "--max-chars", "2000")
    assert (done.returncode, "have no effect" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["ol\nd.txt", "a b.txt"])
def test_a_path_of_the_last_line_can_be_pasted(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text((ROOT / FSDP).read_text())
    last = call_text("top", name, "--max-chars", "700", folder=tmp_path).stdout.splitlines()[-1]
    assert f"'{name}'".replace("\n", "\\n") in last
