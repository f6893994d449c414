"""Which computation runs which, and how often each runs in one run of the program.

A fusion, a call and an async-start run their computation once; a while its body as often as its trip count says, and its
condition once more; a conditional one of its branches. What a reduction, a sort or an all-reduce applies to elements is no run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.induction import RUNNING_OPCODES
from hlo_inspect.analysis.trip_counts import find_loops
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module, Wants

WANTS = Wants(opcodes=RUNNING_OPCODES, loops=True)
"""What has to be kept of a module, beside the instructions that are to be counted."""

_CALLING = RUNNING_OPCODES | {"custom-call", "fusion", "fusion-start"}
_ONE_CALLEE = {"fusion": "calls", "call": "to_apply", "async-start": "calls"}
"""Opcodes that run one computation once, by the attribute that names it."""

_Amounts = Counter[tuple[str, int | None]]  # collectives of a kind and operand size


class Call(NamedTuple):
    """`instruction` runs `callee` so many `times`; `reason` says why where that is not known."""

    instruction: Instruction
    callee: str
    times: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Executed:
    """The collectives of one run of the program and the bytes of their operands; `notes` say why one of them is `None`."""

    count: int | None
    operand_bytes: int | None
    notes: tuple[str, ...] = ()


class CallGraph:
    """What one run of a module's entry reaches.

    The module has to be read for `WANTS`. Fusions are followed as far as they hold what is wanted, custom calls where they are
    kept. `calls` are those of each computation that is reached. `order` has callers before their callees; what calls itself, or
    is called from there, is not in it: XLA has no recursion.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self.loops = find_loops(module)
        self._loops = {_place(loop.instruction): loop for loop in self.loops}
        self._fused = any(c.instructions and not c.is_entry for c in module.computations.values())
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

    def _calls(self, instruction: Instruction) -> list[Call]:
        if instruction.opcode in _ONE_CALLEE:
            is_followed = self._fused or instruction.opcode != "fusion"
            name = instruction.word(_ONE_CALLEE[instruction.opcode]) if is_followed else None
            return [Call(instruction, name, 1)] if name is not None and self._holds_something(name) else []
        if instruction.opcode == "custom-call" and not instruction.mentions("called_computations="):
            return []
        names = [called for found in instruction.callees(instruction.attributes).values() for called in found]
        place = f"{instruction.name} (line {instruction.line})"
        if instruction.opcode == "while":
            loop = self._loops[_place(instruction)]
            times = loop.trip_count
            pairs = ((loop.body, times), (loop.condition, None if times is None else times + 1))
            reason = f"the trip count of {place} {loop.reason}"
            return [Call(instruction, name, times, reason) for name, times in pairs if name is not None]
        if instruction.opcode == "conditional" and len(set(names)) > 1:
            return [Call(instruction, name, None, f"{place} runs only one of its branches") for name in names]
        if instruction.opcode == "custom-call":
            return [Call(instruction, name, None, f"{place} is a custom call, which runs it as it likes") for name in names]
        return [Call(instruction, name, 1) for name in names[:1]]

    def _holds_something(self, name: str) -> bool:
        """Whether anything was kept of a computation; of most fusions' nothing is."""
        computation = self._module.computations.get(name)
        return computation is not None and bool(computation.instructions or computation.scalars)

    @cached_property
    def executions(self) -> Mapping[str, int | None]:
        """How often each computation that is reached runs; `None` where that is not known, `reason` says why."""
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
        return self._reasons.get(computation, _recursion(computation))


def _place(instruction: Instruction) -> tuple[str, int, str]:
    """What tells an instruction from any other, also in a text that defines a name twice."""
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


def _recursion(computation: str) -> str:
    return f"{computation} is called, directly or not, by a computation that calls itself"


def executed_totals(graph: CallGraph, collectives: Iterable[Collective]) -> Executed:
    """Collectives × how often their computations run, send and recv left out.

    Of a conditional one branch runs: where all of them hold the same, by kind and operand bytes, that counts once, else nothing
    is known.
    """
    held: defaultdict[str, _Amounts] = defaultdict(Counter)
    for collective in collectives:
        if not collective.is_point_to_point:
            held[collective.inner.computation.name][collective.kind, collective.operand_bytes] += 1
    unreached = [name for name in held if name not in graph.calls]
    amounts = graph.reason(unreached[0]) if unreached else _amounts(graph, held)
    if isinstance(amounts, str):
        facts = ("collectives.executed_count", "collectives.executed_operand_bytes")
        return Executed(None, None, tuple(f"{fact}: {amounts}" for fact in facts))
    count = sum(amounts.values())
    unknown = sum(times for (_, size), times in amounts.items() if size is None)
    if unknown:
        note = f"collectives.executed_operand_bytes: not known for {unknown} of {count} executed collectives"
        return Executed(count, None, (note,))
    return Executed(count, sum(times * (size or 0) for (_, size), times in amounts.items()))


def _amounts(graph: CallGraph, held: Mapping[str, _Amounts]) -> _Amounts | str:
    """What a run of the entry executes, or why that is not known."""
    known: dict[str, _Amounts | str] = {name: _recursion(name) for name in graph.calls}
    for name in reversed(graph.order):
        known[name] = _executed(held.get(name, Counter()), graph.calls[name], known)
    return next((known[entry] for entry in graph.calls), Counter())


def _executed(own: _Amounts, calls: Iterable[Call], known: Mapping[str, _Amounts | str]) -> _Amounts | str:
    total = Counter(own)
    for _, made in groupby(calls, key=lambda call: call.instruction):
        part = _part(list(made), known)
        if isinstance(part, str):
            return part
        total.update(part)
    return total


def _part(calls: Sequence[Call], known: Mapping[str, _Amounts | str]) -> _Amounts | str:
    """What the calls of one instruction execute."""
    found = [known.get(call.callee, Counter()) for call in calls]
    if calls[0].instruction.opcode == "conditional":
        same = all(amounts == found[0] for amounts in found)
        return found[0] if same else f"{calls[0].reason}, which hold different collectives"
    total: _Amounts = Counter()
    for call, amounts in zip(calls, found, strict=True):
        if not amounts or call.times == 0:
            continue
        if isinstance(amounts, str) or call.times is None:
            return amounts if isinstance(amounts, str) else call.reason
        total.update({key: times * call.times for key, times in amounts.items()})
    return total
