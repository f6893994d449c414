"""Which computation runs which, and how often each runs in one run of the program.

A fusion, a call and an async-start run their computation once; a while its body as often as its trip count says, and its
condition once more; a conditional runs one of its branches. The computation that a reduction, a sort or an all-reduce applies
to elements does not count as run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.loops import RUNNING_OPCODES, find_loops
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_call
from hlo_inspect.hlo.wants import Wants

WANTS = Wants(opcodes=RUNNING_OPCODES, loops=True)
"""What has to be kept of a module, beside the instructions that are to be counted."""

_FUSING = opcodes_that_call("fused")
_CALLING = RUNNING_OPCODES | _FUSING | opcodes_that_call("custom")


class Call(NamedTuple):
    """`instruction` runs `callee` so many `times`; `reason` says why where that is not known."""

    instruction: Instruction
    callee: str
    times: int | None
    reason: str = ""


class CallGraph:
    """What one run of a module's entry reaches.

    The module has to be read for `WANTS`. Fusions and custom calls are followed where the reader kept them, as it does with
    those that hold what is wanted. `calls` are the calls of each computation that is reached. `order` has callers before their
    callees; it leaves out computations that call themselves and those that only they call, as XLA has no recursion.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self.loops = find_loops(module)
        self._loops = {_place(loop.instruction): loop for loop in self.loops}
        self._follows_fusions = any(c.instructions and not c.is_entry for c in module.computations.values())
        self.calls = self._reached()
        self.order = _callers_first(self.calls)
        self._reasons: dict[str, str] = {}

    def _reached(self) -> dict[str, list[Call]]:
        reached: dict[str, list[Call]] = {}
        waiting = [self._module.entry.name] if self._module.entry is not None else []
        while waiting:
            computation = self._module.computations.get(waiting.pop())
            if computation is not None and computation.name not in reached:
                calls = [call for i in computation.instructions if i.opcode in _CALLING for call in self._calls(i)]
                reached[computation.name] = calls
                waiting += [call.callee for call in calls]
        return reached

    def _calls(self, instruction: Instruction) -> Iterator[Call]:
        """The computations that an instruction runs, and how often."""
        if instruction.opcode in _FUSING and not self._follows_fusions:
            return
        place = f"{instruction.name} (line {instruction.line})"
        callees = dict.fromkeys((callee.role, callee.name) for callee in instruction.called)
        for role, name in callees:
            if role in {"body", "condition"}:
                loop = self._loops[_place(instruction)]
                times = None if loop.trip_count is None else loop.trip_count + (role == "condition")
                yield Call(instruction, name, times, f"the trip count of {place} {loop.reason}")
            elif role == "branch" and len(callees) > 1:
                yield Call(instruction, name, None, f"{place} runs only one of its branches")
            elif role == "custom":
                yield Call(instruction, name, None, f"{place} is a custom call, which runs it as it likes")
            else:
                yield Call(instruction, name, 1)

    @cached_property
    def executions(self) -> Mapping[str, int | None]:
        """How often each computation that is reached runs; `None` where that is not known, for which `reason` has the words."""
        counts: dict[str, int | None] = dict.fromkeys(self.calls) | dict.fromkeys(self.order, 0)
        for entry in self.order[:1]:
            counts[entry] = 1
        for name in self.order:
            for call in self.calls[name]:
                before, more = counts.get(call.callee), _product(counts[name], call.times)
                if call.callee in counts and before is not None:
                    counts[call.callee] = None if more is None else before + more
                if more is None:
                    self._reasons.setdefault(call.callee, call.reason if call.times is None else self._reasons[name])
        return counts

    def reason(self, computation: str) -> str:
        """Why it is not known how often a computation runs."""
        if computation not in self.executions:
            return f"nothing that was read calls {computation}"
        return self._reasons.get(computation, recursion(computation))


def _place(instruction: Instruction) -> tuple[str, int, str]:
    """A key of an instruction that no other one has, also in a text that defines a name twice."""
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


def _product(runs: int | None, times: int | None) -> int | None:
    if runs == 0 or times == 0:
        return 0
    return None if runs is None or times is None else runs * times


def recursion(computation: str) -> str:
    """The reason for a computation that is reached and not in `CallGraph.order`."""
    return f"{computation} is called, directly or not, by a computation that calls itself"
