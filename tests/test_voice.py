"""Docstrings that are read once, and names that say what a thing is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [
    str(path.relative_to(ROOT))
    for folder in ("hlo_inspect", "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "data" not in path.parts
]
HELP = ("hlo_inspect/passes/", "hlo_inspect/findings/", "hlo_inspect/cli/commands/")
"""Folders with docstrings that are help texts. Their sentences are not held yet, only their names."""

_FIRST = re.compile(r"(What|Whether|Who|Of|One|How|Which|Where|Why|Those|So)\b")
_WHERE = re.compile(r"(?<!line )(?<!place )(?<!file )(?<!column )(?<!position )(?<!dimension )\bwhere\b", re.IGNORECASE)
_PHRASES = re.compile(r"\b(so many|as many|equal ones|is told|is asked|are told|are asked)\b", re.IGNORECASE)
_NAMES = frozenset({"one", "found", "known", "at", "of", "told", "there", "beside", "alike", "held"})
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
MAX_WORDS = 25


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, those of constants and fields included."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        for statement in node.body:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.lineno, statement.value.value


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text. A blank line, a list item and a heading end one too."""
    plain = _CODE.sub("x", text.partition("\nExample")[0])
    for paragraph in re.split(r"\n\s*\n|\n\s*[*-] |:\n", plain):
        yield from re.split(r"(?<=[.;!?])\s+", " ".join(paragraph.split()))


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each local variable and argument. Fields of classes are free."""
    fields = {
        id(field.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def spoken_faults(tree: ast.Module) -> Iterator[str]:
    """Yield what is wrong with the docstrings of a file."""
    for line, text in docstrings(tree):
        if match := _FIRST.match(text.strip()):
            yield f"{line}: begins with {match[0]}"
        for match in (*_WHERE.finditer(_CODE.sub("x", text)), *_PHRASES.finditer(text)):
            yield f"{line}: {match[0]}"
        for sentence in sentences(text):
            if len(sentence.split()) > MAX_WORDS:
                yield f"{line}: {len(sentence.split())} words"


@pytest.mark.parametrize("file", FILES)
def test_docstrings_and_names_are_read_once(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    faults = [] if file.startswith(HELP) else list(spoken_faults(tree))
    faults += [f"{line}: name {name}" for line, name in bound_names(tree) if name in _NAMES]
    assert faults == []
