"""The built wheel holds what it needs: installed into an empty environment it lists the profiles and reads a dump."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DUMP = ROOT / "tests" / "data" / "cpu" / "collectives.after.txt"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that holds the wheel, and only what it depends on."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", str(wheel)], check=True, capture_output=True)
    return programs


def _run(installed: Path, *arguments: str) -> str:
    result = subprocess.run(
        [installed / "hlo-inspect", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed,
        env={"LANG": "C.UTF-8"},
    )
    return result.stdout


def test_it_lists_the_profiles(installed: Path) -> None:
    output = _run(installed, "profiles")
    for name in ("a100-sxm-80gb", "h100-sxm", "tpu-v4", "tpu-v5e", "tpu-v5p"):
        assert name in output


def test_it_reads_a_dump(installed: Path) -> None:
    assert "all-to-all" in _run(installed, "collectives", str(DUMP))


def test_it_holds_no_test_and_is_typed(installed: Path) -> None:
    code = "import hlo_inspect, pathlib; print(pathlib.Path(hlo_inspect.__file__).parent)"
    result = subprocess.run([installed / "python", "-c", code], check=True, capture_output=True, text=True, cwd=installed)
    package = Path(result.stdout.strip())
    assert (package / "py.typed").is_file()
    assert not list(package.rglob("test_*"))
    assert sorted(path.name for path in (package / "configs").iterdir() if path.is_dir()) == ["checks", "hardware"]
