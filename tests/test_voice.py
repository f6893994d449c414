"""Plain language in docstrings, helps, titles, messages and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [
    str(path.relative_to(ROOT))
    for folder in ("hlo_inspect", "hlo_inspect_explorer", "benchmarks", "docs", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "data" not in path.parts
]
_FIRST = re.compile(r"(What|Whether|Who|Of|One|How|Which|Where|Why|Those|So)\b")
_WHERE = re.compile(r"(?<!line )(?<!place )(?<!file )(?<!column )(?<!position )(?<!dimension )\bwhere\b", re.IGNORECASE)
_PHRASES = re.compile(r"\b(so many|as many|equal ones|is told|is asked|are told|are asked)\b", re.IGNORECASE)
_PAGE_PHRASES = re.compile(
    r"\b(by the model|executed (wire|operand)|cut (off|short)|not known|given away|handed in|nothing hides|quoted alone)\b"
)
"""Words of pages that the glossary of CONTRIBUTING replaces."""
_FIXED = frozenset(
    {
        "What it finds",
        "Why it matters",
        "How to fix it",
        "not known: it x",
        "step by the model",
        "kernels by the model",
        "exposed collectives by the model",
    }
)
"""Headings of rules and texts of table cells. Scripts rely on them, so they stay."""
_NAMES = frozenset({"one", "found", "known", "at", "of", "told", "there", "beside", "alike", "held"})
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
MAX_WORDS = 25
MAX_WORDS_OF_MESSAGE = 20


def docstrings(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, those of constants and fields included."""
    for node in nodes:
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
    plain = _CODE.sub("x", re.split(r"\n *Example", text)[0])
    for paragraph in re.split(r"\n\s*\n|\n\s*[*-] |:\n", plain):
        yield from re.split(r"(?<=[.;!?])\s+", " ".join(paragraph.split()))


def bound_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each local variable and argument. Fields of classes are free."""
    fields = {
        id(field.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def messages(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each message: a string of three words or more, with `x` for each value in it.

    Docstrings, regular expressions and texts of several lines, such as examples, are none.
    """
    others = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    others |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in others:
            text = node.value
        else:
            continue
        words = sum(word.strip(".,;:`()").isalpha() for word in text.split())
        if words > 2 and "\n" not in text and "\\w" not in text:
            yield node.lineno, text


def faults_of(line: int, text: str, most_words: int) -> Iterator[str]:
    """Yield what is wrong with a text."""
    if match := _FIRST.match(text.strip()):
        yield f"{line}: begins with {match[0]}"
    for match in (*_WHERE.finditer(_CODE.sub("x", text)), *_PHRASES.finditer(text)):
        yield f"{line}: {match[0]}"
    for sentence in sentences(text):
        if len(sentence.split()) > most_words:
            yield f"{line}: {len(sentence.split())} words"


def test_docstrings_names_and_messages_follow_the_rules() -> None:
    """A fault is shown with its file and line."""
    assert "\n".join(f"{file}:{fault}" for file in FILES for fault in faults_of_file(file)) == ""


def faults_of_file(file: str) -> list[str]:
    nodes = list(ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
    faults = [fault for line, text in docstrings(nodes) for fault in faults_of(line, text, MAX_WORDS)]
    faults += [f"{line}: name {name}" for line, name in bound_names(nodes) if name in _NAMES]
    for line, text in messages(nodes) if file.startswith("hlo_inspect/") else ():
        if text not in _FIXED:
            faults += faults_of(line, text, MAX_WORDS_OF_MESSAGE)
            faults += [f"{line}: {match[0]}" for match in _PAGE_PHRASES.finditer(text)]
    return faults
