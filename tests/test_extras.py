"""Optional parts have one list: the extras of pyproject.toml, of the pages' table and of the messages are the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from hlo_inspect.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

FOR_DEVELOPERS = {"docs", "lint", "test", "test-services"}
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
