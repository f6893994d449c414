"""Properties of all rules: their declarations, that no update fits two of them, and that their order changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer import rules
from hlo_inspect.optimizer.algebra.update import OptimizerRule
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.overview import HYPERPARAMETERS
from hlo_inspect.optimizer.rules import RULES, claims_of
from hlo_inspect.passes import PASSES

TESTS = Path(__file__).parents[2]
SHARED = TESTS.parents[1] / "shared" / "dumps"
DUMPS = sorted(
    [*(TESTS / "data" / "optimizers").glob("*.hlo"), *(TESTS / "data" / "cpu").glob("*.txt"), *SHARED.glob("*/mlp_*.xz")]
)
FOLDER = Path(rules.__file__).parent
FILES = {path.stem: path for path in sorted(FOLDER.glob("[a-z]*.py"))}
OPEN_TO_RULES = ("hlo_inspect.hlo.opcodes", "hlo_inspect.optimizer.algebra.", "hlo_inspect.optimizer.step.state_arrays")


@cache
def weights_of(path: Path) -> list[Weight]:
    return _weights(path)


def _weights(path: Path) -> list[Weight]:
    wants = Wants(graph=True, entry=True)
    return [weight for module in read_modules(open_source(path), wants) for weight in Context(module).optimizer.updates.weights]


def all_weights() -> Iterator[Weight]:
    for path in DUMPS:
        yield from weights_of(path)


# -- what rules declare -------------------------------------------------------------------------------------------------


def test_each_file_is_on_the_list() -> None:
    assert {rule.match.__module__.rpartition(".")[2] for rule in RULES} == set(FILES)


def test_names_are_distinct() -> None:
    names = [name for rule in RULES for name in rule.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", FILES)
def test_a_rule_imports_the_algebra_and_nothing_else_of_the_project(name: str) -> None:
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert all(module.startswith(OPEN_TO_RULES) for module in imported if module.startswith("hlo_inspect"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_docstrings_of_rules_name_the_paper_of_the_documentation(rule: OptimizerRule) -> None:
    docstring = import_module(rule.match.__module__).__doc__ or ""
    assert rule.paper.partition(" ")[0].rstrip(",") in docstring
    assert set(rule.hyperparameters) <= set(HYPERPARAMETERS)


def test_claims_hold_what_their_rules_declare() -> None:
    """And each rule has an update in these dumps, so that none is there without having been seen to work."""
    by_name = {name: rule for rule in RULES for name in rule.names}
    seen = set()
    for weight in all_weights():
        if weight.claim is not None:
            rule = by_name[weight.claim.rule]
            assert set(weight.claim.hyperparameters) <= set(rule.hyperparameters)
            assert set(weight.claim.roles) <= set(rule.state)
            seen.add(weight.claim.rule)
    assert seen == set(by_name)


def test_the_documentation_and_the_help_list_them() -> None:
    page = (TESTS.parent / "docs" / "optimizers.md").read_text(encoding="utf-8")
    rows = [
        f"| {', '.join(f'`{name}`' for name in rule.names)} | {rule.title} | {rule.paper} | {', '.join(rule.hyperparameters)} |"
        for rule in sorted(RULES, key=lambda rule: rule.name)
    ]
    assert "\n".join(rows) in page
    (help_,) = [pass_.help() for pass_ in PASSES if pass_.name == "optimizer"]
    assert all(name in help_.partition("Rules: ")[2] for rule in RULES for name in rule.names)


# -- no two of them -----------------------------------------------------------------------------------------------------


def test_no_update_is_claimed_by_two_rules() -> None:
    checked = 0
    for weight in all_weights():
        claims = [claim.rule for claim in claims_of(weight.update)]
        assert len(claims) <= 1, claims
        checked += len(claims)
    assert checked > 150


def test_the_order_of_rules_changes_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any order: if the first rule that claims an update is the last one too, no other claims it."""
    expected = {path: _claims(weights_of(path)) for path in DUMPS}
    monkeypatch.setattr(rules, "RULES", tuple(reversed(RULES)))
    assert {path: _claims(_weights(path)) for path in DUMPS} == expected


def _claims(weights: list[Weight]) -> list[tuple[object, ...]]:
    """Rules, constants and arrays; of an input without the number of its frame, which depends on what is read first."""
    return [
        (
            weight.rule,
            weight.array.source[1:],
            weight.claim and (weight.claim.hyperparameters, {r: s.source[1:] for r, s in weight.claim.roles.items()}),
        )
        for weight in weights
    ]
