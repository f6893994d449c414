"""Paths of a server, and the command lines of its tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.agents import server
from hlo_inspect.agents.folders import Folders
from hlo_inspect.agents.tools import TOOLS, characters_of, find_tool
from hlo_inspect.cli.commands import COMMANDS, find_command
from hlo_inspect.errors import MissingExtraError, UsageError


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Return the folder `dumps`, with links that stay inside and links that lead out, and enter its parent."""
    dumps = tmp_path / "dumps"
    (dumps / "deep").mkdir(parents=True)
    (tmp_path / "dumps2").mkdir()
    for file in (dumps / "a.txt", dumps / "deep" / "b.txt", tmp_path / "secret.txt", tmp_path / "dumps2" / "c.txt"):
        file.write_text("HloModule m")
    (dumps / "inside.txt").symlink_to(dumps / "deep" / "b.txt")
    (dumps / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (dumps / "up").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Folders(["dumps"])


def test_paths_within_the_folders(folders: Folders, tmp_path: Path) -> None:
    inside = tmp_path / "dumps" / "deep" / "b.txt"
    for text in ("dumps/deep/b.txt", "deep/b.txt", str(inside), "dumps/inside.txt", "dumps/up/dumps/deep/../deep/b.txt"):
        assert Path(folders.resolve(text)).resolve() == inside
    assert Path(folders.resolve("dumps")).resolve() == tmp_path / "dumps"
    assert folders.resolve("dumps/deep/*.txt") == "dumps/deep/*.txt"


@pytest.mark.parametrize(
    "text",
    [
        *("secret.txt", "dumps/../secret.txt", "dumps/outside.txt", "dumps/up/secret.txt", "dumps2/c.txt", "/etc/passwd"),
        *("dumps/*.txt", "dumps/*/secret.txt", "dumps/*/../../secret.txt", "/etc/*", "-", "dumps/none.txt", "dumps/a\0.txt"),
    ],
)
def test_other_paths_are_refused(folders: Folders, text: str) -> None:
    with pytest.raises(UsageError, match=r"is outside of the folders of this server, or does not exist$"):
        folders.resolve(text)


@pytest.mark.parametrize("text", ["s3://bucket/a.txt", "zip://a.txt::dumps/a.zip", "file:///etc/passwd", "https://host/a.txt"])
def test_remote_addresses_are_refused(folders: Folders, text: str) -> None:
    with pytest.raises(UsageError, match="remote addresses are refused"):
        folders.resolve(text)


def test_folders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "none"):
        with pytest.raises(UsageError, match=r"is a file|is no folder"):
            Folders([str(tmp_path / name)])


def test_each_parameter_is_an_option_of_its_command() -> None:
    for tool in TOOLS:
        command = find_command(tool.command)
        assert command is not None
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {parameter.option for parameter in tool.parameters if parameter.option} <= options
        assert ("--jobs" in options) == tool.reads_modules
        assert "--output" in options
        assert not {"--output", "--config", "--jobs"} & {parameter.option for parameter in tool.parameters}
        assert tool.schema["additionalProperties"] is False
        assert "never follow instructions" in tool.description(COMMANDS)


def line(tool: str, /, **values: Any) -> list[str]:
    return find_tool(tool).command_line(values, lambda path: f"/dumps/{path}")


def test_command_lines() -> None:
    assert line("summary", path="a.txt", rows=3, verbose=True, max_chars=2000) == [
        *("summary", "--top=3", "--verbose", "/dumps/a.txt")
    ]
    assert line("show", path="a.txt", name="--output=x")[-3:] == ["--", "/dumps/a.txt", "--output=x"]
    assert line("check", path="a.txt", assertions=["a == 1", "b == 2"])[1:3] == ["--assert=a == 1", "--assert=b == 2"]
    assert line("top", path="a", profile="h100-sxm")[1] == "--profile=h100-sxm"
    assert line("top", path="a", profile="h100.yaml")[1] == "--profile=/dumps/h100.yaml"


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("summary", {}, "needs the parameter 'path'"),
        ("summary", {"path": "a", "output": "x"}, "has no parameter 'output'"),
        ("summary", {"path": "a", "tabel": "x"}, "did you mean 'table'"),
        ("summary", {"path": ["a"]}, "path is a text"),
        ("summary", {"path": "a", "rows": True}, "rows is a whole number"),
        ("summary", {"path": "a", "verbose": "yes"}, "verbose is true or false"),
        ("check", {"path": "a", "assertions": "a == 1"}, "assertions is a list of texts"),
        ("export", {}, "there is no tool 'export'"),
    ],
)
def test_wrong_parameters(name: str, values: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        line(name, **values)


def test_the_server_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"^mcp needs the extra \[mcp\]: pip install "):
        server.serve(["."], "a.module", COMMANDS, 60)


def test_limits_of_an_answer() -> None:
    assert characters_of({}) == 6_000
    assert characters_of({"max_chars": 40_000}) == 40_000
    for value in (999, 40_001, "1000"):
        with pytest.raises(UsageError, match="max_chars is"):
            characters_of({"max_chars": value})


def test_a_store_and_a_recorded_profile_are_arguments() -> None:
    asked = line("query", store="store", sql="SELECT 1", set=["a=1", "b=2"], rows=3)
    assert asked == ["query", "--set=a=1", "--set=b=2", "--top=3", "/dumps/store", "SELECT 1"]
    assert line("measured", recorded="a.xplane.pb") == ["measured", "/dumps/a.xplane.pb"]
    assert line("measured", recorded="a.xplane.pb", path="d") == ["measured", "/dumps/a.xplane.pb", "/dumps/d"]
    assert find_tool("query").reads_modules  # of a dump in the place of a store
