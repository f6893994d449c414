"""The graphs of a module: an instruction is a node; a scope, fusion, loop or branch is the layer around its nodes.

The computation of a fusion, call, loop or branch that nothing else calls is a layer of its caller's graph. Each other
computation is a graph of its own. So each instruction of the text is one node, however often its computation is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import printable
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.instruction import Callee
from hlo_inspect.hlo.opcodes import Role
from hlo_inspect.hlo.values.op_names import scope_of
from hlo_inspect.lazy_pattern import lazy_pattern

_RUN: frozenset[Role] = frozenset({"run", "body", "condition", "branch", "fused"})
"""Roles of computations that can be layers. A reduction applies others to elements: they are graphs of their own."""
_NO_LAYER = lazy_pattern(r"p?jit\([^()]*\)|while|body|cond|branch_\d+_fun|closed_call|core_call")
"""Scopes that tell nothing: functions, and control flow that has layers of its own."""


class Node(NamedTuple):
    """A row of a view, its layer, the node of each operand by its number, and the called computations that are other graphs."""

    view: View
    row: int
    layer: str
    edges: Sequence[tuple[int, str]]
    calls: Sequence[str]


@dataclass
class LayeredGraph:
    """A computation, and all those that are layers of it: `layers` has the computation of each."""

    computation: str
    nodes: list[Node] = field(default_factory=list)
    layers: dict[str, str] = field(default_factory=dict)


class _Part(NamedTuple):
    """Content of a layer: the path of its caller (None in a fusion) and the nodes of its parameters' values."""

    computation: str
    layer: str = ""
    scope: Sequence[str] | None = ()
    arguments: Mapping[int, str] = {}


def node_id(view: View, row: int) -> str:
    """Return the id of an instruction: computation and name, and the row if the computation defines the name twice."""
    name = f"{view.computation.name}/{view.names[row]}"
    return printable(f"{name}:{row}" if row in view.ambiguous else name)


def find_graphs(context: Context) -> list[LayeredGraph]:
    """Return the graphs of a module that was read with its graph, the one of the entry first."""
    views, entry = context.views, context.module.entry
    sites, run = Counter[str](), set[str]()
    for view in map(views.for_computation, views.computations):
        for callee in (callee for row in view.rows.column.calling for callee in view.called_at(row)):
            sites[callee.name] += 1
            if callee.role in _RUN and callee.name in views.computations:
                run.add(callee.name)
    start = None if entry is None else entry.name
    builder = _GraphBuilder(context, {name for name in run if sites[name] == 1 and name != start})
    for name in sorted(views.computations, key=lambda name: (name != start, name in builder.nested)):
        builder.add(name)  # nested ones that are left over call each other in a circle
    return builder.graphs


class _GraphBuilder:
    """Builder of graphs. `nested` are the computations that become layers."""

    def __init__(self, context: Context, nested: set[str]) -> None:
        self.graphs: list[LayeredGraph] = []
        self.nested = nested
        self._views, self._provenances = context.views, context.provenances
        self._placed: set[str] = set()
        self._paths: dict[str, Sequence[str]] = {"": ()}

    def add(self, computation: str) -> None:
        """Add the graph of a computation, unless a graph holds it."""
        if computation in self._placed:
            return
        graph = LayeredGraph(computation)
        self.graphs.append(graph)
        waiting = [_Part(computation)]
        while waiting:
            part = waiting.pop()
            self._placed.add(part.computation)
            view = self._views.for_computation(part.computation)
            for row in range(len(view.names)):
                waiting += self._add_node(graph, part, view, row)

    def _add_node(self, graph: LayeredGraph, part: _Part, view: View, row: int) -> list[_Part]:
        """Add the node of a row. Return the computations that are layers around it."""
        path, called = self._path(view, row), view.called_at(row) if view.heads[row].may_call else []
        nested = [callee for callee in called if callee.name in self.nested and callee.name not in self._placed]
        layer = _join(part.layer, *_scopes(path, part.scope), *([view.names[row]] if nested else []))
        operands = enumerate(view.operand_rows(row))
        sources = {number: node_id(view, operand) for number, operand in operands if operand is not None}
        edges = dict(sources)
        number = view.parameter_number(row) if view.opcodes[row] == "parameter" else None
        if number is not None and number in part.arguments:
            edges[0] = part.arguments[number]
        parts: list[_Part] = []
        for callee in nested:
            content, (name, first) = self._views.for_computation(callee.name), _place_in(callee, called)
            read = {number: number if first is None else first for number in content.parameters_by_number}
            for operand in read.values():  # the parameter reads it instead
                edges.pop(operand, None)
            if content.root is not None:
                edges[len(sources) + len(parts)] = node_id(content, content.root)
            below = _join(layer, name)
            graph.layers[below] = callee.name
            arguments = {number: sources[operand] for number, operand in read.items() if operand in sources}
            parts.append(_Part(callee.name, below, None if callee.role == "fused" else path, arguments))
        calls = dict.fromkeys(callee.name for callee in called if callee not in nested)
        graph.nodes.append(Node(view, row, layer, [*edges.items()], [*calls]))
        return parts

    def _path(self, view: View, row: int) -> Sequence[str]:
        """Return the scopes of a row with the primitive; nothing without metadata or if the name joins several."""
        metadata = view.metadata(row)
        op_name = "" if metadata is None else self._provenances.get(metadata).origin.op_name
        if op_name not in self._paths:
            self._paths[op_name] = scope_of(op_name).path
        return self._paths[op_name]


def _place_in(callee: Callee, called: Sequence[Callee]) -> tuple[str, int | None]:
    """Return the name of a layer below the caller's, and the operand of its parameters if all are of one."""
    if callee.role == "branch":
        branch = [other for other in called if other.role == "branch"].index(callee)
        return f"branch {branch}", branch + 1
    return ("", None) if callee.role in {"run", "fused"} else (callee.role, 0)


def _scopes(path: Sequence[str], outer: Sequence[str] | None) -> list[str]:
    """Return the scopes of an instruction below those of its computation's caller; none in a fusion."""
    if outer is None:
        return []
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, outer, strict=False)))
    return [scope for scope in path[shared:-1] if not _NO_LAYER.fullmatch(scope)]


def _join(layer: str, *names: str) -> str:
    """Return a path of layers. A slash within a name is another character there."""
    return "/".join(filter(None, (layer, *(printable(name).replace("/", "∕") for name in names))))
