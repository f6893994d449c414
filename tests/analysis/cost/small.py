"""Small texts, written in a test, and their cost."""

from __future__ import annotations

from hlo_inspect.analysis.cost.figures import FIGURES, Tally
from hlo_inspect.analysis.cost.module_cost import ModuleCost, module_cost
from hlo_inspect.analysis.cost.operation import Operation
from hlo_inspect.figure import Number, exact, least
from hlo_inspect.graph import calls
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants

ADD = """%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""

Figures = tuple[Number | None, ...]
"""FLOPs, transcendentals, FLOPs of matrix multiplications, bytes."""


def module_of(*lines: str, before: str = "", header: str = "") -> Module:
    """Read the module of an entry of these lines, with `%add` and the text `before` it."""
    body = "".join(f"  {line}\n" for line in lines)
    text = f"HloModule test{header}\n\n{ADD}\n{before}\nENTRY %main {{\n{body}}}\n"
    (module,) = read_modules(open_source(text), calls.WANTS | Wants(graph=True))
    return module


def cost_of(*lines: str, before: str = "") -> ModuleCost:
    """Return the cost of that module."""
    module = module_of(*lines, before=before)
    return module_cost(module, CallGraph(module))


def as_xla(*lines: str, before: str = "") -> Figures:
    """Return the figures as XLA counts them."""
    cost = cost_of(*lines, before=before).as_xla
    return tuple(exact(cost.bounds(figure)) for figure in FIGURES)


def executed(cost: ModuleCost) -> Figures:
    """Return the figures of one step, which the rows of every table add up to."""
    figures = tuple(exact(cost.step[figure]) for figure in FIGURES)
    for tally in (cost.opcodes, cost.tally("kind"), cost.tally("phase"), cost.tally("source"), cost.tally("scope")):
        assert [least(tally.bounds(figure)) for figure in FIGURES] == [least(cost.step[figure]) for figure in FIGURES]
    return figures


def by_label(tally: Tally) -> dict[str, tuple[int, ...]]:
    """Return the known sums of each label, one for each of `FIGURES`."""
    return {label: part.known for label, part in tally.by_label()}


def view_of(*lines: str, before: str = "") -> View:
    """Return the view of the entry, whose first line is line 11."""
    entry = module_of(*lines, before=before).entry
    assert entry is not None
    return View(entry)


def operation(*lines: str) -> Operation:
    """Return the last of these lines as an operation."""
    return Operation(view_of(*lines), len(lines) - 1)
