"""The SKILL.md: its front matter, and each of its command lines on dumps of the tests."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import yaml

from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.cli.commands.skill import skill_text
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
FILES = {
    "dump.txt": "cpu/scan_fsdp.after.txt",
    "old.txt": "memory/gpu_scan.hlo",
    "new.txt": "memory/gpu_scan_remat.hlo",
    "dumps": "recompiles/server",
    "step.mlir": "stablehlo/step.mlir",
}
"""Names of the skill, and the dumps of the tests that stand for them."""

TEXT = skill_text()
LINES = re.findall(r"^    (hlo-inspect .*)$", TEXT, re.MULTILINE)


def test_every_command_line_answers(tmp_path: Path) -> None:
    for name, source in FILES.items():
        copy = shutil.copytree if (DATA / source).is_dir() else shutil.copy
        copy(DATA / source, tmp_path / name)
    assert len(LINES) > 15
    for line in LINES:
        _, *arguments = shlex.split(line)
        done = call_text(*arguments, folder=tmp_path)
        assert (line, done.returncode, done.stderr) == (line, 0, "")
        assert done.stdout.count("\n") > 2, line
        if "--max-chars" in arguments:
            assert len(done.stdout) <= 3000, line


def test_the_front_matter_names_and_describes_it() -> None:
    _, front, body = TEXT.split("---\n", 2)
    matter = yaml.safe_load(front)
    assert matter.keys() == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", matter["name"])
    assert 100 < len(matter["description"]) <= 1024
    assert body.startswith("\n# hlo-inspect\n")


def test_nine_questions_have_commands() -> None:
    section = TEXT.partition("## Which command")[2].partition("## How to read")[0]
    questions = [part for part in section.split("\n\n") if "?" in part and not part.startswith("    ")]
    assert len(questions) == 9
    assert {shlex.split(line)[1] for line in LINES} <= COMMANDS.keys()


def test_the_command_prints_it(tmp_path: Path) -> None:
    assert call_text("skill").stdout == TEXT
    assert call_text("skill", "-o", tmp_path / "SKILL.md").stdout == ""
    assert (tmp_path / "SKILL.md").read_text(encoding="utf-8") == TEXT
    cut = call_text("skill", "--max-chars", "500").stdout
    assert len(cut) <= 500
    assert cut.endswith("lines. All: hlo-inspect skill\n")
