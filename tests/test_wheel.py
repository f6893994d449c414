"""The built wheel works in an empty environment: it lists the profiles and reads a dump. `.ci/run` builds it from the sdist."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from hlo_inspect.cli.commands.skill import skill_text
from hlo_inspect.native.build import BuildError, find_compiler

ROOT = Path(__file__).parents[1]
DUMP = ROOT / "tests" / "data" / "cpu" / "collectives.after.txt"
WHERE = "import hlo_inspect, pathlib; print(pathlib.Path(hlo_inspect.__file__).parent)"


def _has_compiler() -> bool:
    try:
        find_compiler()
    except BuildError:
        return False
    return True


def test_a_wheel_without_the_library_fits_everywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    without_library = {**os.environ, "HLO_INSPECT_NATIVE": "0"}
    subprocess.run(command, cwd=ROOT, env=without_library, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert not [name for name in packed.namelist() if "hlo_core" in name]


def test_an_installed_wheel_reads_a_dump(tmp_path: Path) -> None:
    """The environment has only the wheel and its dependencies."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    has_library = _has_compiler()
    assert wheel.name.endswith("-py3-none-any.whl") != has_library
    with zipfile.ZipFile(wheel) as packed:
        assert any(name.endswith("licenses/LICENSE") for name in packed.namelist())
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)

    def run(program: str, *arguments: str) -> str:
        command = [str(environment / "bin" / program), *arguments]
        clean = {"LANG": "C.UTF-8"}
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=clean).stdout

    assert ("(native reader)" in run("hlo-inspect", "--version")) == has_library
    profiles = run("hlo-inspect", "profiles")
    assert all(name in profiles for name in ("a100-sxm-80gb", "h100-sxm", "tpu-v4", "tpu-v5e", "tpu-v5p"))
    assert "all-to-all" in run("hlo-inspect", "collectives", str(DUMP))
    assert run("hlo-inspect", "skill") == skill_text()
    package = Path(run("python", "-c", WHERE).strip())
    page = package / "report" / "formats" / "html"
    assert {path.name for path in page.glob("*.css")} == {"style.css", "compact.css"}
    assert (page / "script" / "start.js").is_file()
    assert (page / "drawing" / "figure.js").is_file()
    assert (page / "templates" / "view.html").is_file()
    assert (package / "py.typed").is_file()
    assert {path.stem for path in package.with_name("hlo_inspect_explorer").glob("*.py")} == {"__init__", "layers", "main"}
    assert not list(package.rglob("test_*"))
    folders = sorted(path.name for path in (package / "configs").iterdir() if path.is_dir())
    assert folders == ["checks", "custom_calls", "hardware", "queries"]
