"""Files and functions that the pages for contributors name."""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules

ROOT = Path(__file__).parent.parent
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")

_SPAN = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?:hlo_inspect(?:_explorer)?|tests|benchmarks|configs)/[\w./\-]*")
_INSIDE = re.compile(
    r"(?:hlo|workloads|graph|optimizer|analysis|passes|findings|report|compare|checks|inspection|fleet|cli)/[\w./\-]*"
)
"""A path within hlo_inspect, as the tables have it."""
_MEMBER = re.compile(r"`(hlo_inspect/[\w/]+\.py)`\s+`([A-Za-z_]\w*)(?:\.(\w+))?`")


@cache
def definitions(file: str) -> frozenset[str]:
    """Return the functions and classes of a file, and `Class.member`."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    spans = _SPAN.findall((ROOT / page).read_text(encoding="utf-8"))
    named = {span.rstrip("/") for span in spans if _FILE.fullmatch(span) and "NAME" not in span}
    named |= {f"hlo_inspect/{span}" for span in spans if _INSIDE.fullmatch(span) and not re.search("[A-Z]{4}", span)}
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_functions_that_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    steps = _MEMBER.findall(text)
    assert len(steps) > 25
    wrong = {
        (file, name, member)
        for file, name, member in steps
        if (f"{name}.{member}" if member else name) not in definitions(file)
    }
    assert wrong == set()


def test_architecture_explains_the_collectives_table_in_10_to_15_steps() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## The way of one line to the table of `collectives`")[2].partition("\n## ")[0]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 10 <= len(numbers) <= 15


def test_the_example_pass_of_contributing_works(tmp_path: Path) -> None:
    """The copy and the transpose each give 4x8 float32: 2 * 128 bytes."""
    code = re.search(r"^```python\n((?s:.*?))^```$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert code is not None
    path = tmp_path / "copies.py"
    path.write_text(code[1], encoding="utf-8")
    shown = runpy.run_path(str(path))["Copies"]()
    text = (
        "HloModule m\n\nENTRY e {\n  p = f32[4,8] parameter(0)\n  c = f32[4,8] copy(p)\n  ROOT t = f32[8,4] transpose(c)\n}\n"
    )
    (module,) = read_modules(open_source(text), shown.wants)
    section = shown.run(Context(module))
    assert (section.facts, list(section.notes)) == ({"copies.count": 2, "copies.bytes": 256}, [])
    assert [table.total for table in section.tables] == [(None, None, None, 256, None)]
