"""Branches of conditionals: which one a step takes, and whether all branches communicate alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal

from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    CallStep,
    ComputeStep,
    IssuedWork,
    IssueStep,
    LoopStep,
    Step,
    called_by,
)
from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.figure import Figure, Number, Quantity, greatest, least
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.view import InstructionPlace

Likeness = Literal["same", "same sizes", "different"]
"""Branches exchange the same in the same order; or the same kinds and bytes between other devices; or neither."""

_NOTHING = 0
"""The signature of a computation that does not communicate."""


class Branches:
    """The branches of a program. `weights` are the costs of its kernels, by which the costliest branch is taken."""

    def __init__(
        self,
        graph: CallGraph,
        work: IssuedWork,
        communications: Mapping[InstructionPlace, Sequence[Communication]],
        weights: Mapping[InstructionPlace, int],
    ) -> None:
        self._steps = work.program.steps
        self._communications = communications
        signatures: dict[Hashable, int] = {(): _NOTHING}
        self._of_computation: dict[str, int] = {}
        """A number that computations share if they communicate the same in the same order."""
        for name in reversed(graph.order):
            parts = tuple(filter(None, map(self._part, self._steps.get(name, ()))))
            self._of_computation[name] = signatures.setdefault(parts, len(signatures))
        own = {name: self._figures(name, weights) for name in graph.order}
        self._inclusive = graph.bounds_of_each(own)

    def taken(self, step: BranchStep) -> int:
        """Return the number of the costliest branch, the first of several."""
        costs = [self._cost(name) for name in step.branches]
        return costs.index(max(costs)) if costs else 0

    def likeness(self, step: BranchStep) -> Likeness:
        """Return how alike the branches communicate."""
        if len({self._of_computation.get(name, _NOTHING) for name in step.branches}) <= 1:
            return "same"
        figures = [self._sizes(name) for name in step.branches]
        is_exact = not any(isinstance(amount, Figure) for sizes in figures for amount in sizes.values())
        return "same sizes" if is_exact and all(sizes == figures[0] for sizes in figures) else "different"

    def reached(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the computations that run below these, these included."""
        waiting, seen = list(names), set(names)
        while waiting:
            name = waiting.pop()
            yield name
            new = {callee for step in self._steps.get(name, ()) for callee in called_by(step)} - seen
            seen |= new
            waiting += sorted(new)

    def _cost(self, name: str) -> Number:
        return least(self._inclusive.get(name, {}).get("cost", 0))

    def _sizes(self, name: str) -> dict[Hashable, Quantity]:
        return {
            figure: amount for figure, amount in self._inclusive.get(name, {}).items() if figure != "cost" and greatest(amount)
        }

    def _figures(self, name: str, weights: Mapping[InstructionPlace, int]) -> Counter[Hashable]:
        """Return the cost of the kernels of a computation, and its communications by kind and bytes."""
        figures: Counter[Hashable] = Counter()
        for step in self._steps.get(name, ()):
            if isinstance(step, ComputeStep):
                figures["cost"] += weights.get(step.place, 0)
            elif isinstance(step, IssueStep):
                for communication in self._communications.get(step.place, ()):
                    figures[communication.kind, communication.collective.operand_bytes] += 1
        return figures

    def _part(self, step: Step) -> Hashable:
        """Return what a step adds to the signature of its computation; None if it does not communicate."""
        if isinstance(step, IssueStep):
            return tuple(communication.key for communication in self._communications.get(step.place, ())) or None
        inner = tuple(self._of_computation.get(name, _NOTHING) for name in called_by(step))
        if not any(inner):
            return None
        if isinstance(step, LoopStep):
            return ("loop", step.trips, *inner)
        if isinstance(step, CallStep):
            return ("call", *inner)
        return ("call", inner[0]) if len(set(inner)) == 1 else ("branches", *inner)
