"""The action, the image and the recipe of conda. Their steps run as plain shell: no test needs a service or Docker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hlo_inspect.version import __version__
from tests.test_ci_recipes import DUMP, ROOT, validate

UNUSED = DUMP.with_name("sgd_unused.after.txt")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = ROOT / "conda" / "recipe.yaml"


OFFLINE = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_COMPILE": "1",
    "PIP_NO_BUILD_ISOLATION": "false",
    "HLO_INSPECT_NATIVE": "0",
    "PYTHONPATH": sysconfig.get_path("purelib"),
}
"""Variables with which pip installs the program alone, in a second. What builds it is in the environment of the tests."""


def lend_packages(environment: Path) -> None:
    """Let an environment import the packages of this one, after its own."""
    (folder,) = environment.glob("lib/python*/site-packages")
    (folder / "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")


# The action -----------------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """A job of GitHub: its folder, and the files in which steps leave variables."""

    folder: Path

    def run(self, step: str, inputs: Mapping[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a step of the action with its inputs, as a runner does."""
        (script,) = [field for field in ACTION["runs"]["steps"] if field["name"] == step]
        values = {name: inputs.get(name, field.get("default", "")) for name, field in ACTION["inputs"].items()}
        given = {name: _fill_in(text, values) for name, text in script["env"].items()}
        paths = (self.folder / "path").read_text(encoding="utf-8").split() if (self.folder / "path").exists() else []
        files = {"GITHUB_OUTPUT": self.folder / "output", "GITHUB_PATH": self.folder / "path"}
        runner = {"RUNNER_TEMP": str(self.folder / "temp"), "GITHUB_ACTION_PATH": str(ROOT)}
        files_of_job = {name: str(path) for name, path in files.items()}
        environment = {**os.environ, **runner, **files_of_job, **given, **variables}
        environment["PATH"] = os.pathsep.join([*reversed(paths), str(Path(sys.executable).parent), os.environ["PATH"]])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script["run"]]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def output(self) -> dict[str, str]:
        """Return the outputs that steps left since the last call."""
        file = self.folder / "output"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        file.unlink(missing_ok=True)
        return dict(line.split("=", 1) for line in text.splitlines())


def _fill_in(text: str, inputs: Mapping[str, str]) -> str:
    """Return an expression of the action with its inputs."""
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Return a job in which the action is installed, with a dump directory."""
    job = Job(tmp_path_factory.mktemp("job"))
    (job.folder / "dumps").mkdir()
    shutil.copy(UNUSED, job.folder / "dumps" / "module_0001.jit_step.cpu_after_optimizations.txt")
    done = job.run("Install", {}, **OFFLINE)
    assert done.returncode == 0, done.stderr
    lend_packages(job.folder / "temp" / "hlo-inspect")
    return job


def test_the_action_is_valid() -> None:
    """Scripts take inputs from variables: an expression inside a script would run what stands in the input."""
    validate(ACTION, "github-actions.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({**ACTION, "runs": {"using": "composite"}}, "github-actions.json")
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]


def test_the_action_installs_the_command_alone(job: Job) -> None:
    (folder,) = (job.folder / "path").read_text(encoding="utf-8").split()
    assert [path.name for path in Path(folder).iterdir()] == ["hlo-inspect"]


@pytest.mark.parametrize(
    ("inputs", "status", "annotation"),
    [
        ({"arguments": "--assert 'params.unused_count == 1'"}, 0, ""),
        ({"command": "lint", "arguments": "--fail-on error"}, 0, "::notice"),
        ({"arguments": "--assert 'collectives.count == 5' --quiet"}, 1, "::error"),
    ],
)
def test_the_action_annotates_and_writes_sarif(inputs: dict[str, str], status: int, annotation: str, job: Job) -> None:
    done = job.run("Run", {"dumps": "dumps", **inputs})
    assert done.returncode == status, done.stderr
    assert annotation in done.stdout
    file = job.folder / job.output()["sarif"]
    (run,) = json.loads(file.read_text(encoding="utf-8"))["runs"]
    assert any(result["level"] == "error" for result in run["results"]) == (status == 1)
    file.unlink()


@pytest.mark.parametrize(
    ("inputs", "status", "message"),
    [
        (
            {"dumps": "dumps", "command": "check; touch ran"},
            2,
            "::error::the input command is check or lint",
        ),
        ({"dumps": "absent", "command": "lint"}, 3, "absent"),
        ({"dumps": "$(touch ran)", "command": "lint", "arguments": "'`touch ran`'"}, 3, "`touch ran`"),
    ],
)
def test_the_action_evaluates_no_input(inputs: dict[str, str], status: int, message: str, job: Job) -> None:
    (job.folder / "hlo.sarif").write_text("of an earlier step", encoding="utf-8")
    done = job.run("Run", inputs)
    assert done.returncode == status
    assert message in done.stdout + done.stderr
    assert job.output() == {}
    assert not (job.folder / "ran").exists()


# The image ------------------------------------------------------------------------------------------------------------------


def _stages() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]
    starts = [index for index, (word, _) in enumerate(instructions) if word == "FROM"]
    return [instructions[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def test_the_commands_of_the_image_run(tmp_path: Path) -> None:
    """Each stage runs in a folder that stands for its file system; the second one takes from the first what it copies."""
    build, image = _stages()
    source, program = tmp_path / "source", tmp_path / "opt" / "hlo-inspect"
    source.mkdir()
    clean = {**os.environ, **OFFLINE, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for word, rest in build:
        if word == "COPY":
            for name in rest.split()[:-1]:
                target = source / name if (ROOT / name).is_dir() else source
                (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
        elif word == "RUN":
            command = rest.replace("/opt/hlo-inspect", str(program))
            subprocess.run(["/bin/sh", "-c", command], cwd=source, env={**clean, "EXTRAS": ""}, check=True, capture_output=True)
    lend_packages(program)
    settings = dict(image[1:])
    assert settings["COPY"] == "--from=build /opt/hlo-inspect /opt/hlo-inspect"
    variables = dict(word.split("=", 1) for word in settings["ENV"].replace("/opt/hlo-inspect", str(program)).split())
    variables["PATH"] = variables["PATH"].replace("$PATH", "/usr/bin:/bin")
    entry = [f"{program}/bin/{json.loads(settings['ENTRYPOINT'])[0]}"]
    (tmp_path / "work").mkdir()

    def run(*arguments: str) -> str:
        command = [*entry, *arguments]
        return subprocess.run(command, cwd=tmp_path / "work", env=variables, check=True, capture_output=True, text=True).stdout

    assert run(*json.loads(settings["CMD"])).startswith("Usage: hlo-inspect")
    assert "optimizer.name,adamw" in run("summary", str(DUMP), "--format", "csv")
    assert f"hlo-inspect {__version__}" in run("--version").replace(", version", "")


def test_the_image_has_two_stages_and_no_root() -> None:
    build, image = _stages()
    assert build[0][1].endswith(" AS build")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", dict(image)["USER"])
    assert "RUN" not in dict(image)


def test_the_image_has_what_the_wheel_is_made_of() -> None:
    """The first stage copies all that .dockerignore keeps."""
    copied = {name for word, rest in _stages()[0] if word == "COPY" for name in rest.split()[:-1]}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line.startswith("!")}
    assert copied == kept
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"]} <= copied


@pytest.mark.extras("hadolint")
def test_hadolint_accepts_the_image() -> None:
    done = subprocess.run(["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# The recipe of conda --------------------------------------------------------------------------------------------------------


@pytest.mark.extras("rattler_build")
def test_rattler_build_renders_the_recipe(tmp_path: Path) -> None:
    """Its parser refuses fields that recipes do not have."""
    import rattler_build

    (variant,) = rattler_build.Stage0Recipe.from_file(RECIPE).render(rattler_build.VariantConfig())
    recipe = variant.recipe.to_dict()
    assert recipe["package"] == {"name": PROJECT["project"]["name"], "version": __version__}
    assert recipe["about"]["license"] == PROJECT["project"]["license"]
    wrong = tmp_path / "recipe.yaml"
    wrong.write_text(RECIPE.read_text(encoding="utf-8").replace("license_file", "licence_file"), encoding="utf-8")
    with pytest.raises(rattler_build.RattlerBuildError, match="licence_file"):
        rattler_build.Stage0Recipe.from_file(wrong)


def test_the_recipe_has_the_dependencies_of_the_wheel() -> None:
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    project = PROJECT["project"]

    def names(requirements: list[str]) -> set[str]:
        return {requirement.replace(" ", "") for requirement in requirements}

    assert recipe["context"]["version"] == __version__
    python = "python" + project["requires-python"]
    assert names(recipe["requirements"]["run"]) == {python, *project["dependencies"]}
    assert names(recipe["requirements"]["host"]) == {python, "pip", *PROJECT["build-system"]["requires"]}
    assert recipe["build"]["script"].startswith("${{ PYTHON }} -m pip install . ")
