"""From the text of computations to one graph of expressions.

Only what is asked for is read. Reductions, products of matrices and everything else that is neither stepped through
(`places.py`) nor done element by element becomes an opaque leaf, which `reductions.py` looks behind when a rule asks.

Everything runs on explicit stacks: neither deep nor cyclic text can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlo_inspect.analysis.optimizer.graph import Graph, Place
from hlo_inspect.analysis.optimizer.opcodes import OPERANDS
from hlo_inspect.analysis.optimizer.places import Places
from hlo_inspect.analysis.optimizer.templates import Templates
from hlo_inspect.analysis.optimizer.text import Statement
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo.module import Computation

MAX_PLACES = 400_000  # of one module, those on the way included: repeated calls of calls multiply


class Flow(Places):
    """The values of a module's computations as nodes of `graph`."""

    def __init__(
        self, computations: Mapping[str, Computation], special: Mapping[str, Step], views: Views | None = None
    ) -> None:
        super().__init__(views or Views(computations))
        self.graph = Graph()
        self._nodes: dict[Place, int] = {}
        self._special = special
        self._templates = Templates(
            self.graph, self.views.fingerprints, self.region, lambda frame, index: self.node(self.root(frame, index))
        )

    def node(self, place: Place) -> int:
        """The expression at a place."""
        nodes, frames = self._nodes, self.frames
        stack = [place]
        active: set[Place] = set()
        while stack:
            top = stack[-1]
            if top in nodes:
                stack.pop()
                active.discard(top)
                continue
            body = frames[top[0]].body
            statement = body.statements.get(top[1]) or body.statement(top[1])
            if statement is not None and statement.is_elementwise and not top[2]:
                found = self._operation(top, statement)
            else:
                found = self._step(top, statement)
            if isinstance(found, int):
                nodes[top] = found
            elif active.isdisjoint(found) and top not in found and len(nodes) + len(active) < MAX_PLACES:
                active.add(top)
                stack += found
            else:
                is_cycle = len(nodes) + len(active) < MAX_PLACES
                reason = "depends on itself" if is_cycle else "lies behind too many expressions to follow"
                nodes[top] = self._broken(top, reason)
        return nodes[place]

    def opaque(self, place: Place) -> int:
        """A leaf that stands for what is not looked into."""
        return self.graph.opaque(place, self.size(place))

    def _broken(self, place: Place, reason: str) -> int:
        """A leaf for what could not be followed."""
        self.faults.note(self.frames[place[0]], place[1], reason)
        node = self.opaque(place)
        self.graph.broken.add(node)
        return node

    def _step(self, place: Place, statement: Statement | None) -> int | list[Place]:
        """The node at a place, or the places that have to be known before it."""
        if statement is None:
            return self._broken(place, "is not defined")
        if statement.opcode == "fusion":
            found = self._from_template(place, statement)
            if found is not None:
                return found
        target = self.behind(place, statement)
        if target is not None:
            known = self._nodes.get(target)
            return [target] if known is None else known
        special = self._special.get(statement.opcode)
        return special(self, place, statement) if special is not None else self.opaque(place)

    def _from_template(self, place: Place, statement: Statement) -> int | list[Place] | None:
        """The node of a fusion whose computation is like others."""
        computation = self.views.computations.get(statement.word("calls"))
        recipe = self._templates.recipe(computation, place[2]) if computation is not None else None
        if recipe is None:
            return None
        operands = self.operands(place, statement)
        known: dict[int, int] = {}
        missing: list[Place] = []
        for node, (number, index) in recipe.arguments:
            if number >= len(operands):
                return None
            frame, name, before = operands[number]
            argument = self._nodes.get((frame, name, before + index))
            if argument is None:
                missing.append((frame, name, before + index))
            else:
                known[node] = argument
        return missing or recipe.cook(self.graph, known)

    def _operation(self, place: Place, statement: Statement) -> int | list[Place]:
        """The node of an operation on all operands."""
        nodes, frame = self._nodes, place[0]
        args: list[int] = []
        missing: list[Place] = []
        for name, index in statement.operands:
            operand = (frame, name, index)
            node = nodes.get(operand)
            if node is None:
                missing.append(operand)
            else:
                args.append(node)
        if missing:
            return missing
        op = statement.opcode
        if len(args) != OPERANDS[op]:
            return self._broken(place, "has operands that cannot be read")
        if op == "divide" and statement.dtype[:1] in {"s", "u"}:
            op = "integer-divide"  # cuts digits off, which the algebra of real numbers does not
        return self.graph.make(op, tuple(args), statement.word("direction") if op == "compare" else None)

    def known(self, places: tuple[Place, ...]) -> tuple[int, ...] | list[Place]:
        """The nodes at these places, or those places whose nodes have to be known first."""
        nodes = self._nodes
        missing = [place for place in places if place not in nodes]
        return missing or tuple([nodes[place] for place in places])


Step = Callable[[Flow, Place, Statement], int | list[Place]]
"""What makes the node of an instruction, or names the places that it has to know before."""
