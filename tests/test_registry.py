"""Nothing is built and forgotten: each pass, format and profile is on its list, and each module has its test file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.hardware import profile_names
from hlo_inspect.configs import shipped_configs
from hlo_inspect.passes import PASSES, READING
from hlo_inspect.report import FORMATS

PACKAGE = Path(hlo_inspect.__file__).parent
TESTS = Path(__file__).parent

NO_PASS = {"base", "loops", "optimizer_state", "profiles"}
"""Files of `passes` that hold no pass: what a pass is, findings that several share, more findings of one, and the report on
the profiles.
"""

TEST_OF_FORMAT = {"table": "terminal"}
"""Formats whose test is called otherwise."""


def modules(folder: str) -> list[str]:
    return [
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if path.name != "__init__.py"
    ]


def test_each_file_of_passes_is_on_the_list() -> None:
    files = {path.stem for path in (PACKAGE / "passes").glob("*.py")} - {"__init__"}
    assert files == {one.name for one in (READING, *PASSES)} | NO_PASS
    assert all(type(one).__module__ == f"hlo_inspect.passes.{one.name}" for one in (READING, *PASSES))


@pytest.mark.parametrize("folder", ["hlo", "analysis", "passes", "checks"])
def test_each_module_has_its_test_file(folder: str) -> None:
    tests = {path.relative_to(TESTS).as_posix() for path in (TESTS / folder).rglob("test_*.py")}
    mirrored = {module: "/test_".join(module.rpartition("/")[::2]) for module in modules(folder)}
    assert {module for module, stem in mirrored.items() if f"{stem}.py" not in tests} == set()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_each_format_has_its_test(name: str) -> None:
    stem = TEST_OF_FORMAT.get(name, name)
    assert FORMATS[name].__module__ == f"hlo_inspect.report.{stem}"
    assert f'"{name}"' in (TESTS / "report" / f"test_{stem}.py").read_text(encoding="utf-8")


def test_each_profile_has_its_figures_in_a_test() -> None:
    """The test types every figure of a profile from its source, under the profile's name."""
    files = {path.stem for path in shipped_configs("hardware").glob("*.yaml")}
    assert files == set(profile_names())
    text = (TESTS / "analysis/test_hardware.py").read_text(encoding="utf-8")
    assert files <= set(re.findall(r'^    "([\w-]+)": \{', text, re.MULTILINE))
