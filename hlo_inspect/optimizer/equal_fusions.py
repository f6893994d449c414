"""Fusions whose computations differ only in names: a model with many equal layers has one for each weight.

The first two of a kind are read. The expression of the others is a copy of the second one with their own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hlo_inspect.graph.fingerprints import Fingerprints
from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.read.header import ShapeIndex
from hlo_inspect.optimizer.graph import Graph

MAX_ROWS = 1 << 8  # what is larger is not one of many

Argument = tuple[int, ShapeIndex]
"""The number of a parameter and an index into it."""

MadeNode = tuple[int, str, tuple[int, ...], Hashable, int]
"""A node to make anew, and what it is made of: operation, operands, attribute and size."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """An expression over arguments: the root, the nodes to make anew, operands first, and the nodes of the arguments."""

    root: int
    made: tuple[MadeNode, ...]
    arguments: tuple[tuple[int, Argument], ...]

    def apply(self, graph: Graph, known: dict[int, int]) -> int:
        """The expression with other nodes in place of its arguments; `known` holds these by the argument's node."""
        for node, op, args, attribute, size in self.made:
            known[node] = graph.make(op, tuple(map(known.get, args, args)), attribute, size)
        return known.get(self.root, self.root)


@dataclass(slots=True)
class _Kind:
    """Computations of one fingerprint: how many were seen, and the frame of the one that was read for all."""

    met: int = 0
    frame: int | None = None
    recipes: dict[ShapeIndex, Recipe | None] = field(default_factory=dict)


class EqualFusions:
    """The fusions of a module that differ only in names. What is read of them becomes nodes of `graph`."""

    def __init__(self, graph: Graph, fingerprints: Fingerprints, frames: Frames) -> None:
        self._graph = graph
        self._fingerprints = fingerprints
        self._frames = frames
        self._kinds: dict[int, _Kind] = {}
        self._by_name: dict[str, _Kind | None] = {}

    def recipe(self, computation: Computation, index: ShapeIndex, node: Callable[[Place], int]) -> Recipe | None:
        """How to make an element of the result of a computation like others, `None` where it has to be read itself. `node`
        gives the expression at a place.
        """
        name = computation.name
        if name not in self._by_name:
            self._by_name[name] = self._kind(computation)
        kind = self._by_name[name]
        if kind is None or kind.met < 2:
            return None
        if index not in kind.recipes:
            if kind.frame is None:
                kind.frame = self._frames.open(name)
            root = self._frames.root(kind.frame, index) if kind.frame is not None else None
            kind.recipes[index] = self._learn(node(root)) if root is not None else None
        return kind.recipes[index]

    def _kind(self, computation: Computation) -> _Kind | None:
        if len(computation.rows) > MAX_ROWS:
            return None
        fingerprint = self._fingerprints.of(computation.name)
        if fingerprint is None or not self._fingerprints.is_alone(computation.name):
            return None
        kind = self._kinds.setdefault(fingerprint, _Kind())
        kind.met += 1
        return kind

    def _learn(self, root: int) -> Recipe | None:
        """The recipe of an expression; `None` where it holds something opaque, which is another value in each."""
        graph = self._graph
        changed: set[int] = set()
        made: list[MadeNode] = []
        arguments: list[tuple[int, Argument]] = []
        for node in graph.below([root]):
            if graph.ops[node] == "opaque":
                return None
            source = graph.sources.get(node)
            if source is not None:
                changed.add(node)
                arguments.append((node, source[1:]))
            elif not changed.isdisjoint(graph.args[node]):
                changed.add(node)
                made.append((node, graph.ops[node], graph.args[node], graph.attributes[node], graph.sizes[node]))
        return Recipe(root, tuple(made), tuple(arguments))
