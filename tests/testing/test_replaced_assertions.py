"""The assertions that people write on compiled text, and the line of the fixture that replaces each.

Each runs on a dump on which the old one gives the wrong verdict. The truths are those of `tests/data/expected.json`, of XLA, or
counted by eye in the dump. `docs/ci.md` has the same list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hlo_inspect.testing.fixture import Hlo
from hlo_inspect.testing.hlo_program import BeforePartitioningError

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
XLA = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"]
MEMORY = json.loads((DATA / "memory" / "expected.json").read_text(encoding="utf-8"))


class Replaced(NamedTuple):
    """An assertion on text (`old`, as people write it) and the condition for it; `passes` is the right verdict."""

    dump: str
    written: str
    old: Callable[[str], bool]
    condition: str
    passes: bool


REPLACED = (
    # an all-gather in a loop of three layers runs three times
    Replaced(
        "cpu/scan_forward.after.txt",
        'text.count("all-gather") == 1',
        lambda text: text.count("all-gather") == 1,
        "collectives.all-gather.executed_count == 1",
        False,
    ),
    # two gathers stand there as four instructions, with their names, users and op_names
    Replaced(
        "gpu/gathered_matmul.after.txt",
        'text.count("all-gather") == 2',
        lambda text: text.count("all-gather") == 2,
        "collectives.all-gather.count == 2",
        True,
    ),
    # TPU prints a reduce-scatter as a fusion that holds an all-reduce
    Replaced(
        "tpu/gathered_matmul.after.txt",
        '"reduce-scatter(" in text',
        lambda text: "reduce-scatter(" in text,
        "collectives.reduce-scatter.count == 1",
        True,
    ),
    Replaced(
        "tpu/gathered_matmul.after.txt",
        '"all-reduce" not in text',
        lambda text: "all-reduce" not in text,
        "collectives.all-reduce.count == 0",
        True,
    ),
    # one of two parameters is donated
    Replaced(
        "cpu/scan_fsdp.after.txt",
        '"input_output_alias" in text',
        lambda text: "input_output_alias" in text,
        "params[donated=no].count == 0",
        False,
    ),
    # names and kinds hold the word too
    Replaced(
        "cpu/adamw_step.after.txt",
        'text.count("fusion") == 17',
        lambda text: text.count("fusion") == 17,
        "fusions.count == 17",
        True,
    ),
    # a call of TopK is one instruction whose name and users hold the word
    Replaced(
        "cpu/array_operators.after.txt",
        'text.count("custom-call") == 1',
        lambda text: text.count("custom-call") == 1,
        "custom_calls.count == 1",
        True,
    ),
    # op_name keeps the loop that a program was written with; the two loops of this one have names besides
    Replaced(
        "cpu/control_flow.after.txt",
        'text.count("while") == 2',
        lambda text: text.count("while") == 2,
        "opcode.while == 2",
        True,
    ),
    # TPU compiles matrix products to convolutions
    Replaced(
        "tpu/gathered_matmul.after.txt",
        '" dot(" in text',
        lambda text: " dot(" in text,
        "cost.matmul_flops >= 1 GFLOP",
        True,
    ),
    # three sums go along one axis; two of them print its groups as [4,2]<=[2,4]T(1,0)
    Replaced(
        "jax_0_5_0/sgd_unused.after.txt",
        'text.count("replica_groups={{0,4},{1,5},{2,6},{3,7}}") == 3',
        lambda text: text.count("replica_groups={{0,4},{1,5},{2,6},{3,7}}") == 3,
        "collectives[axis=data].count == 3",
        True,
    ),
    # XLA counts the body of a loop once
    Replaced(
        "cpu/scan_forward.after.txt",
        'compiled.cost_analysis()["flops"] <= 300',
        lambda _: bool(XLA["cpu/scan_forward.after.txt"]["facts"]["cost.flops"] <= 300),
        "cost.executed_flops <= 300 FLOP",
        False,
    ),
    # on CPU XLA's peak is without temporaries
    Replaced(
        "memory/cpu_scan.hlo",
        "compiled.memory_analysis().peak_memory_in_bytes <= 40 << 20",
        lambda _: bool(MEMORY["cpu_scan"]["peak_memory"] <= 40 << 20),
        "memory.peak_bytes <= 40 MiB",
        False,
    ),
)


@pytest.mark.parametrize("replaced", REPLACED, ids=[replaced.written for replaced in REPLACED])
def test_the_condition_gives_the_right_verdict_where_the_text_gave_none(hlo: Hlo, replaced: Replaced) -> None:
    path = DATA / replaced.dump
    program = hlo.options(mesh="data=2,model=4")(path) if "axis" in replaced.condition else hlo(path)
    if replaced.passes:
        program.expect(replaced.condition)
    else:
        with pytest.raises(pytest.fail.Exception, match="1 of 1 condition failed"):
            program.expect(replaced.condition)


@pytest.mark.parametrize("replaced", REPLACED, ids=[replaced.written for replaced in REPLACED])
def test_the_old_assertion_is_wrong_on_the_dump(replaced: Replaced) -> None:
    assert replaced.old((DATA / replaced.dump).read_text(encoding="utf-8")) is not replaced.passes


@pytest.mark.parametrize("written", ['"all-reduce" not in text', 'text.count("all-reduce") == 0'])
def test_before_partitioning_the_old_assertion_can_only_pass(hlo: Hlo, written: str) -> None:
    """The step has two all-reduces once it is compiled."""
    path = DATA / "cpu" / "adamw_step.before.txt"
    assert eval(written, {"text": path.read_text(encoding="utf-8")})  # noqa: S307 - two texts of this file
    with pytest.raises(BeforePartitioningError, match=r"\.compile\(\)"):
        hlo(path).expect("collectives.all-reduce.count == 0")
    with pytest.raises(BeforePartitioningError, match=r"\.compile\(\)"):
        assert hlo(path).facts["collectives.all-reduce.count"] == 0
    hlo(DATA / "cpu" / "adamw_step.after.txt").expect("collectives.all-reduce.count == 2")


def test_the_documentation_has_the_list() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for replaced in REPLACED:
        assert replaced.written in text
        assert replaced.condition in text
