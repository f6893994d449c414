"""Optional parts have one list: the extras of pyproject.toml, of the pages' table and of the messages are the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from hlo_inspect.version import __version__
from tests import extras

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

FOR_DEVELOPERS = {"docs", "lint", "test", "test-programs", "test-services"}
"""Extras that users of the program do not need."""
EXTRAS = PROJECT["optional-dependencies"].keys() - FOR_DEVELOPERS


def test_the_table_of_extras_has_all_of_them() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    cells = re.findall(r"^\| *((?:`[^`|]*\[[a-z][a-z0-9]*\]'?`(?:, )?)+) *\|", text, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"\[(\w+)\]", cell)}
    assert named - FOR_DEVELOPERS == EXTRAS


def test_messages_name_each_extra() -> None:
    """Messages on remote files name the extra of the protocol."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "hlo_inspect").rglob("*.py")]
    named = set(re.findall(r"extra \[([a-z0-9]+)\]", "\n".join(texts)))
    protocols = re.search(
        r"^_EXTRAS = \{\n(.*?)^\}", (ROOT / "hlo_inspect/remote_files.py").read_text(), re.MULTILINE | re.DOTALL
    )
    assert protocols is not None
    assert named | set(re.findall(r': \("(\w+)", ', protocols[1])) == EXTRAS


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == __version__


def test_each_python_that_is_supported_has_a_classifier_and_a_smoke_test() -> None:
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert listed == ["3.11", "3.12", "3.13", "3.14"]
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert f"for version in {' '.join(listed[1:])}; do" in script
    assert PROJECT["requires-python"] == f">={listed[0]}"


def test_tests_that_need_more_than_their_extras_have_the_marker() -> None:
    """A test that `importorskip` skips without the marker would run nowhere: CI selects tests of the extras by it."""
    packages = PROJECT["optional-dependencies"]
    brought, more = (
        {re.split(r"[\[=>]", package)[0] for name in names for package in packages[name]}
        for names in (("test", "xla"), ("test-services", "test-programs", "graph", "docs"))
    )
    modules = {"anyio", "distributed", "model_explorer", "moto", "rattler_build"}  # their packages have other names
    skipping = re.compile(rf"importorskip\(\"(?:{'|'.join((more - brought) | modules)})")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts and path.name != Path(__file__).name]
    assert [path.name for path in tests if skipping.search(path.read_text(encoding="utf-8"))] == []


def test_skipped_tests_are_counted_by_reason() -> None:
    """The tests of a page by Graphviz need `dot`, which no PATH has; the other ones of two files are left out."""
    command = [sys.executable, "-m", "pytest", "-m", "extras", "tests/report/test_dot.py", "tests/cli/test_environments.py"]
    variables = os.environ | {"PATH": "", extras.LEFT_OUT: "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert f"\n5 skipped: 3 × {extras.LEFT_OUT}; 2 × needs dot\n" in done.stdout
    assert extras.lacks("no_such_package")
    assert not extras.lacks("pytest")
