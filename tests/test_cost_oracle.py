"""Against XLA's own HloCostAnalysis (jaxlib): modules of every opcode, and the dumps.

XLA counts minus one FLOP and minus one byte for each custom call, here nothing is counted.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from hlo_inspect.analysis.cost.traversal import module_cost
from hlo_inspect.hlo.module import Wants
from hlo_inspect.hlo.opcodes import OPCODES
from tests.analysis.cost.every_opcode import generated
from tests.hlo.reading import module
from tests.test_oracle import COMPARED

pytest.importorskip("jaxlib")

HERE = Path(__file__).parent
PROGRAM = HERE / "analysis" / "cost" / "xla_costs.py"
SEED, EACH, MIXED = 20, 3, 150

# What this jaxlib does not have, or costs by a rule of ours.
NOT_GENERATED = {"bitcast-move", "cross-replica-sum", "custom-call", "mulhi", "trace", "tuple-select"}

Figures = tuple[int | None, ...]


def by_xla(texts: list[str]) -> list[tuple[float, ...]]:
    command = [sys.executable, str(PROGRAM)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def by_us(source: str | Path) -> Figures:
    read = module(source, Wants(graph=True))
    cost = module_cost(read, dict.fromkeys(read.computations, 1), str).as_xla
    return tuple(cost.total(figure) for figure in ("flops", "transcendentals", "bytes"))


@cache
def modules() -> list[tuple[str, str]]:
    return list(generated(SEED, EACH, MIXED))


def test_every_opcode_is_generated() -> None:
    opcodes = {opcode for _, text in modules() for opcode in re.findall(r" = (?:\(.*?\) |\S+ )([a-z][a-z0-9-]*)\(", text)}
    assert OPCODES - opcodes == NOT_GENERATED


def test_generated_modules_cost_what_xla_says() -> None:
    """To the last digit: none of them is so large that XLA rounds."""
    theirs = by_xla([text for _, text in modules()])
    assert len(theirs) == len(modules()) > 300
    for (about, text), expected in zip(modules(), theirs, strict=True):
        assert (about, text, by_us(text)) == (about, text, expected)


def test_dumps_cost_what_xla_says() -> None:
    """To seven digits, as XLA rounds within instructions too; custom calls aside."""
    texts = [(HERE / "data" / name).read_bytes().decode() for name in COMPARED]
    for name, text, theirs in zip(COMPARED, texts, by_xla(texts), strict=True):
        calls = len(re.findall(r" custom-call(?:-start)?\(", text))
        for ours, their, slack in zip(by_us(HERE / "data" / name), theirs, (calls, 0, calls), strict=True):
            assert ours == pytest.approx(their, rel=2e-7, abs=slack), name
