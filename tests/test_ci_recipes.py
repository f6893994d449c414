"""The recipes of docs/ci.md: its tests pass, its commands run, its workflows are valid, its configuration holds."""

from __future__ import annotations

import json
import re
import shutil
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
from hlo_inspect.version import __version__
from tests.jenkins import parse_pipeline
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


def run_script(lines: list[str], project: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run the lines of a job as CI does, with scripts in the place of programs that only the service has."""
    variables = environment_with_command(project)
    for name, script in programs.items():
        program = project / "bin" / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    command = ["/bin/sh", "-e", "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)
    shutil.rmtree(project / "bin")
    return done


def test_the_workflow_of_github_is_valid_and_uses_the_action(project: Path) -> None:
    """The comment has the rows of the configured policy, as no argument goes with it."""
    workflow = yaml.safe_load(block("yaml", "# .github/workflows/hlo.yml"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads `on` as a bool
    validate(workflow, "github-workflows.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({**workflow, "jobs": {"hlo": {"steps": []}}}, "github-workflows.json")
    steps = workflow["jobs"]["hlo"]["steps"]
    (given,) = [step["with"] for step in steps if step.get("uses") == "./hlo-inspect"]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert given.keys() <= inputs.keys()
    assert re.findall(r"^\| `(\w+)` \| .* \| (.*?) ?\|$", TEXT, re.M)[-6:] == [
        (name, f"`{text}`" if (text := field.get("default", "")) else "") for name, field in inputs.items()
    ]
    comment = steps[-1]["run"].replace("${{ github.event.number }}", "7")
    done = run_script([comment], project, gh='echo "$@"')
    assert done.stdout == "pr comment 7 --body-file hlo-check.md --edit-last --create-if-none\n"
    assert (project / "hlo-check.md").read_text(encoding="utf-8").startswith("### jit\\_step")


def test_the_pipeline_of_gitlab_is_valid_and_its_commands_run(project: Path) -> None:
    pipeline = yaml.safe_load(block("yaml", "# .gitlab-ci.yml"))
    validate(pipeline, "gitlab-ci.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({**pipeline, "hlo": {**pipeline["hlo"], "script": 1}}, "gitlab-ci.json")
    done = run_script(pipeline["hlo"]["script"], project)
    assert done.returncode == 0, done.stderr
    reports = pipeline["hlo"]["artifacts"]["reports"]
    assert isinstance(json.loads((project / reports["codequality"]).read_text(encoding="utf-8")), list)
    assert (project / reports["junit"]).read_text(encoding="utf-8").startswith("<?xml")


def test_the_pipeline_of_jenkins_is_declarative_and_its_commands_run(project: Path) -> None:
    text = block("groovy", "// Jenkinsfile")
    pipeline = parse_pipeline(text)
    dump, hlo = pipeline.of("stages")[0].blocks
    assert [block.title for block in (dump, hlo)] == ["Dump", "HLO"]
    done = run_script(hlo.of("steps")[0].shell_lines(), project)
    assert done.returncode == 0, done.stderr
    for name in ("hlo.sarif", "hlo-junit.xml"):
        assert f"'{name}'" in text
        assert (project / name).is_file()
    assert json.loads((project / "hlo.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("            steps {\n                unstash", "            script {\n                unstash", "stage holds script"),
        ("    agent none\n", "", "pipeline lacks agent"),
        ("                always {", "                sometimes {", "post holds sometimes"),
        ("sh 'hlo-inspect check", "shell 'hlo-inspect check", "steps hold shell"),
        ("    }\n}\n", "    }\n", "a brace is open"),
        ("    }\n}\n", "    }\n}\n}\n", "a brace closes nothing"),
    ],
)
def test_a_wrong_pipeline_of_jenkins_is_refused(old: str, new: str, message: str) -> None:
    text = block("groovy", "// Jenkinsfile")
    assert old in text
    with pytest.raises(ValueError, match=message):
        parse_pipeline(text[: text.rindex(old)] + new + text[text.rindex(old) + len(old) :])


@pytest.mark.parametrize(("limit", "status"), [("0", 0), ("99", 1)])
def test_the_pipeline_of_buildkite_is_valid_and_its_commands_run(limit: str, status: int, project: Path) -> None:
    """The page of a failed check becomes an annotation."""
    pipeline = yaml.safe_load(block("yaml", "# .buildkite/pipeline.yml"))
    validate(pipeline, "buildkite.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({"steps": [{"commands": 1}]}, "buildkite.json")
    (project / "hlo" / "step.yaml").write_text(f"checks:\n  module.devices: '>= {limit}'\n", encoding="utf-8")
    agent = 'if [ "$1" = annotate ]; then cat > annotation.md; fi'
    done = run_script(pipeline["steps"][1]["commands"], project, buildkite_agent=agent)
    assert done.returncode == status, done.stderr
    assert (project / "annotation.md").is_file() == bool(status)


def test_the_jobs_use_the_image_of_this_version() -> None:
    assert set(re.findall(r"hlo-inspect:([\d.]+)", TEXT)) == {__version__}
    assert set(re.findall(r"hlo-inspect@v([\d.]+)", TEXT)) == {__version__}


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
