"""What a scheduled program does in time, computation by computation: what it runs on the compute stream, what it issues beside
it, and where it waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.graph.calls import InstructionPlace


class ComputeStep(NamedTuple):
    """A kernel on the compute stream."""

    place: InstructionPlace


class IssueStep(NamedTuple):
    """What is issued to streams of its own. `waits` where the compute stream waits for it at once."""

    place: InstructionPlace
    waits: bool


class WaitStep(NamedTuple):
    """The instruction at `done` waits for what was issued at `place`, in the same run of the computation."""

    place: InstructionPlace
    done: InstructionPlace


class LoopStep(NamedTuple):
    """So many runs of `body`, each after one of `condition`, and one more of that; `None` where that is not known."""

    place: InstructionPlace
    condition: str
    body: str
    trips: int | None


class BranchStep(NamedTuple):
    """One of these computations runs."""

    place: InstructionPlace
    branches: tuple[str, ...]


class CallStep(NamedTuple):
    """A computation runs in place."""

    place: InstructionPlace
    computation: str


Step = ComputeStep | IssueStep | WaitStep | LoopStep | BranchStep | CallStep


class TimedProgram(NamedTuple):
    """The steps of each computation that runs, in the order in which it takes them.

    `beside` are the computations that run as a whole beside the compute stream, by the place where they are issued.
    """

    entry: str
    steps: Mapping[str, Sequence[Step]]
    beside: Mapping[InstructionPlace, str] = {}


def called_by(step: Step) -> tuple[str, ...]:
    """The computations that a step runs on the compute stream."""
    if isinstance(step, LoopStep):
        return step.condition, step.body
    if isinstance(step, BranchStep):
        return step.branches
    return (step.computation,) if isinstance(step, CallStep) else ()
