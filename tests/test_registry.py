"""Each pass, rule, format and profile is registered, tested and documented."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.hardware import profile_names
from hlo_inspect.cli.commands import COMMANDS, find_command
from hlo_inspect.configs import shipped_configs
from hlo_inspect.findings import RULE_TABLE, RULES, rule_pages
from hlo_inspect.findings.rule import Rule
from hlo_inspect.passes import OTHERS, PASSES, PASSES_OF_COMMANDS, workload_pass, workload_passes
from hlo_inspect.passes.base import Question
from hlo_inspect.report.formats import ALL_FORMATS, OWN_FORMATS
from hlo_inspect.report.model import SEVERITIES
from tests.cases.case import cases_of

PACKAGE = Path(hlo_inspect.__file__).parent
TESTS = Path(__file__).parent

TEST_OF_FORMAT = {"table": "terminal"}
"""Formats whose test file has another name."""


def own_classes(module: str, base: type) -> set[type]:
    """Return the subclasses of `base` that a module defines."""
    members = vars(import_module(module)).values()
    return {cls for cls in members if isinstance(cls, type) and issubclass(cls, base) and cls.__module__ == module}


def files_with(package: str, base: type) -> set[str]:
    """Return the files and folders of a package that define a class of that kind, except the file of its base."""
    paths = [path for path in (PACKAGE / package).rglob("*.py") if path.stem not in {"base", "rule"}]
    modules = [".".join(("hlo_inspect", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in paths]
    names = [module.removesuffix(".__init__") for module in modules]
    return {name.removeprefix(f"hlo_inspect.{package}.") for name in names if own_classes(name, base)}


def test_each_pass_is_registered() -> None:
    of_modules = {name.replace("-", "_") for name in (*OTHERS.names, *PASSES.names)}
    assert files_with("passes", Question) == of_modules | {"workload"}
    assert own_classes("hlo_inspect.passes.workload", Question) == {type(pass_) for pass_ in workload_passes()}
    assert [pass_.name for registry in (OTHERS, PASSES) for pass_ in registry] == [*OTHERS.names, *PASSES.names]


@pytest.mark.parametrize("name", sorted(ALL_FORMATS))
def test_each_format_has_a_test(name: str) -> None:
    stem = TEST_OF_FORMAT.get(name, name)
    assert ALL_FORMATS[name].__module__ == f"hlo_inspect.report.formats.{ALL_FORMATS.files[name]}"
    assert f'"{name}"' in (TESTS / "report" / f"test_{stem}.py").read_text(encoding="utf-8")


def test_each_profile_has_its_figures_in_a_test() -> None:
    """The test types every figure of a profile from its source, under the profile's name."""
    files = {path.stem for path in shipped_configs("hardware").glob("*.yaml")}
    assert files == set(profile_names())
    text = (TESTS / "analysis/test_hardware.py").read_text(encoding="utf-8")
    assert files <= set(re.findall(r'^    "([\w-]+)": \{', text, re.MULTILINE))


def test_each_pass_is_a_command() -> None:
    assert {pass_.name for pass_ in (*PASSES, workload_pass())} == {*PASSES_OF_COMMANDS}
    for pass_ in (*PASSES, workload_pass()):
        assert pass_.summary().endswith(".")
        for name in (pass_.name, *pass_.aliases):
            command = find_command(name)
            assert command is not None
            assert command.help == pass_.help()
            assert any(option.name == "quick" for option in command.params) == bool(pass_.unless_quick or pass_.name == "show")
            assert any(option.name == "to" for option in command.params) == bool(pass_.writes)


def test_each_command_is_found_by_its_name() -> None:
    for name, summary in COMMANDS.items():
        command = find_command(name)
        assert command is not None
        assert command.name == name
        assert command.help
        assert summary.endswith(".")
        assert command.callback is not None
    files = {path.stem for path in (PACKAGE / "cli" / "commands").glob("*.py")} - {"__init__"}
    assert files == {command.callback.__module__.rpartition(".")[2] for command in map(find_command, COMMANDS) if command}
    assert find_command("sumary") is None


def test_each_pass_has_a_test() -> None:
    """A file of tests, or a case that runs it."""
    tested = {path.stem.removeprefix("test_") for path in (TESTS / "passes").glob("test_*.py")}
    cases = (case for path in (TESTS / "cases" / "passes").rglob("*.hlo") for case in cases_of(path))
    runs = (directive.words for case in cases for directive in case.directives if directive.name == "RUN")
    tested |= {word.replace("-", "_") for run in runs for word in run.split()}
    assert {pass_.name.replace("-", "_") for pass_ in (*OTHERS, *PASSES, workload_pass())} <= tested


def test_each_rule_is_registered() -> None:
    assert files_with("findings", Rule) == {rule.name.replace("-", "_") for rule in RULES}
    assert {rule.name for rule in RULES} == RULE_TABLE.keys()
    assert {name for entry in RULE_TABLE.values() for name in entry.passes} <= {pass_.name for pass_ in PASSES}


def test_each_rule_is_documented() -> None:
    pages = rule_pages()
    for page in pages:
        assert re.fullmatch(r"HI[0-9]{3}", page.code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", page.name)
        assert page.severity in SEVERITIES
        assert page.summary.endswith(".")
        assert len(page.summary) <= 56, "it fits in the table of `rules`"
        assert tuple(page.texts) == ("What it finds", "Why it matters", "How to fix it", "Example")
        assert all(text.strip() for text in page.texts.values())
    assert len({page.code for page in pages}) == len({page.name for page in pages}) == len(pages)


def test_each_format_of_single_commands_belongs_to_a_pass() -> None:
    assert {name for pass_ in (*PASSES, *OTHERS) for name in pass_.formats} == OWN_FORMATS.keys()
