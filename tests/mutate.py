"""Mutants of a package, each with one operator or number changed, and those that its tests let live.

    python -m tests.mutate findings --count 20 [--first SEED] [--tests PATH ...] [--quick] [-n PROCESSES]

A mutant is made in a copy of the tree, and the tests of the package run until one fails, quick ones first; with `--quick` the
quick tests of all packages try those that live. A survivor is shown with its line before and after: a test is missing, or the
change changes no answer. The exit status is 1 if there is one. A seed is the same mutant as long as the package is the same.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "hlo_inspect"
_LEFT_OUT = (".git", ".venv*", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "out", "site")
_NO_TESTS = 5
"""Exit status of pytest if it has nothing to run: a package may have no quick test."""
_SECONDS = 900
"""Time of a run after which the mutant counts as killed: it may never end."""

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
)
_OTHER_OPERATORS = {ast.Div: ast.Mult} | dict(_PAIRS) | {other: operator for operator, other in _PAIRS}
_NO_CODE = {"annotation", "returns", "decorator_list"}
"""Fields of the syntax tree that no answer depends on."""


class Mutant(NamedTuple):
    """A changed text of a file: lines `first` to `last` before, and the text of the whole file."""

    path: Path
    first: int
    before: str
    after: str
    text: str


def changed_expressions(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the expressions that can be changed, each with the changed one."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for name, value in ast.iter_fields(node):
            if name not in _NO_CODE:
                waiting += [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]
        other = _changed(node) if isinstance(node, ast.expr) else None
        if isinstance(node, ast.expr) and other is not None:
            yield node, other


def _changed(node: ast.expr) -> ast.expr | None:
    """Return an expression with another operator, number or truth; None if it has none of its own."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        return ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    other = copy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in _OTHER_OPERATORS:
        other.ops = [_OTHER_OPERATORS[type(other.ops[0])](), *other.ops[1:]]  # type: ignore[list-item]
        return other
    if isinstance(other, ast.BoolOp | ast.BinOp) and type(other.op) in _OTHER_OPERATORS:
        other.op = _OTHER_OPERATORS[type(other.op)]()  # type: ignore[assignment]
        return other
    return None


def find_mutant(package: str, seed: int) -> Mutant:
    """Return a mutant of a package, the same for the same text of the package."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    sites = [
        (path, *change)
        for path in sorted((ROOT / PACKAGE / package).rglob("*.py"))
        for change in changed_expressions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    path, node, other = rng.choice(sites)
    lines = path.read_text(encoding="utf-8").encode().splitlines(keepends=True)
    start, stop = node.lineno - 1, node.end_lineno or node.lineno
    head, tail = lines[start][: node.col_offset], lines[stop - 1][node.end_col_offset or 0 :]
    changed = head + f"({ast.unparse(other)})".encode() + tail
    text = b"".join([*lines[:start], changed, *lines[stop:]]).decode()
    return Mutant(path, node.lineno, b"".join(lines[start:stop]).decode().strip(), changed.decode().strip(), text)


def survives(mutant: Mutant, tree: Path, tests: list[str], processes: int) -> bool:
    """Return True if no test fails in a copy of the tree with the mutant."""
    path = tree / mutant.path.relative_to(ROOT)
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", str(processes), "--dist", "loadfile"]
    try:
        done = subprocess.run([*command, *tests], cwd=tree, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(original, encoding="utf-8")
    return done.returncode in (0, _NO_TESTS)


def tests_of(package: str) -> list[str]:
    """Return the folders of the tests and of the cases of a package."""
    return [name for name in (f"tests/{package}", f"tests/cases/{package}") if (ROOT / name).exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", help="folder or module of the package, such as findings or hlo/read")
    parser.add_argument("--count", type=int, default=20, help="number of mutants")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run; by default those of the package's folder")
    parser.add_argument("--quick", action="store_true", help="try survivors with the quick tests of all packages")
    parser.add_argument("-n", type=int, default=2, dest="processes", help="processes of a run")
    given = parser.parse_args()
    survivors = 0
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        for seed in range(given.first, given.first + given.count):
            mutant = find_mutant(given.package, seed)
            own = given.tests or tests_of(given.package)
            rounds = [["-m", "quick", *own], ["-m", "not quick", *own], *([["-m", "quick", "tests"]] if given.quick else [])]
            if all(survives(mutant, tree, tests, given.processes) for tests in rounds):
                survivors += 1
                place = f"{mutant.path.relative_to(ROOT)}:{mutant.first}"
                print(f"{seed}  {place} survives\n    {mutant.before}\n    {mutant.after}", flush=True)
    print(f"{survivors} of {given.count} mutants survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
