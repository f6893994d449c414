"""The configuration of a project: which file holds, what it sets, and errors with their places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlo_inspect.config_files import has_table
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
ADAMW = DATA / "cpu/adamw_step.after.txt"

POLICY = "checks:\n  collectives[kind=all-reduce, axis=data].runs: 1\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project whose configuration names the mesh, a policy and a threshold."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "train"\n\n[tool.hlo-inspect]\nmesh = "data=2,model=4"\n\n'
        '[tool.hlo-inspect.check]\npolicies = ["hlo/training.yaml"]\n\n'
        '[tool.hlo-inspect.lint]\nthresholds = { constant-collective = "7 MiB" }\n',
        encoding="utf-8",
    )
    (tmp_path / "hlo").mkdir()
    (tmp_path / "hlo" / "training.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    return tmp_path


def test_options_of_the_nearest_file_upwards_hold_and_the_command_line_goes_before_them(project: Path) -> None:
    """The mesh of the dump is 2x4 in this order; d0 is the name of an axis without one."""
    done = call_text("collectives", ADAMW, "--columns", "axis", "--format", "csv", folder=project / "src" / "deep")
    assert done.stdout.split() == ["axis", "data", "model"]
    done = call_text("collectives", ADAMW, "--mesh", "x=2,y=4", "--columns", "axis", "--format", "csv", folder=project)
    assert done.stdout.split() == ["axis", "x", "y"]


def test_check_reads_the_policies_of_the_configuration_unless_it_gets_checks(project: Path) -> None:
    done = call_text("check", ADAMW, folder=project / "src")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASSED 1 module, 1 check")
    done = call_text("check", ADAMW, "--assert", "params.count == 9", folder=project / "src")
    assert "axis=data" not in done.stdout


def test_thresholds_hold_for_the_findings_of_all_commands(project: Path) -> None:
    """Two gathers of a constant send 6 MiB each: the threshold is above."""
    from tests.report.ci_runs import GATHERS

    (project / "step.txt").write_text(GATHERS, encoding="utf-8")
    for command in ("lint", "summary", "collectives", "time"):
        silent = call_text(command, "step.txt", "--format", "json", folder=project)
        assert "HI210" not in silent.stdout, command
    (project / "pyproject.toml").unlink()
    assert "HI210" in call_text("summary", "step.txt", "--format", "json", folder=project).stdout


def test_its_own_file_goes_before_pyproject_and_config_before_both(project: Path) -> None:
    (project / "src" / "hlo-inspect.toml").write_text('mesh = "own=2,axis=4"\n', encoding="utf-8")
    (project / "other.toml").write_text('mesh = "a=2,b=4"\n', encoding="utf-8")
    arguments = ("collectives", ADAMW, "--columns", "axis", "--format", "csv")
    assert call_text(*arguments, folder=project / "src").stdout.split()[1:] == ["own", "axis"]
    done = call_text(*arguments, "--config", project / "other.toml", folder=project / "src")
    assert done.stdout.split()[1:] == ["a", "b"]


def test_show_config_prints_each_setting_with_its_place(project: Path) -> None:
    """In whichever order the two options stand."""
    (project / "other.toml").write_text('mesh = "a=2,b=4"\n', encoding="utf-8")
    shown = call_text("summary", "--show-config", folder=project / "src").stdout
    rows = [line.split("  ") for line in shown.splitlines()[1:]]
    assert [row[0].strip() for row in rows] == ["mesh", "check.policies", "lint.thresholds"]
    assert rows[0][-1].strip() == f"{project / 'pyproject.toml'}:5"
    assert "constant-collective = 7 MiB" in shown
    for arguments in (("--show-config", "--config", "other.toml"), ("--config", "other.toml", "--show-config")):
        assert "a=2,b=4" in call_text("check", *arguments, folder=project).stdout


def test_without_a_configuration_show_config_says_so(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "hlo-inspect-user"\n', encoding="utf-8")
    done = call_text("lint", "--show-config", folder=tmp_path)
    assert (done.returncode, done.stdout[:17]) == (0, "no configuration:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mash = "a=2"', ":1:1: unknown key 'mash'; "),
        ("jobs = 0", ":1:1: jobs is a whole number of 1 or more"),
        ('phases = "name"', ":1:1: 'name' is not one of graph, names; did you mean 'names'?"),
        ("mesh = 4", ":1:1: expected a value of kind text, found number"),
        ("mesh = ", ":1:"),
        ("[check]\npolicy = []", ":2:1: unknown key 'policy'"),
        ("[lint.thresholds]\nsmall-colectives = '1 MiB'", ":2:1: there is no rule 'small-colectives'; did you mean"),
        ("[lint.thresholds]\nsmall-collectives = '1 GFLOP'", ":2:1: small-collectives: "),
        ("[lint.thresholds]\nunused-parameter = '1 MiB'", "unused-parameter has no threshold"),
    ],
)
def test_a_wrong_configuration_is_an_error_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "hlo-inspect.toml").write_text(text + "\n", encoding="utf-8")
    done = call_text("summary", ADAMW, folder=tmp_path)
    assert done.returncode == 2
    assert f"hlo-inspect.toml{message}" in done.stderr or message in done.stderr
    assert done.stderr.count("hlo-inspect: ") == 1


def test_a_missing_file_of_the_configuration_is_named(project: Path) -> None:
    (project / "hlo" / "training.yaml").unlink()
    done = call_text("check", ADAMW, folder=project)
    assert done.returncode == 2
    assert "training.yaml: cannot be read" in done.stderr
    assert call_text("summary", ADAMW, "--config", "none.toml", folder=project).returncode == 2


SECRET = "root:$y$j9T$hash:20228"
CODE_OF_A_KEY = "tok_51HxQ"


@pytest.mark.parametrize("option", ["--profile", "--custom-calls", "--policy", "--baseline"])
@pytest.mark.parametrize("content", [f"{SECRET}:0:9:7::", f"PASSWORD={CODE_OF_A_KEY}", f"- {CODE_OF_A_KEY}", f'"{SECRET}": 1'])
def test_errors_in_a_file_that_is_no_configuration_keep_its_text(project: Path, option: str, content: str) -> None:
    (project / "secret.env").write_text(f"{content}\n", encoding="utf-8")
    command = {"--policy": "check", "--baseline": "lint"}.get(option, "list")
    done = call_text(command, ADAMW, option, "./secret.env", folder=project)
    assert (done.returncode, "secret.env" in done.stderr) == (2, True)
    assert SECRET not in done.stderr
    assert CODE_OF_A_KEY not in done.stderr


def test_values_of_a_configuration_are_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "hlo-inspect.toml").write_text(f'phases = "{CODE_OF_A_KEY}"\n', encoding="utf-8")
    done = call_text("list", ADAMW, folder=tmp_path)
    assert ":1:1: the value is not one of graph, names" in done.stderr
    assert CODE_OF_A_KEY not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"mesh = 1\nlint = {'[' * 1000}{']' * 1000}", ":2:1: the value is nested more than 20 levels deep"),
        (f"mesh = {'[' * 60}{']' * 60}", ":1:1: the value is nested more than 20 levels deep"),
        (f"# a comment\njobs = {'1' * 4301}", ":2:1: a number has too many digits"),
        ("jobs = 1e400", ":1:1: jobs is a whole number"),
        ('profile = ["h100-sxm", "tpu-v5e"]', "this command takes one profile"),
    ],
)
def test_what_toml_or_python_cannot_hold_is_wrong_usage(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "hlo-inspect.toml").write_text(text, encoding="utf-8")
    done = call_text("list", ADAMW, folder=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_blank_lines_of_a_pyproject_are_searched_once(tmp_path: Path) -> None:
    """They took time by their square: these would take an hour."""
    path = tmp_path / "pyproject.toml"
    path.write_text("\n" * 1_000_000 + " [ tool ]\n", encoding="utf-8")
    assert has_table(path)


def test_the_page_names_a_configuration_of_a_folder_above(project: Path) -> None:
    named = f"options of {project / 'pyproject.toml'}"
    for words in (["collectives"], ["collectives", "--format", "markdown"], ["report", "-q", "-o", "page.html"]):
        pages = []
        for folder in (project / "src", project):
            page = call_text(*words, ADAMW, folder=folder).stdout
            pages.append(page or (folder / "page.html").read_text(encoding="utf-8"))
        assert [named in page.replace("\\", "") for page in pages] == [True, False], words


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
def test_a_configuration_of_another_user_above_is_refused_unless_it_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, user = project / "pyproject.toml", os.getuid()
    if user == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
    refused = call_text("list", ADAMW, folder=project / "src")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{path}: belongs to another user: name it with --config if you trust it" in refused.stderr
    assert call_text("list", ADAMW, "--config", path, folder=project / "src").returncode == 0
    assert call_text("list", ADAMW, folder=project).returncode == 0
