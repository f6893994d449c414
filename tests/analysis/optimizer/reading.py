"""The compiled steps of tests/data/optimizers, as texts, facts and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.graph import COMMUTATIVE
from hlo_inspect.analysis.optimizer.overview import Overview
from hlo_inspect.analysis.optimizer.steps import STEPS
from hlo_inspect.analysis.optimizer.text import Body, Statement
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo.module import Computation, Module, Wants
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import open_source
from hlo_inspect.report.model import Report, Value

DATA = Path(__file__).parents[2] / "data" / "optimizers"
STAGES = ("before", "after")
Facts = dict[str, Value]

ADAM_MOMENTS: Facts = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}
ADAM_CONSTANTS: Facts = {"update_count": 2, "decayed_count": 0, "learning_rate": 0.001, **ADAM_MOMENTS}
"""What make_optimizers.py gives to the programs of Adam and its kin, if nothing else."""


@cache
def text_of(name: str) -> str:
    return (DATA / f"{name}.hlo").read_text(encoding="utf-8")


def module_of(text: str) -> Module:
    (module,) = read_modules(open_source(text), Wants(graph=True, entry=True))
    return module


def statement_of(head: str, tail: str) -> Statement:
    """The statement of the only row of a computation: `head(tail`."""
    computation = Computation("f", 1, is_entry=False)
    computation.keep_rows([("", "x", head, tail)], 2)
    statement = Body(View(computation)).statement("x")
    assert statement is not None
    return statement


def overview_of(text: str) -> Overview:
    return Context(module_of(text)).optimizer


def report_of(text: str) -> Report:
    return hlo_inspect.inspect(text, ("optimizer",))


def facts_of(text: str) -> Facts:
    """The facts without the bytes, as far as they are known, without `optimizer.` before the names."""
    facts = report_of(text).facts
    names = [name for name in facts if name.startswith("optimizer.") and not name.endswith("_bytes")]
    return {name.removeprefix("optimizer."): facts[name] for name in names if facts[name] is not None}


def rules_of(text: str) -> list[str]:
    """The rule of each weight."""
    return [row.rule for row in overview_of(text).rows]


def changed(text: str, pattern: str, by: str | Callable[[re.Match[str]], str], *, count: int = 0) -> str:
    """The text with something else in it; it has to be there."""
    result, times = re.subn(pattern, by, text, count=count)
    assert times
    return result


ADD = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
ADD += "  ROOT %sum = f32[] add(%a, %b)\n}\n\n"


def entry_of(*lines: str, before: str = "", header: str = "") -> str:
    """A module of an adder, of what stands `before` the entry, and of an entry of these lines."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule test{header}\n\n{ADD}{before}\nENTRY %main {{\n{body}}}\n"


def flow_of(text: str) -> tuple[Flow, int]:
    """The expressions of a module, and the frame of its entry."""
    module = module_of(text)
    assert module.entry is not None
    flow = Flow(module.computations, STEPS)
    frame = flow.region(module.entry.name)
    assert frame is not None
    return flow, frame


def written(flow: Flow, node: int) -> str:
    """An expression in full."""
    graph = flow.graph
    source = graph.sources.get(node)
    if source is not None:
        return f"p{source[1]}" + "".join(f".{i}" for i in source[2])
    value = graph.value(node)
    if value is not None:
        return f"{value:g}"
    if node in graph.places:
        return f"<{graph.places[node][1]}>"
    parts = [written(flow, arg) for arg in graph.args[node]]
    return f"{graph.ops[node]}({', '.join(sorted(parts) if graph.ops[node] in COMMUTATIVE else parts)})"


def root_of(text: str, *index: int) -> str:
    """The expression of an element of the entry's root."""
    flow, frame = flow_of(text)
    return written(flow, flow.node(flow.root(frame, index)))
