"""Against XLA's own HloCostAnalysis (jaxlib): modules of every opcode, and the dumps.

XLA counts minus one FLOP and minus one byte for each custom call, here nothing is counted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.cost.module_cost import module_cost
from hlo_inspect.figure import Number, exact
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.shape_inference import INFERABLE
from hlo_inspect.hlo.opcodes import OPCODES
from hlo_inspect.hlo.wants import Wants
from tests.analysis.cost.every_opcode import MAKERS, generated
from tests.hlo.reading import module
from tests.hlo.test_against_xla import COMPARED, OTHER_OPCODES
from tests.xla_sizes import count_tuples_as

pytest.importorskip("jaxlib")


@pytest.fixture(autouse=True)
def sizes_of_this_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    count_tuples_as(version("jaxlib"), monkeypatch)


DATA = Path(__file__).parents[2] / "data"
PROGRAM = Path(__file__).with_name("xla_costs.py")
SEED = int(os.environ.get("HLO_INSPECT_ORACLE_SEED", "20"))
MODULES = int(os.environ.get("HLO_INSPECT_ORACLE_MODULES", "420"))
"""The number of generated modules: `EACH` of each opcode, the others mixed. `HLO_INSPECT_ORACLE_MODULES=5000` takes minutes."""
EACH = 3

NOT_GENERATED = OTHER_OPCODES | {"custom-call", "mulhi"}
"""Opcodes that this jaxlib does not have, or costs by a rule of ours."""

SHAPE_THAT_XLA_INFERS = re.compile(
    rf" = (?:\((?:[^()]|\([^()]*\))*\)|\S+) ((?:{'|'.join(sorted(INFERABLE - {'opt-barrier'}, reverse=True))})\()", re.ASCII
)

Figures = tuple[Number | None, ...]
Opcodes = dict[str, int]


def by_xla(texts: list[str]) -> list[tuple[Figures, Opcodes]]:
    command = [sys.executable, str(PROGRAM)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [(tuple(figures), opcodes) for *figures, opcodes in answers]


def by_us(source: str | Path) -> tuple[Figures, Opcodes]:
    read = module(source, Wants(graph=True))
    cost = module_cost(read, CallGraph(read)).as_xla
    return tuple(exact(cost.bounds(figure)) for figure in ("flops", "transcendentals", "bytes")), as_xla_holds(
        read.opcode_counts
    )


def as_xla_holds(printed: Opcodes) -> Opcodes:
    """XLA holds `reduce-scatter-start` as an async-start and a computation of the reduce-scatter and its parameter."""
    counts = Counter(printed)
    starts, dones = counts.pop("reduce-scatter-start", 0), counts.pop("reduce-scatter-done", 0)
    wrapped = {"async-start": starts, "async-done": dones, "reduce-scatter": starts, "parameter": starts}
    return +(counts + Counter(wrapped))


@cache
def modules() -> list[tuple[str, str]]:
    return list(generated(SEED, EACH, MODULES - EACH * len(MAKERS)))


def test_every_opcode_is_generated() -> None:
    opcodes = {opcode for _, text in modules() for opcode in re.findall(r" = (?:\(.*?\) |\S+ )([a-z][a-z0-9-]*)\(", text)}
    assert OPCODES - opcodes == NOT_GENERATED
    assert {opcode for opcode in opcodes if opcode not in OPCODES} == {"reduce-scatter-done", "reduce-scatter-start"}


def test_generated_modules_cost_what_xla_says() -> None:
    """To the last digit: none of them is so large that XLA rounds. Opcodes as XLA's parser counts them."""
    theirs = by_xla([text for _, text in modules()])
    assert len(theirs) == len(modules()) == MODULES
    for (about, text), expected in zip(modules(), theirs, strict=True):
        assert (about, text, by_us(text)) == (about, text, expected)


def test_modules_without_the_shapes_that_xla_infers_cost_what_xla_says() -> None:
    texts = [(about, SHAPE_THAT_XLA_INFERS.sub(r" = \1", text)) for about, text in modules()]
    shorter = [(about, text) for (about, text), (_, whole) in zip(texts, modules(), strict=True) if text != whole]
    assert len(shorter) > MODULES // 2
    for (about, text), (expected, _) in zip(shorter, by_xla([text for _, text in shorter]), strict=True):
        assert (about, text, by_us(text)[0]) == (about, text, expected)


def test_dumps_cost_what_xla_says() -> None:
    """To seven digits, as XLA rounds within instructions too; custom calls aside."""
    texts = [(DATA / name).read_bytes().decode() for name in COMPARED]
    for name, text, (theirs, _) in zip(COMPARED, texts, by_xla(texts), strict=True):
        calls = len(re.findall(r" custom-call(?:-start)?\(", text))
        for ours, their, slack in zip(by_us(DATA / name)[0], theirs, (calls, 0, calls), strict=True):
            assert ours == pytest.approx(their, rel=2e-7, abs=slack), name


DOT = """HloModule dot

ENTRY main {
  a = LEFT[3,32,16] parameter(0)
  b = RIGHT[3,16,8] parameter(1)
  ROOT d = f32[3,32,8] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
}
"""


def test_dots_of_a_type_have_the_flops_that_xla_counts() -> None:
    """Each module is one dot, whose FLOPs are all that XLA counts: they are those of the type, and of no other."""
    pairs = {"f32": ("f32", "f32"), "bf16": ("bf16", "bf16"), "f8e4m3fn": ("f8e4m3fn", "f8e4m3fn"), "mixed": ("bf16", "f32")}
    texts = [DOT.replace("LEFT", left).replace("RIGHT", right) for left, right in pairs.values()]
    for name, text, ((flops, *_), _) in zip(pairs, texts, by_xla(texts), strict=True):
        facts = hlo_inspect.inspect(text, "cost").facts
        by_type = {fact: value for fact, value in facts.items() if fact.startswith("cost.matmul_flops.")}
        assert by_type == {f"cost.matmul_flops.{name}": flops}
        assert flops == 2 * 3 * 32 * 8 * 16
