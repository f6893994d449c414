"""The pass of a fact or a table, known before a pass is imported, and the imports of a check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hlo_inspect.passes import (
    ALPA,
    ASSERTABLE_TABLES,
    FACT_PASSES,
    OTHERS,
    PASSES,
    all_specs,
    pass_tables,
    specs_about,
    workload_pass,
)

DATA = Path(__file__).parents[1] / "data"


def test_the_first_word_of_each_fact_names_its_passes() -> None:
    passes: dict[str, set[str]] = {}
    for question in (*PASSES, *OTHERS, workload_pass()):
        for spec in question.specs:
            passes.setdefault(spec.name.partition(".")[0], set()).add(question.name)
    assert {word: set(names) for word, names in FACT_PASSES.items()} == passes


def test_the_facts_of_one_word_are_all_facts_that_begin_with_it() -> None:
    for word in FACT_PASSES:
        expected = {spec.name for spec in all_specs() if spec.name.partition(".")[0] == word}
        assert expected <= {spec.name for spec in specs_about(f"{word}.x")}
    assert {spec.name for spec in specs_about("mistyped")} == {spec.name for spec in all_specs()}


def test_the_tables_of_assertions_are_those_that_say_so() -> None:
    assert {name: table.pass_name for name, table in pass_tables().items() if table.spec.assertable} == ASSERTABLE_TABLES


@pytest.mark.parametrize("assertion", ["collectives.count >= 0", "collectives[kind=all-reduce].runs >= 0"])
def test_a_check_of_collectives_imports_no_pass_of_another_question(assertion: str) -> None:
    code = f"""
import sys
from hlo_inspect.cli.main import run
assert run(["check", "--assert", {assertion!r}, {str(DATA / "cpu/adamw_step.after.txt")!r}]) == 0
print(*sorted(name for name in sys.modules if name.startswith("hlo_inspect.passes.")), sep="\\n", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {f"hlo_inspect.passes.{name.replace('-', '_')}" for name in (*PASSES.names, ALPA)} - {
        "hlo_inspect.passes.collectives"
    }
    assert not others & set(done.stderr.split())
