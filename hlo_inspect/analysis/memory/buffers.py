"""Which values share one buffer, always.

Follows `HloAliasAnalysis` (xla/hlo/analysis/hlo_alias_analysis.cc): an output and the parameter whose place it takes, what goes
round a loop, the roots of a conditional's branches, and in-place operands (`in_place`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.values import Values


@dataclass(slots=True, eq=False)
class Buffers:
    """The buffers of a program. `members` are the values of each in order, `of` the buffer of each value."""

    members: list[list[int]]
    of: list[int]


def find_buffers(values: Values, in_place: InPlace, outputs: Iterable[tuple[int, int]]) -> Buffers:
    """The buffers of values. `outputs` are pairs of values: of an output and of the parameter whose place it takes."""
    sets = _Sets(len(values.times))
    for one, other in outputs:
        sets.join(one, other)
    for group in _control_flow(values):
        sets.join_all(group)
    for one, other in _in_place(values, in_place):
        sets.join(one, other)
    return sets.buffers()


def _control_flow(values: Values) -> Iterator[tuple[int, ...]]:
    """`ComputeWhileAliasedValues` and `ComputeConditionalAliasedValues`."""
    schedule = values.schedule
    for time, runs in schedule.called.items():
        if schedule.opcodes[time] == "while":
            sources = [time, *schedule.operands[time][:1]]
            sources += [one for run in runs for one in run.parameters.values()]
            sources += [run.root for run in runs if run.role == "body"]
        elif schedule.opcodes[time] == "conditional":
            sources = [time, *[run.root for run in runs]]
        else:
            continue
        results = [values.of(one) for one in sources if one >= 0]
        yield from zip(*results, strict=False)


def _in_place(values: Values, in_place: InPlace) -> Iterator[tuple[int, int]]:
    """`ComputeInPlaceOperationAliasedValues`."""
    schedule, trees = values.schedule, values.trees
    for time, opcode in enumerate(schedule.opcodes):
        if opcode not in in_place.opcodes:
            continue
        operands = schedule.operands[time]
        for pair in in_place.pairs(schedule.view(time), schedule.rows[time], opcode):
            if pair.operand >= len(operands) or operands[pair.operand] < 0:
                continue
            operand = operands[pair.operand]
            given = trees.place(schedule.shapes[operand], pair.operand_index)
            result = trees.place(schedule.shapes[time], pair.result_index)
            if given is not None and result is not None:
                yield values.of(operand)[given], values.of(time)[result]


class _Sets:
    """Disjoint sets of values."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def _find(self, value: int) -> int:
        parents = self._parents
        while parents[value] != value:
            parents[value] = value = parents[parents[value]]
        return value

    def join(self, one: int, other: int) -> None:
        """The smaller number stands for both, so that the sets come in the order of their first values."""
        one, other = self._find(one), self._find(other)
        if one != other:
            self._parents[max(one, other)] = min(one, other)

    def join_all(self, group: Sequence[int]) -> None:
        for other in group[1:]:
            self.join(group[0], other)

    def buffers(self) -> Buffers:
        numbers: dict[int, int] = {}
        members: list[list[int]] = []
        of: list[int] = []
        for value in range(len(self._parents)):
            root = self._find(value)
            number = numbers.setdefault(root, len(members))
            if number == len(members):
                members.append([])
            members[number].append(value)
            of.append(number)
        return Buffers(members, of)
