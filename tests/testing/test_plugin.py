"""The pytest plugin in processes of its own: what it prints, what it refuses, what it loads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hlo_inspect.testing import fixture

IMPORTED = (np, fixture)
"""Modules that stay loaded when `pytester` forgets those that a run in this process imports."""

DATA = Path(__file__).parents[1] / "data"
AFTER, BEFORE = DATA / "cpu/adamw_step.after.txt", DATA / "cpu/adamw_step.before.txt"

pytest_plugins = ["pytester"]


HEAD = f"import pytest\nAFTER = {str(AFTER)!r}\nBEFORE = {str(BEFORE)!r}\n"
"""Begin of each file of tests: names of the dumps."""


def run(pytester: pytest.Pytester, text: str, *options: str, subprocess: bool = False) -> pytest.RunResult:
    """Run tests, in this process unless it matters what they load or that they are several processes."""
    pytester.makepyfile(HEAD + text)
    start = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
    return start("-q", "-rA", "--strict-markers", "-p", "no:cacheprovider", *options)


TESTS = """
def test_holds(hlo):
    hlo(AFTER).expect("params.count == 9", "collectives[kind=all-reduce].count == 2").expect("fusions.count == 17")

def test_fails(hlo):
    hlo(AFTER).expect("collectives.all-reduce.count == 0", "params.donated_bytes >= 180 KiB", "params.count == 9")

def test_before(hlo):
    hlo(BEFORE).expect("collectives.all-reduce.count == 0")

def test_facts(hlo):
    facts = hlo(open(AFTER).read()).facts
    assert facts["params.count"] == 9
    assert facts["collectives.all-to-all.count"] == 0
    assert facts["optimizer.clip_norm"] is None

def test_misspelt_fact(hlo):
    hlo(AFTER).facts["params.cuont"]

def test_misspelt_condition(hlo):
    hlo(AFTER).expect("collectives.all-gathr.count == 0")

def test_truncated(hlo):
    hlo(open(AFTER).read()[:9000]).expect("params.count == 9")

def test_missing(hlo):
    hlo("no_such_file.txt").expect("params.count == 9")

def test_empty(hlo):
    hlo("\\n").expect("params.count == 9")

def test_option(hlo):
    hlo.options(mesh="data=2,model=4")(AFTER).expect("collectives[axis=data].count == 1")

def test_misspelt_option(hlo):
    hlo.options(mash="data=2")(AFTER)

@pytest.mark.hlo_budget("params.bytes <= 1 KiB")
def test_over_budget(hlo):
    hlo(AFTER)

@pytest.mark.hlo_budget("params.bytes <= 4 KiB", "params.count == 9")
def test_within_budget(hlo):
    hlo(AFTER)

@pytest.mark.hlo_budget("params.byts <= 4 KiB")
def test_misspelt_budget(hlo):
    hlo(AFTER)

@pytest.mark.hlo_budget
def test_empty_budget(hlo):
    hlo(AFTER)

@pytest.mark.hlo_budget("params.bytes <= 4 KiB")
def test_budget_without_fixture():
    pass

@pytest.mark.hlo_budget("params.bytes <= 4 KiB")
def test_budget_without_program(hlo):
    pass

@pytest.mark.hlo_budget("params.bytes <= 4 KiB")
def test_skipped(hlo):
    pytest.skip("not here")

def test_findings(hlo):
    assert hlo(AFTER).findings("HI1*", least="warning") == []
    assert hlo(AFTER).findings() == hlo(AFTER).findings("*")

def test_unknown_rule(hlo):
    hlo(AFTER).findings("HI199")

def test_of_something_else(hlo):
    hlo(3)
"""
FAILED = {
    "test_fails": "2 of 3 conditions failed",
    "test_before": "BeforePartitioningError: collectives.all-reduce.count: *.compile()*",
    "test_misspelt_fact": "*UnknownFactError: there is no fact 'params.cuont'; did you mean 'params.count'*",
    "test_misspelt_condition": "*UsageError: expect:1:1: there is no fact 'collectives.all-gathr.count'; did you mean *",
    "test_truncated": "*UsageError: <text>:143: jit_step is truncated*",
    "test_missing": "*UsageError: no_such_file.txt: cannot be read*",
    "test_empty": "*UsageError: *no HLO module*",
    "test_misspelt_option": "*there is no option 'mash'; did you mean 'mesh'?",
    "test_over_budget": "params.bytes is 2.00 KiB, expected <= 1 KiB",
    "test_unknown_rule": "*there is no rule 'HI199'*",
    "test_of_something_else": "*UsageError: hlo takes a compiled or lowered program, a function, text or a path, not int",
}
ERRORS = {
    "test_misspelt_budget": "*test_*.py:*: hlo_budget:1:1: there is no fact 'params.byts'; did you mean 'params.bytes'*",
    "test_empty_budget": "*: hlo_budget takes conditions, such as 'memory.peak_bytes <= 2 GiB'",
    "test_budget_without_fixture": "*: hlo_budget needs the fixture hlo*",
    "test_budget_without_program": "hlo_budget checked nothing: *",
}


def block(lines: Sequence[str], name: str) -> list[str]:
    """Return the lines that pytest prints about a test that failed."""
    start = next(number for number, line in enumerate(lines) if re.fullmatch(rf"_+ (ERROR at \w+ of )?{name} _+", line))
    end = next(number for number, line in enumerate(lines) if number > start and re.match(r"_{3,} |={3,} ", line))
    return list(lines[start + 1 : end])


def test_what_holds_passes_and_a_failure_says_what_is_wrong(pytester: pytest.Pytester) -> None:
    lines = run(pytester, TESTS).outlines
    passed = [line.rpartition("::")[2] for line in lines if line.startswith("PASSED")]
    assert passed == [
        "test_holds",
        "test_facts",
        "test_option",
        "test_within_budget",
        "test_budget_without_program",
        "test_findings",
    ]
    assert [line for line in lines if line.startswith("SKIPPED")]
    for name, pattern in (FAILED | ERRORS).items():
        kind = "FAILED" if name in FAILED else "ERROR"
        assert any(re.match(rf"{kind} .*::{name}\b", line) for line in lines), name
        said = block(lines, name)
        pytest.LineMatcher(said).fnmatch_lines([f"*{pattern}*"])
        assert len(said) <= 17, name
        assert not any("HloModule" in line for line in said)
    pytest.LineMatcher(block(lines, "test_fails")).fnmatch_lines(
        [
            "jit_step: 2 of 3 conditions failed",
            "  collectives.all-reduce.count is 2, expected == 0",
            "    name *",
            "    all-reduce.4 * 516 B*",
            "  params.donated_bytes is 1.50 KiB, expected >= 180 KiB",
            "    number *",
            "         7 * no *",
        ]
    )


def test_an_environment_that_does_not_use_it_loads_nothing(pytester: pytest.Pytester) -> None:
    """Besides the version, only the plugin's own file is imported, also in processes of xdist."""
    text = """
import sys

def test_modules():
    loaded = {name for name in sys.modules if name.partition(".")[0] == "hlo_inspect"}
    assert loaded == {"hlo_inspect", "hlo_inspect.version", "hlo_inspect.testing", "hlo_inspect.testing.plugin"}
    assert not {"click", "rich", "yaml", "numpy", "jax"} & sys.modules.keys()

def test_use(hlo):
    hlo(AFTER).expect("params.count == 9")
    assert not {"click", "jax"} & sys.modules.keys()
"""
    run(pytester, text, "-n", "2", subprocess=True).assert_outcomes(passed=2)


def test_golden_files(pytester: pytest.Pytester) -> None:
    """A file is written on request; new names, numbers and lines leave it as it is; another program is described."""
    text = """
def renamed(path):
    text = open(path).read().replace("all-reduce.4", "sum.77").replace("programs.py", "moved.py")
    assert text.count("sum.77") > 1
    return text

def test_same(hlo):
    hlo(renamed(AFTER)).golden("golden/step.hlo")

def test_other(hlo):
    hlo(open(AFTER).read().replace("maximum", "minimum", 1).replace("constant(0.9)", "constant(0.8)")).golden("golden/step.hlo")
"""
    missing = run(pytester, text, "-k", "same")
    missing.stdout.fnmatch_lines(["there is no golden file step.hlo: pytest --hlo-update writes it"])
    written = run(pytester, text.replace("renamed(AFTER)", "open(AFTER).read()"), "-k", "same", "--hlo-update")
    written.assert_outcomes(passed=1)
    assert (pytester.path / "golden" / "step.hlo").read_text(encoding="utf-8").startswith("HloModule ")
    result = run(pytester, text)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["step.hlo is another program; pytest --hlo-update writes the new one", "  different programs"])


def test_the_configuration_of_the_project_holds(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml('[tool.hlo-inspect]\nmesh = "data=2,model=4"\n[tool.pytest.ini_options]\n')
    text = """
def test_axis(hlo):
    hlo(AFTER).expect("collectives[axis=data].count == 1")
"""
    run(pytester, text).assert_outcomes(passed=1)
    pytester.makepyprojecttoml('[tool.hlo-inspect]\nmash = "data=2"\n[tool.pytest.ini_options]\n')
    result = run(pytester, text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UsageError: *pyproject.toml:2:1: unknown key 'mash'*"])


def test_functions_are_compiled(pytester: pytest.Pytester) -> None:
    """A sum over an axis of a mesh of two devices is an all-reduce in the compiled program, and in none before."""
    text = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2,), ("data",))
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("data")))

def total(x, scale=1.0):
    return x.sum() * scale

def test_function(hlo):
    hlo(total, x).expect("collectives.all-reduce.count == 1")
    hlo(total, x, scale=2.0).expect("params.count == 2")

def test_jitted_lowered_and_compiled(hlo):
    jitted = jax.jit(total)
    for target in (lambda: hlo(jitted, x), lambda: hlo(jitted.lower(x)), lambda: hlo(jitted.lower(x).compile())):
        target().expect("collectives.all-reduce.count == 1", "module.devices == 2")

def test_text_of_a_lowered_program(hlo):
    hlo(jax.jit(total).lower(x).as_text(dialect="hlo")).expect("collectives.count == 0")

def test_arguments_of_text(hlo):
    hlo(AFTER, x)
"""
    result = run(pytester, text, subprocess=True)
    result.assert_outcomes(passed=2, failed=2)
    wrong = "*UsageError: only a function takes arguments, not str*"
    result.stdout.fnmatch_lines(["BeforePartitioningError: *.compile()*", wrong])
