"""The recipes of docs/ci.md: its tests pass, its commands run, its workflows are valid, its configuration holds."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from check_jsonschema import builtin_schemas

from hlo_inspect.checks.config import load_config
from hlo_inspect.checks.policy import read_policy
from tests.calling import call_text
from tests.test_readme import environment_with_command

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
SCHEMAS = Path(str(builtin_schemas.__file__)).parent / "vendor"
DUMP = ROOT / "tests" / "data" / "cpu" / "adamw_step.after.txt"


def block(language: str, start: str) -> str:
    """Return the code of the page in a language that begins with a text."""
    (code,) = [code for code in re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S) if code.startswith(start)]
    assert isinstance(code, str)
    return code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the page's configuration and a dump directory of a compiled step."""
    (tmp_path / "pyproject.toml").write_text(block("toml", "[tool.hlo-inspect]"), encoding="utf-8")
    (tmp_path / "hlo").mkdir()
    (tmp_path / "hlo" / "step.yaml").write_text(block("yaml", "# hlo/step.yaml"), encoding="utf-8")
    (tmp_path / "dumps").mkdir()
    name = "module_0001.jit_step.cpu_after_optimizations.txt"
    (tmp_path / "dumps" / name).write_text(DUMP.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def commands(steps: list[str]) -> list[list[str]]:
    """Return the commands of hlo-inspect in the lines of a job."""
    lines = [line.strip().removesuffix(" || true") for step in steps for line in step.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("hlo-inspect ")]


def validate(document: Any, schema: str) -> None:
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text(encoding="utf-8")))


def test_the_tests_pass(tmp_path: Path) -> None:
    """The golden file is written, as the comment says."""
    (tmp_path / "test_step.py").write_text(block("python", "# test_step.py"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hlo-update", "--rootdir", ".", "test_step.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert (tmp_path / "step.hlo").read_text(encoding="utf-8").startswith("HloModule jit_step")


def test_the_configuration_and_the_policy_are_read(project: Path) -> None:
    config = load_config(str(project / "pyproject.toml"))
    assert config.defaults == {"mesh": "data=2,model=4", "profile": ("h100-sxm",)}
    assert [entry.reason for entry in config.lint.ignores] == ["the embedding stays in f32"]
    (policy,) = config.policies
    assert len(read_policy(policy).assertions) == 4


def test_the_workflow_of_github_is_valid_and_its_commands_run(project: Path) -> None:
    workflow = yaml.safe_load(block("yaml", "# .github/workflows/hlo.yml"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads `on` as a bool
    validate(workflow, "github-workflows.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({**workflow, "jobs": {"hlo": {"steps": []}}}, "github-workflows.json")
    run = commands([step.get("run", "") for step in workflow["jobs"]["hlo"]["steps"]])
    assert [command[0] for command in run] == ["check", "lint", "check"]
    for command in run:
        assert call_text(*command, folder=project).returncode == 0, command
    uploaded = next(step["with"]["sarif_file"] for step in workflow["jobs"]["hlo"]["steps"] if "sarif" in step.get("uses", ""))
    assert json.loads((project / uploaded).read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert (project / "hlo-check.md").read_text(encoding="utf-8").startswith("### jit\\_step")


def test_the_job_of_gitlab_is_valid_and_its_commands_run(project: Path) -> None:
    pipeline = yaml.safe_load(block("yaml", "# .gitlab-ci.yml"))
    validate(pipeline, "gitlab-ci.json")
    for command in commands(pipeline["hlo"]["script"]):
        assert call_text(*command, folder=project).returncode == 0, command
    reports = pipeline["hlo"]["artifacts"]["reports"]
    assert isinstance(json.loads((project / reports["codequality"]).read_text(encoding="utf-8")), list)
    assert (project / reports["junit"]).read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(("old", "status"), [("adamw_step", 0), ("sgd_unused", 1)])
def test_the_nightly_script_fails_on_what_it_names(old: str, status: int, project: Path) -> None:
    """The other program has another optimizer."""
    script = project / "nightly.sh"
    script.write_text(block("bash", "# nightly.sh"), encoding="utf-8")
    before = ROOT / "tests" / "data" / "cpu" / f"{old}.after.txt"
    command = ["bash", str(script), str(before), str(DUMP)]
    (project / "pyproject.toml").unlink()
    done = subprocess.run(command, cwd=project, env=environment_with_command(project), capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    assert (project / "hlo-diff.md").is_file()


def test_the_readme_has_the_line_of_pytest_and_the_workflow() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'hlo(step, *arguments).expect("collectives.all-gather.executed_count == 0"' in readme
    assert "hlo-inspect check dumps --format github" in readme
    assert "docs/ci.md" in readme
