"""Workflow commands of GitHub, read back as the runner reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.report.ci_runs import FAILING, GATHERS, HOLDING, checked, linted, rendered


class Command(NamedTuple):
    """A workflow command."""

    kind: str
    properties: dict[str, str]
    message: str


def read(text: str) -> list[Command]:
    """Read the output of the format "github"; each line has to be a command."""
    commands = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice)(?: ([^:]*))?::(.*)", line)
        assert match is not None, line
        pairs = (pair.split("=", 1) for pair in (match[2] or "").split(",") if pair)
        properties = {name: unescape(value.replace("%3A", ":").replace("%2C", ",")) for name, value in pairs}
        commands.append(Command(match[1], properties, unescape(match[3])))
    return commands


def unescape(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def test_a_failed_check_is_an_error_at_its_line_of_python(tmp_path: Path) -> None:
    (tmp_path / "programs.py").touch()
    assert read(checked("github", FAILING, HOLDING, folder=tmp_path)) == [
        Command(
            "error",
            {"file": "programs.py", "line": "66", "title": "HI092 failed-check"},
            f"jit_step: {FAILING.removesuffix(' == 0')} is 1, expected == 0",
        )
    ]


def test_without_a_file_of_the_repository_there_is_no_file(tmp_path: Path) -> None:
    commands = read(linted("github", GATHERS, tmp_path))
    assert [(command.kind, command.properties) for command in commands] == [
        ("warning", {"title": "HI210 constant-collective"})
    ] * 2


def test_nothing_is_printed_if_all_holds() -> None:
    assert checked("github", HOLDING) == ""


def test_a_text_of_a_dump_begins_no_command(tmp_path: Path) -> None:
    """Percent signs, colons and commas come back, and no line begins with what the dump holds."""
    (command,) = read(rendered("github", "100 %0A, a\n::error::b\r::error ::c", module="m\n::error::x"))
    assert command.kind == "warning"
    assert command.message == r"m\n::error::x: 100 %0A, a\n::error::b\r::error ::c"


def test_the_last_line_counts_what_github_does_not_show(tmp_path: Path) -> None:
    """Fourteen gathers of constants: GitHub shows ten warnings."""
    gather = next(line for line in GATHERS.splitlines() if line.startswith("  g = "))
    more = "\n".join(gather.replace("  g =", f"  g{number} =") for number in range(12))
    commands = read(linted("github", GATHERS.replace(gather, f"{gather}\n{more}"), tmp_path))
    assert [command.kind for command in commands] == ["warning"] * 14 + ["notice"]
    assert "4 more are in the log" in commands[-1].message
