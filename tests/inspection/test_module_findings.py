"""Rules that run on a module, and the words on those that do not."""

from __future__ import annotations

import pytest

from hlo_inspect.findings import RULE_TABLE
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection import module_reports
from hlo_inspect.inspection.module_reports import FindingOptions, RuleChoice
from tests.inspection.samples import module

PARAMS = ("undonated-parameter", "unused-parameter", "dangling-alias")
"""The rules of `params`; the first one follows values."""

COSTLY = {"graph", "memory"}


def two_instructions() -> Module:
    (found_module,) = read_modules(open_source(module("m")), Wants(entry=True, graph=True))
    return found_module


def options(
    *, counts_all: bool = False, quick: bool = False, every_rule: bool = False, asked: tuple[str, ...] = ("params",)
) -> FindingOptions:
    return FindingOptions(counts_all, asked, asked, quick, every_rule)


def test_a_question_has_its_own_rules() -> None:
    assert options().choose(two_instructions(), None) == RuleChoice(PARAMS, questions=("params",))
    both = options(asked=("optimizer", "params")).choose(two_instructions(), None)
    assert set(both.rules) == {*PARAMS, *(name for name in RULE_TABLE if "optimizer" in RULE_TABLE[name].passes)}
    assert both.scope == " of optimizer and params"


def test_quick_leaves_out_what_follows_values() -> None:
    choice = options(quick=True).choose(two_instructions(), None)
    assert (choice.rules, choice.left_out) == (PARAMS[1:], PARAMS[:1])
    assert choice.scope == " of params (1 rule left out by --quick)"
    of_all = options(counts_all=True, quick=True).choose(two_instructions(), None)
    assert set(of_all.left_out) == {name for name, entry in RULE_TABLE.items() if entry.reads in COSTLY}
    assert {*of_all.rules, *of_all.left_out} == set(RULE_TABLE)
    assert of_all.scope == " (14 rules left out by --quick)"


def test_a_large_module_leaves_rules_on_memory_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module has two instructions: it is large above a limit of one, and not above one of two."""
    memory = {name for name, entry in RULE_TABLE.items() if entry.reads == "memory"}
    monkeypatch.setattr(module_reports, "LARGE_MODULE", 1)
    choice = options(counts_all=True).choose(two_instructions(), None)
    assert set(choice.left_out) == memory
    assert set(choice.rules) == RULE_TABLE.keys() - memory
    assert choice.scope == f" ({len(memory)} rules left out above 1 instructions, `check --fail-on` runs all)"
    every = options(counts_all=True, every_rule=True).choose(two_instructions(), None)
    assert every == RuleChoice(tuple(RULE_TABLE))
    assert options(asked=("memory",)).choose(two_instructions(), None).left_out == ()
    monkeypatch.setattr(module_reports, "LARGE_MODULE", 2)
    assert options(counts_all=True).choose(two_instructions(), None) == RuleChoice(tuple(RULE_TABLE))


@pytest.mark.parametrize("quick", [False, True])
def test_an_answer_about_an_instruction_asks_every_rule(quick: bool) -> None:
    choice = options(quick=quick).choose(two_instructions(), (4, "p"))
    assert choice == RuleChoice(tuple(RULE_TABLE))
    assert choice.scope == ""


@pytest.mark.parametrize(
    ("choice", "scope"),
    [
        (RuleChoice(("a", "b")), ""),
        (RuleChoice(("a",), questions=("params",)), " of params"),
        (RuleChoice(("a",), ("b",), "by --quick"), " (1 rule left out by --quick)"),
        (RuleChoice((), ("a", "b"), "for a reason", ("x", "y")), " of x and y (2 rules left out for a reason)"),
    ],
)
def test_scope(choice: RuleChoice, scope: str) -> None:
    assert choice.scope == scope


@pytest.mark.parametrize(
    ("chosen", "followed"),
    [
        (options(counts_all=True), {"collectives", "cost"}),
        (options(counts_all=True, quick=True), {"collectives"}),
        (options(), set()),
        (options(asked=("cost", "params")), {"cost"}),
        (options(asked=("cost", "params"), quick=True), set()),
    ],
)
def test_missing_attributes_are_findings_of_what_is_asked_and_not_costly(chosen: FindingOptions, followed: set[str]) -> None:
    assert chosen.followed == followed
