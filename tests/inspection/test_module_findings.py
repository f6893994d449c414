"""Rules that run on a module, and the text about rules that do not."""

from __future__ import annotations

from operator import attrgetter

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings import RULE_TABLE, RULES
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection import module_reports
from hlo_inspect.inspection.module_reports import FindingOptions, RuleChoice
from tests.inspection.samples import module

PARAMS = ("undonated-parameter", "unused-parameter", "dangling-alias")
"""Rules of `params`. The first one reads the graph."""

COSTLY = {"graph", "memory"}


def module_of_two_instructions() -> Module:
    (found_module,) = read_modules(open_source(module("m")), Wants(entry=True, graph=True))
    return found_module


def options(
    *, counts_all: bool = False, quick: bool = False, every_rule: bool = False, pass_names: tuple[str, ...] = ("params",)
) -> FindingOptions:
    return FindingOptions(counts_all, pass_names, pass_names, quick, every_rule)


def test_a_command_runs_the_rules_of_its_passes() -> None:
    assert options().choose(module_of_two_instructions(), None) == RuleChoice(PARAMS, questions=("params",))
    both = options(pass_names=("optimizer", "params")).choose(module_of_two_instructions(), None)
    assert set(both.rules) == {*PARAMS, *(name for name in RULE_TABLE if "optimizer" in RULE_TABLE[name].passes)}
    assert both.scope == " of optimizer and params"


def test_quick_leaves_out_rules_that_need_the_graph_or_memory() -> None:
    choice = options(quick=True).choose(module_of_two_instructions(), None)
    assert (choice.rules, choice.left_out) == (PARAMS[1:], PARAMS[:1])
    assert choice.scope == " of params (1 rule left out by --quick)"
    of_all = options(counts_all=True, quick=True).choose(module_of_two_instructions(), None)
    assert set(of_all.left_out) == {name for name, entry in RULE_TABLE.items() if entry.reads in COSTLY}
    assert {*of_all.rules, *of_all.left_out} == set(RULE_TABLE)
    assert of_all.scope == " (38 rules left out by --quick)"


def test_memory_rules_are_left_out_above_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module has two instructions: more than a limit of 1, and not more than a limit of 2."""
    memory = {name for name, entry in RULE_TABLE.items() if entry.reads == "memory"}
    monkeypatch.setattr(module_reports, "LARGE_MODULE", 1)
    choice = options(counts_all=True).choose(module_of_two_instructions(), None)
    assert set(choice.left_out) == memory
    assert set(choice.rules) == RULE_TABLE.keys() - memory
    assert choice.scope == f" ({len(memory)} rules left out above 1 instructions, `check --fail-on` runs all)"
    every = options(counts_all=True, every_rule=True).choose(module_of_two_instructions(), None)
    assert every == RuleChoice(tuple(RULE_TABLE))
    assert options(pass_names=("memory",)).choose(module_of_two_instructions(), None).left_out == ()
    monkeypatch.setattr(module_reports, "LARGE_MODULE", 2)
    assert options(counts_all=True).choose(module_of_two_instructions(), None) == RuleChoice(tuple(RULE_TABLE))


@pytest.mark.parametrize("quick", [False, True])
def test_all_rules_run_for_a_report_on_one_instruction(quick: bool) -> None:
    choice = options(quick=quick).choose(module_of_two_instructions(), (4, "p"))
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
def test_the_scope_names_passes_and_rules_left_out(choice: RuleChoice, scope: str) -> None:
    assert choice.scope == scope


@pytest.mark.parametrize(
    ("chosen", "followed"),
    [
        (options(counts_all=True), {"collectives", "cost"}),
        (options(counts_all=True, quick=True), {"collectives"}),
        (options(), set()),
        (options(pass_names=("cost", "params")), {"cost"}),
        (options(pass_names=("cost", "params"), quick=True), set()),
    ],
)
def test_analyses_whose_missing_attributes_are_findings(chosen: FindingOptions, followed: set[str]) -> None:
    assert chosen.followed == followed


@pytest.mark.parametrize("example", [rule.name for rule in RULES if rule.page().example.startswith("HloModule")])
def test_a_rule_finds_nothing_without_its_opcodes(example: str) -> None:
    """Run a rule on a module whose opcodes rule it out."""
    wants = options(counts_all=True).wants
    modules = list(read_modules(open_source(RULES.load(example).page().example), wants))
    assert RULE_TABLE[example].opcodes <= TABLE.keys()
    for found_module in modules:
        context, opcodes = Context(found_module), found_module.opcodes
        ruled_out = [name for name, entry in RULE_TABLE.items() if entry.opcodes and entry.opcodes.isdisjoint(opcodes)]
        ruled_out += [name for name, entry in RULE_TABLE.items() if entry.analysis and not attrgetter(entry.analysis)(context)]
        assert example not in ruled_out and ruled_out
        assert not [finding for name in ruled_out for finding in RULES.load(name).check(context)]
