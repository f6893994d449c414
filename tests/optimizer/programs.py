"""The compiled steps of tests/data/optimizers, as texts, facts and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import COMMUTATIVE
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.overview import Overview
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[1] / "data" / "optimizers"
STAGES = ("before", "after")
Facts = dict[str, Value]

ADAM_MOMENTS: Facts = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}
"""The constants that make_optimizers.py gives to the programs of Adam and its kin, if nothing else."""


DONATED = ", input_output_alias={ {}: (0, {}, may-alias) }"
"""Header of a step that returns the new value of parameter 0 in its buffer."""


@cache
def text_of(name: str) -> str:
    return (DATA / f"{name}.hlo").read_text(encoding="utf-8")


def module_of(text: str) -> Module:
    (module,) = read_modules(open_source(text), Wants(graph=True, entry=True))
    return module


def overview_of(text: str) -> Overview:
    return Context(module_of(text)).optimizer


def report_of(text: str) -> Report:
    return hlo_inspect.inspect(text, ("optimizer",))


def facts_of(text: str) -> Facts:
    """Return the known facts without the bytes, and without `optimizer.` before the names.

    `frozen_count` is left out if it is 0.
    """
    facts = dict(report_of(text).facts)
    facts["optimizer.frozen_count"] = facts["optimizer.frozen_count"] or None
    names = [name for name in facts if name.startswith("optimizer.") and not name.endswith("_bytes")]
    return {name.removeprefix("optimizer."): facts[name] for name in names if facts[name] is not None}


def rules_of(text: str) -> list[str]:
    """Return the rule of each weight."""
    return [row.rule for row in overview_of(text).rows]


def changed(text: str, pattern: str, by: str | Callable[[re.Match[str]], str], *, count: int = 0) -> str:
    """Replace a pattern of the text; it must occur."""
    result, times = re.subn(pattern, by, text, count=count)
    assert times
    return result


ADD = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
ADD += "  ROOT %sum = f32[] add(%a, %b)\n}\n\n"


def entry_of(*lines: str, before: str = "", header: str = "") -> str:
    """Return a module of an adder, the text `before` the entry, and an entry of these lines."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule test{header}\n\n{ADD}{before}\nENTRY %main {{\n{body}}}\n"


def flow_of(text: str) -> tuple[Dataflow, int]:
    """Return the expressions of a module, and the frame of its entry."""
    module = module_of(text)
    assert module.entry is not None
    flow = Dataflow(Views(module.computations))
    frame = flow.frames.open(module.entry.name)
    assert frame is not None
    return flow, frame


def written(flow: Dataflow, node: int) -> str:
    """Format an expression in full."""
    graph = flow.graph
    source = graph.sources.get(node)
    if source is not None:
        return f"p{source[1]}" + "".join(f".{i}" for i in source[2])
    value = graph.value(node)
    if value is not None:
        return f"{value:g}"
    if node in graph.places:
        return f"<{flow.frames.name(graph.places[node])}>"
    parts = [written(flow, arg) for arg in graph.args[node]]
    return f"{graph.ops[node]}({', '.join(sorted(parts) if graph.ops[node] in COMMUTATIVE else parts)})"


def root_of(text: str, *index: int) -> str:
    """Format the expression of an element of the entry's root."""
    flow, frame = flow_of(text)
    return written(flow, flow.node(flow.frames.root(frame, index)))


SCALARS = {"half": 0.5, "tenth": 0.1, "nine": 0.9, "rate": -0.01, "one": 1.0, "zero": 0.0, "tiny": 1e-8, "two": 2.0}


def step_of(*lines: str, outputs: str = "new", states: int = 0, donated: bool = True) -> str:
    """Return a module with a weight `w` (parameter 0), moments `m1`, `m2`, ... of its shape, a counter `t`, a batch `x`.

    `states` is the number of moments, `g` the gradient. Each of `SCALARS` is an array of the weight's shape, and a scalar with
    `_s` behind its name. `outputs` are names: the first succeeds `w`, those behind it the moments.
    """
    parameters = ["%w = f32[4,4]{1,0} parameter(0)"]
    parameters += [f"%m{n} = f32[4,4]{{1,0}} parameter({n})" for n in range(1, states + 1)]
    parameters += [f"%t = s32[] parameter({states + 1})", f"%x = f32[9,4]{{1,0}} parameter({states + 2})"]
    for name, value in SCALARS.items():
        parameters.append(f"%{name}_s = f32[] constant({value})")
        parameters.append(f"%{name} = f32[4,4]{{1,0}} broadcast(%{name}_s), dimensions={{}}")
    parameters.append("%h = f32[9,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    parameters.append("%g = f32[4,4]{1,0} dot(%x, %h), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
    names = outputs.split()
    shapes = ", ".join("f32[4,4]{1,0}" for _ in names)
    root = f"ROOT %results = ({shapes}) tuple({', '.join(f'%{name}' for name in names)})"
    aliases = ", ".join(f"{{{n}}}: ({n}, {{}}, may-alias)" for n in range(len(names)))
    header = f", input_output_alias={{ {aliases} }}" if donated else ""
    return entry_of(*parameters, *(_written(line) for line in lines), root, header=header)


def _written(line: str) -> str:
    """Return `name = opcode operands` as HLO; a line with a shape stays as it is."""
    name, _, rest = line.partition(" = ")
    opcode, *operands = rest.split()
    if "[" in rest:
        return f"%{name} = {rest}"
    return f"%{name} = f32[4,4]{{1,0}} {opcode}({', '.join(f'%{operand}' for operand in operands)})"


DESCENT = ("u = multiply g rate", "new = add w u")
ADAM = (
    "a = multiply m1 nine",
    "b = multiply g tenth",
    "m = add a b",
    "c = multiply m2 half",
    "d = multiply g g",
    "e = multiply d half",
    "v = add c e",
    "s = sqrt v",
    "k = add s tiny",
    "q = divide m k",
    "u = multiply q rate",
    "new = add w u",
)
"""Adam without bias correction: b1 0.9, b2 0.5, rate 0.01, epsilon 1e-8."""


def adam_of(number: int, weight: str, gradient: str) -> list[str]:
    """Return the lines of `ADAM` for one of several weights: number 0 has the moments `m1` and `m2`, number 1 `m4` and `m5`."""
    own = {"g": gradient, "w": weight, "m1": f"m{3 * number + 1}", "m2": f"m{3 * number + 2}"}
    made = {line.partition(" = ")[0] for line in ADAM}
    return [" ".join(f"{word}_{number}" if word in made else own.get(word, word) for word in line.split()) for line in ADAM]


class ScheduleCounter:
    """`c` is the counter's node; calls make nodes, with numbers as constants."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.c = self.graph.input((0, 0, ()), 1)

    def __call__(self, op: str, *args: int | float, how: str | None = None) -> int:
        nodes = [arg if isinstance(arg, int) else self.graph.constant(arg) for arg in args]
        return self.graph.make(op, tuple(nodes), how)

    def form(self, node: int) -> tuple[NormalForms, Sum, int]:
        """Return the forms, that of a node, and the counter's atom."""
        forms = NormalForms(self.graph)
        return forms, forms.form(node), forms.leaf(self.c)
