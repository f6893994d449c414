"""From the text of computations to one graph of expressions.

Only what is asked for is read. Operations element by element become nodes; what changes no value makes none.
Reductions, products of matrices and everything else become opaque leaves, whose operands `reductions.py` reads for a rule.

All walks use explicit stacks, so neither deep nor cyclic text can exhaust Python's.
"""

from __future__ import annotations

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo import opcodes
from hlo_inspect.optimizer.equal_fusions import EqualFusions
from hlo_inspect.optimizer.known_nodes import KnownNodes
from hlo_inspect.optimizer.operations import ELEMENTWISE
from hlo_inspect.optimizer.transfer import TRANSFER
from hlo_inspect.optimizer.turned_operands import cancel, turned


class Dataflow:
    """The values of a module's computations as nodes of `graph`. `constants` are inputs that are numbers, by their nodes."""

    def __init__(self, views: Views) -> None:
        self.frames = Frames(views)
        self.nodes = KnownNodes(self.frames)
        self.graph = self.nodes.graph
        self.constants = self.nodes.constants
        self._equal_fusions = EqualFusions(self.graph, views.fingerprints, self.frames)

    def node(self, place: Place) -> int:
        """The expression at a place."""
        nodes, frames = self.nodes.by_place, self.frames
        stack = [place]
        active: dict[Place, Place | None] = {}  # what is looked at, and the place from which its value comes unchanged
        while stack:
            top = stack[-1]
            before = active.get(top)
            found: int | Place | list[Place] | None = nodes.get(top)
            if found is None:
                found = nodes[before] if before is not None else self._step(top)
            if isinstance(found, int):
                nodes[top] = found
                active.pop(top, None)
                stack.pop()
                continue
            if isinstance(found, tuple):
                before, found = found, [found]
            if active.keys().isdisjoint(found) and top not in found and len(nodes) + len(active) < frames.max_places:
                active[top] = before
                stack += found
            else:
                is_cycle = len(nodes) + len(active) < frames.max_places
                frames.is_cut_short |= not is_cycle
                nodes[top] = self.nodes.broken(
                    top, "depends on itself" if is_cycle else "lies behind too many expressions to follow"
                )
        return nodes[place]

    def _step(self, place: Place) -> int | Place | list[Place]:
        """The node at a place, the place from which its value comes unchanged, or the places that have to be known before."""
        opcode = self.frames.opcode(place)
        if not opcode:
            return self.nodes.broken(place, "is not defined")
        if opcode in ELEMENTWISE and not place[2]:
            return self._operation(place, opcode)
        if opcode == "fusion":
            found = self._equal_fusion(place)
            if found is not None:
                return found
        before = self.frames.step_back(place)
        if before is not None:
            is_shard = opcode == "custom-call" and self._is_shard(place, before)
            return self.nodes.opaque(place) if is_shard else self.nodes.by_place.get(before, before)
        transfer = TRANSFER.get(opcode)
        return transfer(self.nodes, place) if transfer is not None else self.nodes.opaque(place)

    def _is_shard(self, place: Place, before: Place) -> bool:
        """Whether an integer is that of one device among those of all devices: a counter is a scalar there."""
        frames = self.frames
        return frames.dtype(place)[:1] in {"s", "u"} and frames.size(place) == 1 < frames.size(before)

    def _equal_fusion(self, place: Place) -> int | list[Place] | None:
        """The node of a fusion whose computation is equal to others; `None` where it has to be read itself."""
        computation = self.frames.views.fused(self.frames[place[0]].view, place[1])
        recipe = self._equal_fusions.recipe(computation, place[2], self.node) if computation is not None else None
        if recipe is None:
            return None
        known: dict[int, int] = {}
        missing: list[Place] = []
        for node, (number, index) in recipe.arguments:
            operand = self.frames.operand(place, number, index)
            if operand is None:
                return None
            argument = self.nodes.by_place.get(operand)
            if argument is None:
                missing.append(operand)
            else:
                known[node] = argument
        return missing or recipe.apply(self.graph, known)

    def _operation(self, place: Place, op: str) -> int | list[Place]:
        """The node of an operation on all operands, element by element."""
        nodes = self.nodes.by_place
        args: list[int] = []
        missing: list[Place] = []
        for operand in self.frames.operands(place):
            node = nodes.get(operand)
            if node is None:
                missing.append(operand)
            else:
                args.append(node)
        if missing:
            return missing
        if len(args) != opcodes.TABLE[op].operands:
            return self.nodes.broken(place, "has operands that cannot be read")
        if op == "divide" and self.frames.dtype(place)[:1] in {"s", "u"}:
            op = "integer-divide"  # cuts digits off, which the algebra of real numbers does not
        if op in {"add", "subtract"} and cancel(self.graph, op, args[0], args[1]):
            order = turned(self.frames, *self.frames.operands(place))
            if order is not None:  # with its sign, so that the sum is one gradient that is taken off
                other = args[1] if op == "add" else self.graph.make("negate", (args[1],))
                op, args[1] = "add", self.graph.make("transpose", (other,), order)
        return self.graph.make(op, tuple(args), self._direction(place) if op == "compare" else None)

    def _direction(self, place: Place) -> str | None:
        instruction = self.frames.instruction(place)
        return instruction.attr("direction") if instruction is not None else None
