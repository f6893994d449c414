"""Cases: HLO texts with what is true of them in comments on top. README.md beside this file lists the directives."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
BETWEEN = "// -----"
ROW_OF_TABLE = "//|"
_DIRECTIVE = re.compile(r"// (?P<no>NO )?(?P<name>[A-Z]{2,})(?=\s|$) ?(?P<words>.*?)(?:  # (?P<reason>\S.*))?$")
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_PLAIN = {"?": None, "yes": True, "no": False}


class Directive(NamedTuple):
    """A directive of a case. `line` counts from 1 in its file; `no` is empty or `NO `; `rows` are the lines of a table."""

    line: int
    no: str
    name: str
    words: str
    reason: str
    rows: tuple[str, ...] = ()


class CaseError(Exception):
    """A directive that cannot be read, or an expectation that is not met."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Case(NamedTuple):
    """A text with its directives. Its lines have the numbers of the file."""

    path: Path
    first: int
    text: str
    comments: tuple[str, ...]

    @property
    def directives(self) -> Iterator[Directive]:
        """Yield what is to be done, in order. Raise CaseError for a comment that reads like a directive and is none."""
        for line, comment in enumerate(self.comments, self.first):
            match = _DIRECTIVE.fullmatch(comment)
            if match is not None:
                after = self.comments[line - self.first + 1 :]
                rows = [row.removeprefix(ROW_OF_TABLE) for row in _while_rows(after)]
                no, name, words, reason = match.group("no", "name", "words", "reason")
                yield Directive(line, no or "", name, words, reason or "", tuple(rows))


def cases_of(path: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = 0
    for end in [*(number for number, line in enumerate(lines) if line == BETWEEN), len(lines)]:
        start = first
        while start < end and lines[start].startswith("//"):
            start += 1
        text = "\n" * start + "\n".join(lines[start:end]) + "\n"
        yield Case(path, first + 1, text, tuple(lines[first:start]))
        first = end + 1


def _while_rows(comments: tuple[str, ...]) -> Iterator[str]:
    for comment in comments:
        if not comment.startswith(ROW_OF_TABLE):
            return
        yield comment


def value_of(word: str) -> Any:
    """Return the value that a word of an expectation stands for: a word that is nothing else stands for itself."""
    if word in _PLAIN:
        return _PLAIN[word]
    try:
        return _number(ast.parse(word, mode="eval").body)
    except (SyntaxError, ValueError):
        return word


def is_figure(value: object) -> bool:
    """Return True for a number, whose reason a case has to give."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def words_of(text: str, line: int) -> list[str]:
    """Return the words of a text, which quotes join."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CaseError(line, f"{error}: {text}") from None


def _number(node: ast.expr) -> int | float:
    if isinstance(node, ast.Constant) and is_figure(node.value):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        result: int | float = _OPERATORS[type(node.op)](_number(node.left), _number(node.right))
        return result
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    raise ValueError(ast.dump(node))
