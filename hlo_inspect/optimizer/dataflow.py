"""A single graph of expressions from the text of computations.

Places are read on request. Elementwise operations become nodes; instructions that change no value make none. Reductions,
products of matrices and everything else become opaque leaves, whose operands `reductions.py` reads for a rule.

All walks use explicit stacks, so neither deep nor cyclic text can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.row_classes import RowClasses
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.node_cache import MissingNodesError, NodeCache
from hlo_inspect.optimizer.operations import ELEMENTWISE
from hlo_inspect.optimizer.transfer_functions import TRANSFER

MAX_ROWS = 1 << 8  # a larger computation rarely repeats

_SUMS = frozenset({"add", "subtract"})

Argument = tuple[int, ShapeIndex]
"""The number of a parameter and an index into it."""

MadeNode = tuple[int, str, tuple[int, ...], Hashable, int]
"""A node to make anew: its number, operation, operands, attribute and size."""


class Recipe(NamedTuple):
    """An expression over arguments: the root, the nodes to make anew, operands first, and the nodes of the arguments."""

    root: int
    made: tuple[MadeNode, ...]
    arguments: tuple[tuple[int, Argument], ...]

    def apply(self, graph: Graph, nodes: dict[int, int]) -> int:
        """Return the expression with other nodes instead of its arguments; `nodes` holds these by the argument's node."""
        for node, op, args, attribute, size in self.made:
            nodes[node] = graph.make(op, tuple(map(nodes.get, args, args)), attribute, size)
        return nodes.get(self.root, self.root)


@dataclass(slots=True)
class _Kind:
    """Computations of one class: their number so far, and the frame of the computation that was read for all."""

    met: int = 0
    frame: int | None = None
    recipes: dict[ShapeIndex, Recipe | None] = field(default_factory=dict)


class EqualFusions:
    """The fusions of a module that differ only in names: a model with many equal layers has one for each weight.

    The first two of a kind are read, as nodes of `graph`. The expressions of the others are copies of the second with other
    arguments.
    """

    def __init__(self, graph: Graph, classes: RowClasses, frames: Frames) -> None:
        self._graph = graph
        self._classes = classes
        self._frames = frames
        self._kinds: dict[int, _Kind] = {}
        self._by_name: dict[str, _Kind | None] = {}

    def recipe(self, computation: Computation, index: ShapeIndex, node: Callable[[Place], int]) -> Recipe | None:
        """Return the recipe for an element of a computation's result; None if the computation itself must be read.

        `node` returns the expression at a place.
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
        if len(computation.rows) > MAX_ROWS or computation.rows.column.calling:
            return None
        kind = self._kinds.setdefault(self._classes.of_computation(computation.name), _Kind())
        kind.met += 1
        return kind

    def _learn(self, root: int) -> Recipe | None:
        """Return the recipe of an expression; None if it holds an opaque value, which differs in each copy."""
        graph = self._graph
        changed: set[int] = set()
        made: list[MadeNode] = []
        arguments: list[tuple[int, Argument]] = []
        for node in graph.reachable([root]):
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


class Dataflow:
    """The values of a module's computations as nodes of `graph`. `constants` are inputs that are numbers, by their nodes."""

    def __init__(self, views: Views) -> None:
        self.frames = Frames(views)
        self.nodes = NodeCache(self.frames)
        self.graph = self.nodes.graph
        self.constants = self.nodes.constants
        self._equal_fusions = EqualFusions(self.graph, views.classes, self.frames)
        self._operations: dict[Place, tuple[Place, ...]] = {}  # operands of operations that wait for them

    def forget_places(self) -> None:
        """Free the memory of the places that were read. The same places have the same nodes afterwards."""
        self.nodes.by_place.clear()
        self._operations.clear()

    def node(self, place: Place) -> int:
        """Return the expression at a place."""
        nodes, frames, operations = self.nodes.by_place, self.frames, self._operations
        stack = [place]
        active: dict[Place, Place | None] = {}  # places on the stack, and the place from which each value comes unchanged
        while stack:
            top = stack[-1]
            step: int | Place | list[Place] | None = nodes.get(top)
            if step is None:
                before = active.get(top)
                if before is not None:
                    step = nodes[before]
                elif top in operations:
                    step = self._operation(top, operations.pop(top))
                else:
                    step = self._step(top)
            if isinstance(step, int):
                nodes[top] = step
                active.pop(top, None)
                stack.pop()
                continue
            before, step = (step, [step]) if isinstance(step, tuple) else (None, step)
            if active.keys().isdisjoint(step) and top not in step and len(nodes) + len(active) < frames.max_places:
                active[top] = before
                stack += step
            else:
                is_cycle = len(nodes) + len(active) < frames.max_places
                frames.is_cut_short |= not is_cycle
                nodes[top] = self.nodes.broken(top, "depends on itself" if is_cycle else "is nested in too many expressions")
        return nodes[place]

    def _step(self, place: Place) -> int | Place | list[Place]:
        """Return the node at a place, the place from which its value comes unchanged, or the places to read first."""
        opcode = self.frames.opcode(place)
        if not opcode:
            return self.nodes.broken(place, "is not defined")
        if opcode in ELEMENTWISE and not place[2]:
            return self._elementwise(place)
        if opcode == "fusion":
            node = self._equal_fusion(place)
            if node is not None:
                return node
        before = self.frames.step_back(place)
        if before is not None:
            is_shard = opcode == "custom-call" and self._is_shard(place, before)
            return self.nodes.opaque(place) if is_shard else self.nodes.by_place.get(before, before)
        try:
            return TRANSFER.get(opcode, NodeCache.opaque)(self.nodes, place)
        except MissingNodesError as missing:
            return missing.places

    def _is_shard(self, place: Place, before: Place) -> bool:
        """Return True if an integer is one device's element of a larger array: there a counter is a scalar."""
        frames = self.frames
        return frames.dtype(place)[:1] in {"s", "u"} and frames.size(place) == 1 < frames.size(before)

    def _equal_fusion(self, place: Place) -> int | list[Place] | None:
        """Return the node of a fusion whose computation is equal to others; None if the fusion itself must be read."""
        computation = self.frames.views.fused(self.frames[place[0]].view, place[1])
        recipe = self._equal_fusions.recipe(computation, place[2], self.node) if computation is not None else None
        if recipe is None:
            return None
        arguments: dict[int, int] = {}
        missing: list[Place] = []
        for node, (number, index) in recipe.arguments:
            operand = self.frames.operand(place, number, index)
            if operand is None:
                return None
            argument = self.nodes.by_place.get(operand)
            if argument is None:
                missing.append(operand)
            else:
                arguments[node] = argument
        return missing or recipe.apply(self.graph, arguments)

    def _elementwise(self, place: Place) -> int | list[Place]:
        """Return the node of an elementwise operation, or the operands to read first."""
        operands, nodes = self.frames.operands(place), self.nodes.by_place
        missing = [operand for operand in operands if operand not in nodes]
        if not missing:
            return self._operation(place, operands)
        self._operations[place] = operands
        return missing

    def _operation(self, place: Place, operands: tuple[Place, ...]) -> int:
        """Return the node of an elementwise operation on operands that were read."""
        nodes, ops, op = self.nodes.by_place, self.graph.ops, self.frames.opcode(place)
        args = [nodes[operand] for operand in operands]
        if len(args) != opcodes.TABLE[op].operands:
            return self.nodes.broken(place, "has operands that cannot be read")
        if op == "divide" and self.frames.dtype(place)[:1] in {"s", "u"}:
            op = "integer-divide"  # cuts digits off, which the algebra of real numbers does not
        may_cancel = op in _SUMS and (args[0] == args[1] or "negate" in (ops[args[0]], ops[args[1]]))
        if may_cancel and cancel(self.graph, op, args[0], args[1]):
            order = transposed_order(self.frames, *operands)
            if order is not None:  # with its sign, so that the sum is one gradient that is taken off
                other = args[1] if op == "add" else self.graph.make("negate", (args[1],))
                op, args[1] = "add", self.graph.make("transpose", (other,), order)
        return self.graph.make(op, tuple(args), self.frames.instruction(place).attr("direction") if op == "compare" else None)


MAX_STEPS = 32  # from an operand back to the array of both, also through signs

Order = tuple[int, ...]
"""For each dimension of an array, the dimension of the array that it is made of."""


# -- differences of an array and its transpose -------------------------------------------------------------------------------
# As in the gradient of an antisymmetric matrix `a - a.T`: the transpose is another array, or the difference would be 0.
# Elsewhere a transpose counts as the array itself, since compilers turn arrays at will; `(a + a.T) / 2` is `a`.


def cancel(graph: Graph, op: str, left: int, right: int) -> bool:
    """Return True if a sum or a difference of two nodes is 0 if a transpose counts as the array itself."""
    (first, is_negated), (second, is_other_negated) = _unsigned(graph, left), _unsigned(graph, right)
    return first == second and (is_negated != is_other_negated) == (op == "add")


def _unsigned(graph: Graph, node: int) -> tuple[int, bool]:
    """Return a node without the signs before it, and True if they negate it."""
    is_negated = False
    for _ in range(MAX_STEPS):
        if graph.ops[node] != "negate":
            break
        (node,) = graph.args[node]
        is_negated = not is_negated
    return node, is_negated


def transposed_order(frames: Frames, left: Place, right: Place) -> Order | None:
    """Return the order of the dimensions of `right`, if it is made of the same array as `left` in another order."""
    (first, own), (second, other) = _origin(frames, left), _origin(frames, right)
    if first != second or own == other:
        return None
    return tuple([own.index(dimension) for dimension in other])


def _origin(frames: Frames, place: Place) -> tuple[Place, Order]:
    """Return the place from which a value comes but for transposes and signs, and the order of its dimensions."""
    dimensions = _dimensions(frames, place)
    order = tuple(range(len(dimensions)))
    for _ in range(MAX_STEPS):
        opcode = frames.opcode(place)
        before = frames.operand(place, 0) if opcode == "negate" else frames.step_back(place)
        if before is None:
            break
        axes = frames.instruction(place).attr("dimensions") if opcode == "transpose" else None
        if axes is not None and sorted(axes) == sorted(order):
            order = tuple([axes[dimension] for dimension in order])
            dimensions = _dimensions(frames, before)
        elif _dimensions(frames, before) != dimensions or opcode == "bitcast":
            break
        place = before
    return place, order


def _dimensions(frames: Frames, place: Place) -> tuple[int | None, ...]:
    shape = frames.shape(place)
    return shape.dimensions if isinstance(shape, ArrayShape) else ()
