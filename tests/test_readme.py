"""Promises of the README: its length, the commands of CI, every command and format; and the script of the page on CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.report.formats import FORMATS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def environment_with_command(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `hlo-inspect` is this checkout's."""
    script = tmp_path / "bin" / "hlo-inspect"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hlo_inspect "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}


def _guard(tmp_path: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    match = re.search(r"```bash\n(# guard\.sh(?s:.*?))```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"))
    assert match is not None
    assert match[1].count("\n") <= 10
    script = tmp_path / "guard.sh"
    script.write_text(match[1])
    command = ["bash", str(script), str(directory)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment_with_command(tmp_path), check=False
    )


def test_the_guard_script_fails_on_a_forbidden_collective(tmp_path: Path) -> None:
    directory = tmp_path / "dump"
    directory.mkdir()
    text = (ROOT / "tests" / "data" / "cpu" / "collectives.after.txt").read_text()
    (directory / "module_0001.jit_step.cpu_after_optimizations.txt").write_text(text)
    result = _guard(tmp_path, directory)
    assert (result.returncode, result.stderr) == (1, "")
    report = (tmp_path / "hlo-check.md").read_text(encoding="utf-8")
    assert re.search(r"collectives\.all-to-all\.count \| failed \| 1 ", report.replace("\\", ""))


def test_the_guard_script_passes_a_good_dump(tmp_path: Path) -> None:
    result = _guard(tmp_path, ROOT / "tests" / "data" / "xla_dump_to")
    assert (result.returncode, result.stderr) == (0, "")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^    (pip install .*)$", README, re.MULTILINE)
    assert len(commands) == 2
    assert "pytest" in commands[1]
    assert "README.md" in (ROOT / ".ci" / "run").read_text()


def test_the_readme_names_each_command_and_format() -> None:
    for command in COMMANDS:
        assert f"`{command}" in README or f"hlo-inspect {command}" in README, command
    options = (ROOT / "docs" / "commands" / "index.md").read_text(encoding="utf-8")
    (formats,) = re.findall(r"^\* `--format \[([^]]*)\]`", options, re.MULTILINE)
    assert formats.split("|") == list(FORMATS)


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 190


def test_pre_commit_runs_the_first_commands_of_ci() -> None:
    hooks = re.findall(r"entry: ([^,]*),", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    start = script.index(hooks[0])
    assert script[start : start + len(hooks)] == hooks
    assert set(script[start + len(hooks) :]).isdisjoint(hooks)


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:hlo_inspect|tests|configs|analysis|report)/[\w./-]+)`", text))
    paths = {name for name in named if not re.search(r"[A-Z]{4}", name)}
    assert len(paths) > 15
    assert {name for name in paths if not any((folder / name).exists() for folder in (ROOT, ROOT / "hlo_inspect"))} == set()
