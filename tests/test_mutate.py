"""The mutants of `python -m tests.mutate`: one change each, in a text that compiles."""

from __future__ import annotations

import ast

import pytest

from tests.mutate import changed_expressions, find_mutant


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("a < b", ["a <= b"]),
        ("not a", ["a"]),
        ("a and b", ["a or b"]),
        ("x + 7", ["x - 7", "8"]),
        ("def f(a: Literal[1] = True) -> Literal[2]: 'text'", ["False"]),
        ("f(None, 'a', 1.5)", []),
    ],
)
def test_operators_numbers_and_truths_are_changed(code: str, changes: list[str]) -> None:
    """Annotations, texts and None are not."""
    assert sorted(ast.unparse(other) for _, other in changed_expressions(ast.parse(code))) == sorted(changes)


@pytest.mark.parametrize("seed", range(20))
def test_a_mutant_differs_in_its_lines_alone(seed: int) -> None:
    mutant = find_mutant("findings", seed)
    assert mutant == find_mutant("findings", seed)
    compile(mutant.text, str(mutant.path), "exec")
    own = mutant.path.read_text(encoding="utf-8").splitlines()
    others = mutant.text.splitlines()
    removed, added = len(mutant.before.splitlines()), len(mutant.after.splitlines())
    first = mutant.first - 1
    assert (own[:first], own[first + removed :]) == (others[:first], others[first + added :])
    assert mutant.before != mutant.after
