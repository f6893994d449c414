"""The command line in bare environments: optimized, with warnings as errors, without a home, in a read-only directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DUMP = ROOT / "tests/data/cpu/adamw_step.after.txt"
VERSIONS = ("3.12", "3.13", "3.14")


def summary(python: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `summary` of a dump in a folder with this environment alone; warnings are errors."""
    command = [python, "-W", "error", "-m", "hlo_inspect", "summary", str(DUMP), "--format", "csv"]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_a_bare_environment(tmp_path: Path) -> None:
    """No HOME, a directory that cannot be written, and docstrings and assertions left out."""
    tmp_path.chmod(0o555)
    done = summary(sys.executable, tmp_path, PYTHONOPTIMIZE="2")
    tmp_path.chmod(0o755)
    assert "\noptimizer.name,adamw\n" in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.extras
@pytest.mark.parametrize("version", VERSIONS)
def test_another_python(tmp_path: Path, version: str) -> None:
    """Such a Python has to be installed with the project's dependencies."""
    python = shutil.which(f"python{version}")
    needed = "import click, numpy, rich, yaml"
    if python is None or subprocess.run([python, "-c", needed], capture_output=True, check=False).returncode:
        pytest.skip(f"no Python {version} with {needed.removeprefix('import ')}")
    assert "\noptimizer.name,adamw\n" in summary(python, tmp_path).stdout


def test_a_page_that_python_leaves_out_is_said() -> None:
    command = [sys.executable, "-m", "hlo_inspect", "rule", "HI101"]
    environment = {**os.environ, "PYTHONOPTIMIZE": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the page of HI101 is a docstring, which Python leaves out" in done.stderr
