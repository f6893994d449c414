"""Limits of a step that is unrolled: each loop's count is known, and the nodes are no more than a limit."""

from __future__ import annotations

from collections.abc import Collection

from hlo_inspect.analysis.time.program_steps import LoopStep, TimedProgram
from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.figure import Number, Quantity, least
from hlo_inspect.graph.calls import CallGraph, recursion

KERNELS_OF_NODE = 64
"""Kernel runs that are followed for each node of the limit: short kernels are many to a node."""


class Unrolling:
    """The loops of a program, and the room for the nodes of its step."""

    def __init__(self, path: str, program: TimedProgram, graph: CallGraph, max_nodes: int) -> None:
        self._path = path
        self._program = program
        self._graph = graph
        self.max_nodes = max_nodes

    def require_counts(self) -> None:
        """Raise InputError if a loop that runs has an unknown count, UsageError if the loops run too often."""
        reasons = {(loop.instruction.computation.name, loop.instruction.name): loop.reason for loop in self._graph.loops}
        for name in self._graph.order:
            for step in self._program.steps.get(name, ()):
                if isinstance(step, LoopStep) and step.trips is None:
                    reason = reasons.get((step.place[0], step.place[2])) or "is unknown"
                    raise InputError(f"the trip count of {step.place[2]} {reason}", Location(self._path, step.place[1]))
        runs = self._graph.bounds({name: self._own(name) for name in self._graph.order}).get("runs", 0)
        self.require_room(0, least(runs))

    def _own(self, name: str) -> dict[str, Quantity]:
        """Return the runs of kernels, other work and computations in one run of a computation."""
        return {"runs": len(self._program.steps.get(name, ())) + 1}

    def require_room(self, nodes: int, kernel_runs: Number) -> None:
        """Raise UsageError if there are more nodes than the limit, or more kernel runs than are followed for it."""
        if nodes <= self.max_nodes and kernel_runs <= self.max_nodes * KERNELS_OF_NODE:
            return
        step = self._largest_loop()
        if step is None:
            message = f"a step has more than {self.max_nodes:,} nodes; raise --max-nodes"
            raise UsageError(message, Location(self._path))
        runs = f"{step.place[2]} runs its body {step.trips:,} times"
        message = f"{runs}, and a step has more than {self.max_nodes:,} nodes; raise --max-nodes"
        raise UsageError(message, Location(self._path, step.place[1]))

    def _largest_loop(self) -> LoopStep | None:
        """Return the loop whose iterations run the most steps."""
        inclusive = self._graph.bounds_of_each({name: self._own(name) for name in self._graph.order})

        def steps_of(step: LoopStep) -> Number:
            return least(inclusive.get(step.body, {}).get("runs", 0)) * (step.trips or 0)

        loops = [step for steps in self._program.steps.values() for step in steps if isinstance(step, LoopStep)]
        return max(loops, key=lambda step: (steps_of(step), step.trips or 0), default=None)

    def require_no_recursion(self, computation: str, running: Collection[str]) -> None:
        """Raise InputError if a computation is entered that runs already."""
        if computation in running:
            raise InputError(recursion(computation), Location(self._path, self._graph.line_of(computation)))
