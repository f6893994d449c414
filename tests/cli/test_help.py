"""The help: commands in groups, the options of a command, those that commands share, and `help` and `rules` as spellings."""

from __future__ import annotations

import re

import click
import pytest

from hlo_inspect.cli.commands import COMMANDS, GROUPS, find_command
from hlo_inspect.cli.options import OWN_OPTIONS, SectionedCommand
from tests.calling import call_text


def test_commands_are_listed_by_group_one_line_each() -> None:
    page = call_text("--help").stdout
    sections = re.findall(r"^(\w+):$", page, re.MULTILINE)
    assert sections == ["Options", "Begin", "Ask", "Compare", "CI", "Fleets", "Other"]
    assert list(GROUPS["Begin"]) == ["summary", "report", "lint"]
    for name, line in COMMANDS.items():
        assert f"  {name:<12}  {line}\n" in page
    assert all(len(line) <= 80 for line in page.splitlines())


def test_a_command_describes_its_own_options_and_names_shared_ones() -> None:
    page = call_text("check", "--help").stdout
    assert "--policy FILE" in page
    assert "Name the mesh axes" not in page
    assert re.search(r"^  Program and hardware  --mesh --phases ", page, re.MULTILINE)
    assert "sarif" in page  # formats that only this command has
    assert re.search(r"^  Output  +-o --max-chars ", page, re.MULTILINE)
    assert re.search(r"^  Output  +--format -o ", call_text("collectives", "--help").stdout, re.MULTILINE)


def test_the_shared_options_stand_on_one_page() -> None:
    page = call_text("help", "options").stdout
    assert re.findall(r"^(\w.*):$", page, re.MULTILINE) == [
        "Tables",
        "Output",
        "Input",
        "Program and hardware",
        "Configuration",
    ]
    assert "Name the mesh axes with their sizes" in page
    assert "--quick" not in page


def test_each_shared_option_of_a_command_is_on_that_page() -> None:
    page = call_text("help", "options").stdout
    for name in COMMANDS:
        command = find_command(name)
        assert isinstance(command, SectionedCommand)
        sections = command.options_by_section(click.Context(command))
        for section, options in sections.items():
            for option in options if section != OWN_OPTIONS else ():
                assert re.search(rf"^  .*{re.escape(max(option.opts, key=len))}\b", page, re.MULTILINE), (name, option.opts)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("help",), ("--help",)),
        (("help", "top"), ("top", "--help")),
        (("help", "parameters"), ("params", "--help")),
        (("rules", "HI506"), ("rule", "HI506")),
        (("rules", "unused-parameter"), ("rule", "unused-parameter")),
    ],
)
def test_other_spellings(words: tuple[str, ...], same: tuple[str, ...]) -> None:
    assert call_text(*words).stdout == call_text(*same).stdout != ""


def test_help_on_nothing_has_the_nearest_name() -> None:
    refused = call_text("help", "colectives")
    assert refused.returncode == 2
    assert "no command 'colectives'" in refused.stderr
    assert "collectives" in refused.stderr.partition("colectives")[2]
