"""The switches of optimizations: each works, and answers do not depend on it."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.switches import SWITCHES, switched_off
from hlo_inspect.cli.main import run

DATA = Path(__file__).parents[1] / "data"
DUMPS = [str(DATA / name) for name in ("cpu/scan_fsdp.after.txt", "gpu/bf16_master.after.txt")]
COMMANDS = (
    ("summary", *DUMPS, "--format", "json"),
    ("top", *DUMPS, "--profile", "h100-sxm"),
    ("time", *DUMPS, "--profile", "h100-sxm", "--format", "json"),
    *[(name, *DUMPS, "--format", "json") for name in ("collectives", "optimizer", "cost", "memory", "fingerprint", "diff")],
)


Answers = list[tuple[int, str]]


def answers() -> Answers:
    """Return the status and the output of each command."""
    results = []
    for command in COMMANDS:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = run(list(command))
        results.append((status, output.getvalue()))
    return results


@pytest.fixture(scope="module")
def given() -> Answers:
    """Return the answers with all optimizations."""
    return answers()


@pytest.mark.parametrize("name", SWITCHES)
def test_answers_are_the_same_without_an_optimization(name: str, given: Answers) -> None:
    assert {status for status, _ in given} <= {0, 1}
    assert all(output for _, output in given)
    with switched_off(name):
        assert answers() == given


@pytest.mark.parametrize("name", SWITCHES)
def test_a_function_is_replaced_as_long_as_its_switch_is_set(name: str) -> None:
    def functions() -> list[object]:
        members = []
        for place in SWITCHES[name].replaced:
            module, _, path = place.partition(":")
            *classes, attribute = path.split(".")
            owner = import_module(f"hlo_inspect.{module}")
            for class_name in classes:
                owner = getattr(owner, class_name)
            members.append(vars(owner)[attribute])
        return members

    given = functions()
    with switched_off(name):
        assert all(old is not new for old, new in zip(given, functions(), strict=True))
    assert functions() == given


def test_every_switch_has_its_row_in_the_page() -> None:
    page = (Path(__file__).parents[2] / "benchmarks/README.md").read_text()
    assert [name for name in SWITCHES if f"| {name} |" not in page] == []
