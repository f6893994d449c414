"""Which computation runs which, and how often each runs in one run of the program.

A fusion, a call and an async-start run their computation once; a while its body as often as its trip count says, and its
condition once more; a conditional runs one of its branches. The computation that a reduction, a sort or an all-reduce applies
to elements does not count as run.

What is not known has bounds. A loop of an unknown trip count is taken to run once at least, a branch of a conditional not at
all: one run of the program costs at least the cheapest branch and at most the dearest one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import groupby
from typing import NamedTuple, TypeVar

from hlo_inspect.graph.loops import RUNNING_OPCODES, Loop, find_loops
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_call
from hlo_inspect.hlo.wants import Wants

WANTS = Wants(opcodes=RUNNING_OPCODES, loops=True)
"""What has to be kept of a module, beside the instructions that are to be counted."""

_FUSING = opcodes_that_call("fused")
_CALLING = RUNNING_OPCODES | _FUSING | opcodes_that_call("custom")


MAX_FIGURE = 10**30

_Figure = TypeVar("_Figure", bound=Hashable)


class Bounds(NamedTuple):
    """A figure that is `least` or more, and `greatest` or less; `greatest` is `None` where nothing limits it.

    `reason` says why the figure is not known where the two differ.
    """

    least: int
    greatest: int | None
    reason: str = ""

    @classmethod
    def exactly(cls, figure: int) -> Bounds:
        return cls(figure, figure)

    @property
    def is_exact(self) -> bool:
        return self.least == self.greatest

    @property
    def exact(self) -> int | None:
        """The figure, `None` where it is not known."""
        return self.least if self.least == self.greatest else None

    def plus(self, more: Bounds) -> Bounds:
        greatest = None if self.greatest is None or more.greatest is None else self.greatest + more.greatest
        return _bounded(self.least + more.least, greatest, self.reason or more.reason)

    @staticmethod
    def sum(figures: Iterable[Bounds]) -> Bounds:
        """All of them together; of none it is 0."""
        return reduce(Bounds.plus, figures, NOTHING)

    def times(self, runs: Bounds) -> Bounds:
        """The figure of something that runs so often."""
        if runs.greatest == 0 or self.greatest == 0:
            return NOTHING
        greatest = None if self.greatest is None or runs.greatest is None else self.greatest * runs.greatest
        return _bounded(self.least * runs.least, greatest, self.reason or runs.reason)


def _bounded(least: int, greatest: int | None, reason: str) -> Bounds:
    """No text makes Python count with integers that grow with it, and print them."""
    if least > MAX_FIGURE or (greatest or 0) > MAX_FIGURE:
        return Bounds(min(least, MAX_FIGURE), None, reason or "it is more than 10^30")
    return Bounds(least, greatest, reason)


NOTHING = Bounds.exactly(0)
ONCE = Bounds.exactly(1)


class Call(NamedTuple):
    """`instruction` runs `callee` so many `times`."""

    instruction: Instruction
    callee: str
    times: Bounds


class CallGraph:
    """What one run of a module's entry reaches.

    The module has to be read for `WANTS`. Fusions and custom calls are followed where the reader kept them, as it does with
    those that hold what is wanted. `calls` are the calls of each computation that is reached. `order` has callers before their
    callees; it leaves out computations that call themselves and those that only they call, as XLA has no recursion.
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
        callees = None if self._module.wants.graph else holders  # nobody asks for calls of those in which nothing was kept
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
        """The computations that an instruction runs, and how often."""
        named = f"{instruction.name} (line {instruction.line})"
        callees = dict.fromkeys((callee.role, callee.name) for callee in instruction.called)
        for role, name in callees:
            if role in {"body", "condition"}:
                yield Call(instruction, name, self._times(self._loops[place(instruction)], once_more=role == "condition"))
            elif role == "branch" and len(callees) > 1:
                yield Call(instruction, name, Bounds(0, 1, f"{named} runs only one of its branches"))
            elif role == "custom":
                yield Call(instruction, name, Bounds(0, None, f"{named} is a custom call, which runs it as it likes"))
            else:
                yield Call(instruction, name, ONCE)

    @staticmethod
    def _times(loop: Loop, *, once_more: bool) -> Bounds:
        if loop.trip_count is not None:
            return Bounds.exactly(loop.trip_count + once_more)
        instruction = loop.instruction
        reason = f"the trip count of {instruction.name} (line {instruction.line}) {loop.reason}"
        return Bounds(1 + once_more, None, reason)

    def line_of(self, computation: str) -> int | None:
        """The first line of a computation that is reached."""
        known = self._module.computations.get(computation) or self._module.skipped.get(computation)
        return known.line if known is not None else None

    # -- runs -----------------------------------------------------------------------------------------------------------

    def runs(self, computation: str) -> Bounds:
        """How often a computation runs in one run of the entry."""
        known = self._runs.get(computation)
        return known or Bounds(0, None, f"nothing that was read calls {computation}")

    def runs_of_loop(self, loop: Loop) -> Bounds:
        """How often the body of a loop runs in one run of the entry, whether or not the body was read."""
        return self.runs(loop.instruction.computation.name).times(self._times(loop, once_more=False))

    @cached_property
    def _runs(self) -> dict[str, Bounds]:
        counts = {name: Bounds(0, None, recursion(name)) for name in self.calls} | dict.fromkeys(self.order, NOTHING)
        for entry in self.order[:1]:
            counts[entry] = ONCE
        for name in self.order:
            for call in self.calls[name]:
                if call.callee in counts:
                    counts[call.callee] = counts[call.callee].plus(counts[name].times(call.times))
        known: dict[Bounds, Bounds] = {}
        return {name: known.setdefault(runs, runs) for name, runs in counts.items()}

    # -- loops ----------------------------------------------------------------------------------------------------------

    def loops_around(self, computation: str) -> Iterator[Instruction]:
        """The whiles that run a computation, the innermost first; of a computation with several callers those of the first."""
        loop = self._innermost_loops.get(computation)
        while loop is not None:
            yield loop
            loop = self._innermost_loops.get(loop.computation.name)

    @cached_property
    def _innermost_loops(self) -> Mapping[str, Instruction | None]:
        innermost: dict[str, Instruction | None] = dict.fromkeys(self.order[:1])
        for name in self.order:
            for call in self.calls[name]:
                is_loop = place(call.instruction) in self._loops
                innermost.setdefault(call.callee, call.instruction if is_loop else innermost[name])
        return innermost

    # -- figures --------------------------------------------------------------------------------------------------------

    def bounds_of_each(self, own: Mapping[str, Mapping[_Figure, Bounds]]) -> dict[str, Mapping[_Figure, Bounds]]:
        """The figures of one run of each computation of `order`, with those of the computations that it calls; `own` as
        `bounds` has it.
        """
        known: dict[str, Mapping[_Figure, Bounds]] = {}
        alike: dict[Hashable, Mapping[_Figure, Bounds]] = {}  # a large module has many computations with the same figures
        for name in reversed(self.order):
            made = [list(calls) for _, calls in groupby(self.calls[name], key=lambda call: call.instruction)]
            counted = [calls for calls in made if any(known.get(call.callee) for call in calls)]
            if counted:
                key = id(own.get(name)), tuple([_alike_calls(calls, known) for calls in counted])
                if key not in alike:
                    alike[key] = _with_calls(own.get(name, {}), counted, known)
                known[name] = alike[key]
            elif own.get(name):
                known[name] = own[name]
        return known

    def bounds(self, own: Mapping[str, Mapping[_Figure, Bounds]]) -> dict[_Figure, Bounds]:
        """The figures of one run of the program, each between a least and a greatest.

        `own` are the figures of one run of each computation, without the computations that it calls. Of a conditional each
        figure is at least that of the branch where it is least, and at most that of the branch where it is greatest. Figures
        of computations that nothing calls, or that call themselves, have no limit.
        """
        known = self.bounds_of_each(own)
        total = dict(known.get(self.order[0], {})) if self.order else {}
        ordered = set(self.order)
        for name in (name for name in own if name not in ordered):
            runs = self.runs(name)
            _add(total, {figure: amount.times(runs) for figure, amount in own[name].items()})
        return total


def _alike_calls(calls: Sequence[Call], known: Mapping[str, Mapping[_Figure, Bounds]]) -> Hashable:
    """All that `_figures_of_call` depends on; the figures are those of `known`, which keeps them."""
    return calls[0].instruction.opcode, tuple([(id(known.get(call.callee)), call.times) for call in calls])


def _with_calls(
    own: Mapping[_Figure, Bounds], made: Iterable[Sequence[Call]], known: Mapping[str, Mapping[_Figure, Bounds]]
) -> Mapping[_Figure, Bounds]:
    """The figures of a computation with those of its calls, which each instruction makes together."""
    figures = dict(own)
    for calls in made:
        _add(figures, _figures_of_call(calls, known))
    return figures


def _figures_of_call(calls: Sequence[Call], known: Mapping[str, Mapping[_Figure, Bounds]]) -> dict[_Figure, Bounds]:
    """What the calls of one instruction add to the figures of its computation."""
    found = [known.get(call.callee, {}) for call in calls]
    if len(calls) > 1 and calls[0].instruction.opcode == "conditional":
        return _of_branches(found, f"{calls[0].times.reason}, which differ")
    total: dict[_Figure, Bounds] = {}
    for call, figures in zip(calls, found, strict=True):
        _add(total, {figure: amount.times(call.times) for figure, amount in figures.items()})
    return total


def _of_branches(branches: Sequence[Mapping[_Figure, Bounds]], reason: str) -> dict[_Figure, Bounds]:
    """The figures of a conditional, which runs one of its branches."""
    amounts: defaultdict[_Figure, list[Bounds]] = defaultdict(list)
    for branch in branches:
        for figure, amount in branch.items():
            amounts[figure].append(amount)
    for found in amounts.values():
        if len(found) < len(branches):
            found.append(NOTHING)
    return {figure: _of_one(found, reason) for figure, found in amounts.items()}


def _of_one(amounts: Sequence[Bounds], reason: str) -> Bounds:
    """What is one of these amounts."""
    highest = [amount.greatest for amount in amounts if amount.greatest is not None]
    least, greatest = min(amount.least for amount in amounts), max(highest) if len(highest) == len(amounts) else None
    if least == greatest:
        return Bounds.exactly(least)
    return Bounds(least, greatest, next((amount.reason for amount in amounts if amount.reason), reason))


def _add(figures: dict[_Figure, Bounds], more: Mapping[_Figure, Bounds]) -> None:
    for figure, amount in more.items():
        before = figures.get(figure)
        figures[figure] = amount if before is None else before.plus(amount)


InstructionPlace = tuple[str, int, str]
"""Computation, line and name: a key of an instruction that no other one has, unless a text defines a name twice on one line."""


def place(instruction: Instruction) -> InstructionPlace:
    return instruction.computation.name, instruction.line, instruction.name


def _callers_first(calls: Mapping[str, Sequence[Call]]) -> list[str]:
    callees = {name: [call.callee for call in made if call.callee in calls] for name, made in calls.items()}
    open_calls = Counter(callee for found in callees.values() for callee in found)
    order = [name for name in calls if not open_calls[name]]
    for name in order:
        for callee in callees[name]:
            open_calls[callee] -= 1
            if not open_calls[callee]:
                order.append(callee)
    return order


def recursion(computation: str) -> str:
    """The reason for a computation that is reached and not in `CallGraph.order`."""
    return f"{computation} is called, directly or not, by a computation that calls itself"
