"""The neighbourhood of 200 instructions against XLA's own parser (jaxlib): the same operands and users."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.passes.show import Show
from hlo_inspect.request import Request
from tests.hlo.reading import module
from tests.hlo.test_against_xla import ask_xla

pytest.importorskip("jaxlib")

DATA = Path(__file__).parents[1] / "data"
DUMPS = (
    "cpu/adamw_step.after.txt",
    "cpu/adamw_step.before.txt",
    "cpu/scan_fsdp.after.txt",
    "gpu/bf16_master.after.txt",
    "gpu/collectives.after.txt",
    "cpu/collectives.before.txt",
    "jax_0_5_0/sgd_unused.after.txt",
    "cpu/scan_forward.before.txt",
    "tpu/gathered_matmul.after.txt",
    "tpu/scan_forward.after.txt",
)
OF_EACH = 20

OTHERS = {"after-all", "call", "conditional", "constant", "custom-call", "domain", "get-tuple-element", "opt-barrier"}
OTHERS |= {"parameter", "tuple", "while"}
"""Opcodes of which the neighbours are others than the operands and users in the text, beside bitcasts and fusions."""


def hands_on(opcode: str) -> bool:
    return opcode in OTHERS or opcode.endswith("-done") or opcode.startswith("async")


def behind_bitcasts(names: list[str], further: dict[str, list[str]], opcodes: dict[str, str]) -> set[str]:
    """Return the instructions, with those behind a bitcast in its place."""
    reached, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if opcodes[name] == "bitcast":
            waiting += further[name]
        else:
            reached.add(name)
    return reached


def test_the_neighbours_are_those_of_xla() -> None:
    compared = stepped = 0
    for name, theirs in zip(DUMPS, ask_xla(*(str(DATA / name) for name in DUMPS)), strict=True):
        context = Context(module(DATA / name, Show.wants))
        opcodes: dict[str, str] = {}
        operands: dict[str, list[str]] = {}
        users: dict[str, list[str]] = defaultdict(list)
        for computation_of_xla in theirs["computations"].values():
            for instruction, (opcode, _, its_operands, _) in computation_of_xla["instructions"].items():
                opcodes[instruction], operands[instruction] = opcode, its_operands
                for operand in dict.fromkeys(its_operands):
                    users[operand].append(instruction)
        views = [context.views.for_computation(computation) for computation in context.module.computations]
        lines = [(row[1], line) for view in views for row, line in zip(view.rows, view.lines, strict=True) if row[1] in opcodes]
        for instruction, line in lines[:: max(len(lines) // OF_EACH, 1)][:OF_EACH]:
            context.request = Request("show", name=str(line), depth=1, quick=True)
            names = {
                table.name: [str(record["name"]) for record in table.records()]
                for table in Show().run(context).tables
                if table.name in {"operands", "users", "feeds", "reads"}
            }
            assert names["operands"] == operands[instruction], (name, line)
            assert sorted(names["users"]) == sorted(users[instruction]), (name, line)
            compared += 1
            above = behind_bitcasts(operands[instruction], operands, opcodes)
            below = behind_bitcasts(users[instruction], users, opcodes)
            around = [instruction, *above, *below]
            is_fused = "fusion" in {opcodes[name_] for name_ in above} | {
                opcodes[instruction]
            }  # a fusion may pass an operand on
            if (
                below
                and opcodes[instruction] != "bitcast"
                and not is_fused
                and not any(hands_on(opcodes[name_]) for name_ in around)
            ):
                assert (set(names["feeds"]), set(names["reads"])) == (above, below), (name, line)
                stepped += 1
    assert compared == OF_EACH * len(DUMPS)
    assert stepped >= 9
