"""The computations that each computation runs, and how often each runs in a step.

A fusion, a call and an async-start run their computation once. A while runs its body `trip_count` times, and its condition once
more. A conditional runs one of its branches. A computation that a reduction, a sort or an all-reduce applies to elements does
not count as run.

Unknown figures have bounds. A loop of unknown trip count runs at least once, a branch of a conditional perhaps never. So a step
costs at least its cheapest branch and at most its most expensive branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hlo_inspect.figure import Quantity, add, any_of, at_least, between, multiply, reason, unknown
from hlo_inspect.graph.loops import RUNNING_OPCODES, Loop, find_loops
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_call
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.graph.view import InstructionPlace

WANTS = Wants(opcodes=RUNNING_OPCODES, loops=True)
"""Parts of a module that the reader must keep, besides the instructions to count."""

_FUSING = opcodes_that_call("fused")
_CALLING = RUNNING_OPCODES | _FUSING | opcodes_that_call("custom")


_Key = TypeVar("_Key", bound=Hashable)


class Call(NamedTuple):
    """A call: `instruction` runs `callee` this number of `times`."""

    instruction: Instruction
    callee: str
    times: Quantity


class CallGraph:
    """The computations that one run of a module's entry reaches.

    The module must be read for `WANTS`. Fusions and custom calls are followed if the reader kept them, as it does if they hold
    wanted instructions. `calls` are the calls of each reached computation. `order` has callers before callees. It leaves out
    computations that call themselves and those that only they call, as XLA has no recursion.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self.loops = find_loops(module)
        self._loops = {place(loop.instruction): loop for loop in self.loops}
        self.calls = self._reached()
        self.order = _callers_first(self.calls)

    def _reached(self) -> dict[str, list[Call]]:
        reached: dict[str, list[Call]] = {}
        holders = {computation.name for computation in self._module.holding if not computation.is_entry}
        calling = _CALLING if holders else _CALLING - _FUSING
        callees = None if self._module.wants.graph else holders  # calls of computations without kept instructions do not matter
        waiting = [self._module.entry.name] if self._module.entry is not None else []
        while waiting:
            name = waiting.pop()
            computation = self._module.computations.get(name)
            if computation is not None and name not in reached:
                calls = [call for i in computation.with_opcodes(calling, callees) for call in self._calls(i)]
                reached[name] = calls
                waiting += [call.callee for call in calls]
            elif name in self._module.skipped:
                reached[name] = []
        return reached

    def _calls(self, instruction: Instruction) -> Iterator[Call]:
        """Yield the computations that an instruction runs, and how often."""
        named = f"{instruction.name} (line {instruction.line})"
        callees = dict.fromkeys((callee.role, callee.name) for callee in instruction.called)
        for role, name in callees:
            if role in {"body", "condition"}:
                yield Call(instruction, name, self._times(self._loops[place(instruction)], once_more=role == "condition"))
            elif role == "branch" and len(callees) > 1:
                yield Call(instruction, name, between(0, 1, f"{named} runs only one of its branches"))
            elif role == "custom":
                yield Call(instruction, name, unknown(f"{named} is a custom call, which runs it any number of times"))
            else:
                yield Call(instruction, name, 1)

    @staticmethod
    def _times(loop: Loop, *, once_more: bool) -> Quantity:
        if loop.trip_count is not None:
            return loop.trip_count + once_more
        instruction = loop.instruction
        why = f"the trip count of {instruction.name} (line {instruction.line}) {loop.reason}"
        return at_least(1 + once_more, why)

    def line_of(self, computation: str) -> int | None:
        """Return the first line of a computation that is reached."""
        header = self._module.computations.get(computation) or self._module.skipped.get(computation)
        return header.line if header is not None else None

    def opcodes_in(self, computation: str) -> Sequence[str]:
        """Return the distinct opcodes of a computation; none if the text lacks it."""
        content = self._module.computations.get(computation)
        return content.opcodes if content is not None else ()

    # -- runs -----------------------------------------------------------------------------------------------------------

    def runs(self, computation: str) -> Quantity:
        """Return how often a computation runs in one run of the entry."""
        runs = self._runs.get(computation)
        return unknown(f"no instruction of the text calls {computation}") if runs is None else runs

    def runs_of_loop(self, loop: Loop) -> Quantity:
        """Return how often the body of a loop runs in one run of the entry, even if the body was not read."""
        return multiply(self.runs(loop.instruction.computation.name), self._times(loop, once_more=False))

    @cached_property
    def _runs(self) -> dict[str, Quantity]:
        counts: dict[str, Quantity] = dict.fromkeys(self.order, 0)
        counts |= {name: unknown(recursion(name)) for name in self.calls if name not in counts}
        for entry in self.order[:1]:
            counts[entry] = 1
        for name in self.order:
            for call in self.calls[name]:
                if call.callee in counts:
                    counts[call.callee] = add(counts[call.callee], multiply(counts[name], call.times))
        shared: dict[Quantity, Quantity] = {}
        return {name: shared.setdefault(runs, runs) for name, runs in counts.items()}

    # -- loops ----------------------------------------------------------------------------------------------------------

    def loops_around(self, computation: str) -> Iterator[Loop]:
        """Yield the loops that run a computation, innermost first. If a computation has several callers, follow the first."""
        loop = self._innermost_loops.get(computation)
        while loop is not None:
            yield loop
            loop = self._innermost_loops.get(loop.instruction.computation.name)

    @cached_property
    def _innermost_loops(self) -> Mapping[str, Loop | None]:
        innermost: dict[str, Loop | None] = dict.fromkeys(self.order[:1])
        for name in self.order:
            for call in self.calls[name]:
                innermost.setdefault(call.callee, self._loops.get(place(call.instruction), innermost[name]))
        return innermost

    # -- figures --------------------------------------------------------------------------------------------------------

    def bounds_of_each(self, own: Mapping[str, Mapping[_Key, Quantity]]) -> dict[str, Mapping[_Key, Quantity]]:
        """Return the figures of one run of each computation of `order`, its callees included.

        `own` is the argument `own` of `bounds`.
        """
        inclusive: dict[str, Mapping[_Key, Quantity]] = {}
        for name in reversed(self.order):
            made = [list(calls) for _, calls in groupby(self.calls[name], key=lambda call: call.instruction)]
            counted = [calls for calls in made if any(inclusive.get(call.callee) for call in calls)]
            if counted:
                total = dict(own.get(name, {}))
                for calls in counted:
                    add_figures(total, _figures_of_call(calls, inclusive))
                inclusive[name] = total
            elif own.get(name):
                inclusive[name] = own[name]
        return inclusive

    def bounds(self, own: Mapping[str, Mapping[_Key, Quantity]]) -> dict[_Key, Quantity]:
        """Return the figures of one run of the program as bounds.

        `own` are the figures of one run of each computation, its callees excluded. A conditional counts for each figure at
        least its smallest branch and at most its largest. Figures of computations that nothing calls, or that call themselves,
        have no limit.
        """
        total = dict(self.bounds_of_each(own).get(self.order[0], {})) if self.order else {}
        ordered = set(self.order)
        for name in (name for name in own if name not in ordered):
            runs = self.runs(name)
            add_figures(total, {figure: multiply(amount, runs) for figure, amount in own[name].items()})
        return total


def _figures_of_call(calls: Sequence[Call], inclusive: Mapping[str, Mapping[_Key, Quantity]]) -> dict[_Key, Quantity]:
    callees = [inclusive.get(call.callee, {}) for call in calls]
    if len(calls) > 1 and calls[0].instruction.opcode == "conditional":
        return _branch_bounds(callees, f"{reason(calls[0].times)}, which differ")
    total: dict[_Key, Quantity] = {}
    for call, figures in zip(calls, callees, strict=True):
        add_figures(total, {figure: multiply(amount, call.times) for figure, amount in figures.items()})
    return total


def _branch_bounds(branches: Sequence[Mapping[_Key, Quantity]], why: str) -> dict[_Key, Quantity]:
    figures = dict.fromkeys(figure for branch in branches for figure in branch)
    return {figure: any_of([branch.get(figure, 0) for branch in branches], why) for figure in figures}


def add_figures(figures: dict[_Key, Quantity], more: Mapping[_Key, Quantity]) -> None:
    """Add each of `more` to the figure of its key."""
    for figure, amount in more.items():
        before = figures.get(figure)
        figures[figure] = amount if before is None else add(before, amount)


def place(instruction: Instruction) -> InstructionPlace:
    return instruction.computation.name, instruction.line, instruction.name


def _callers_first(calls: Mapping[str, Sequence[Call]]) -> list[str]:
    callees = {name: [call.callee for call in made if call.callee in calls] for name, made in calls.items()}
    open_calls = Counter(callee for names in callees.values() for callee in names)
    order = [name for name in calls if not open_calls[name]]
    for name in order:
        for callee in callees[name]:
            open_calls[callee] -= 1
            if not open_calls[callee]:
                order.append(callee)
    return order


def recursion(computation: str) -> str:
    """Return the reason for a computation that is reached but not in `CallGraph.order`."""
    return f"{computation} is part of a recursion"
