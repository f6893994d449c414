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
from tests.optimizer.programs import facts_of, rules_of, step_of

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


ADAGRAD = ("s = multiply r r", "v = add m1 s", "e = add v tiny", "q = rsqrt e", "p = multiply r q", "u = multiply p rate")
RMSPROP = ("a = multiply m1 nine", "s = multiply r r", "b = multiply s tenth", "v = add a b", *ADAGRAD[2:])


@pytest.mark.parametrize(("name", "lines"), [("adagrad", ADAGRAD), ("rmsprop", RMSPROP)])
@pytest.mark.parametrize(("factor", "l2"), [("tenth", 0.1), ("zero", None)])
def test_l2_in_a_scaled_gradient_is_read(name: str, lines: tuple[str, ...], factor: str, l2: float | None) -> None:
    """`r = g + l2 * w`, over the root of the mean of `r ** 2`. Old versions of optax write an `l2` of 0."""
    text = step_of(f"d = multiply w {factor}", "r = add g d", *lines, "new = add w u", outputs="new v", states=1)
    facts = facts_of(text)
    assert (facts["name"], facts["learning_rate"], facts.get("l2"), facts.get("weight_decay")) == (name, 0.01, l2, None)


def test_a_simplified_ademamix_without_an_average_is_unknown() -> None:
    """`w' = w - rate * (m' + 0 * g) / root(v')` is the simplified AdEMAMix, whose `m' = beta1 * m + g` is no average."""
    moments = ("a = multiply m1 nine", "m = add a g", "b = multiply m2 half", "s = multiply g g", "c = multiply s half")
    mixed = ("v = add b c", "q = sqrt v", "e = add q tiny", "y = multiply g zero", "z = add m y", "i = divide z e")
    text = step_of(*moments, *mixed, "u = multiply i rate", "new = add w u", outputs="new m v", states=2)
    assert rules_of(text) == ["unknown"]


NORMALIZED = (
    *("q = multiply w w", "o = f32[4]{0} reduce(%q, %zero_s), dimensions={0}, to_apply=%add", "p = f32[4]{0} rsqrt(%o)"),
    *("n = f32[4,4]{1,0} broadcast(%p), dimensions={1}", "c = multiply w n"),
    "y = f32[9,4]{1,0} dot(%x, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "d = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    *("e = multiply w d", "i = f32[4]{0} reduce(%e, %zero_s), dimensions={0}, to_apply=%add"),
    *("j = f32[4,4]{1,0} broadcast(%i), dimensions={1}", "k = multiply w j", "l = multiply n n", "z = multiply l n"),
    *("ab = multiply d n", "ac = multiply k z", "g0 = subtract ab ac", "decay = multiply w tenth", "g1 = add g0 decay"),
)
"""The gradient `g0` of a loss that reads `w / norm(w)`, column by column, and that of the same loss with decay inside, `g1`."""

CLIPPED = (
    *("f = multiply w tenth", "af = add g f", "as = multiply af af"),
    "at = f32[] reduce(%as, %zero_s), dimensions={0,1}, to_apply=%add",
    *("au = f32[] rsqrt(%at)", "av = f32[] minimum(%au, %one_s)", "aw = f32[4,4]{1,0} broadcast(%av), dimensions={}"),
    "r = multiply af aw",
)
"""A gradient with decay inside, of which the norm is clipped."""

SCALED = ("vd = multiply m1 nine", "vs = multiply r r", "vt = multiply vs tenth", "v = add vd vt", "ve = add v tiny")
STEP = ("root = rsqrt ve", "scaled = multiply first root", "u = multiply scaled rate", "new = add w u")
AVERAGE = ("md = multiply m2 nine", "mt = multiply r tenth", "first = add md mt")


@pytest.mark.parametrize(
    ("name", "gradient", "first", "outputs", "l2"),
    [
        ("rmsprop", (*NORMALIZED, "r = copy g0"), ("first = copy r",), "new v", None),
        ("adam", (*NORMALIZED, "r = copy g0"), AVERAGE, "new v first", None),
        ("adam", (*NORMALIZED, "r = copy g1"), AVERAGE, "new v first", 0.1),
        ("adam", CLIPPED, AVERAGE, "new v first", 0.1),
    ],
)
def test_decay_is_the_weight_term_beside_the_gradient(
    name: str, gradient: tuple[str, ...], first: tuple[str, ...], outputs: str, l2: float | None
) -> None:
    """The gradient of a normalized weight holds that weight without decay."""
    facts = facts_of(step_of(*gradient, *SCALED, *first, *STEP, outputs=outputs, states=len(outputs.split()) - 1))
    assert (facts["name"], facts.get("l2"), facts["decayed_count"]) == (name, l2, int(l2 is not None))
