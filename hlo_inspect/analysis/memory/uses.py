"""Where values are used, one by one (`HloValue::ComputeUses`, xla/service/hlo_value.cc)."""

from __future__ import annotations

from functools import cached_property

from hlo_inspect.analysis.memory.schedule import Schedule
from hlo_inspect.analysis.memory.values import Values

_READS_TABLE = frozenset({"get-tuple-element", "copy"})
_READS_NOTHING = frozenset({"tuple", "domain"})


class Uses:
    """The uses of the values of a program, each found when it is first asked for."""

    def __init__(self, schedule: Schedule, values: Values) -> None:
        self._schedule = schedule
        self._values = values
        self._known: dict[int, list[int]] = {}

    @cached_property
    def users(self) -> list[list[int]]:
        """By time the times of what uses the result, each once."""
        users: list[list[int]] = [[] for _ in range(self._schedule.end + 1)]
        for time, operands in enumerate(self._schedule.operands):
            for operand in operands:
                if not users[operand] or users[operand][-1] != time:
                    users[operand].append(time)
        return users

    @cached_property
    def positions(self) -> list[list[tuple[int, int]]]:
        """By value the times of the results in which it stands, and its place in each."""
        positions: list[list[tuple[int, int]]] = [[] for _ in self._values.times]
        for time, result in enumerate(self._values.results):
            if isinstance(result, int):
                positions[result].append((time, 0))
            else:
                for place, value in enumerate(result):
                    positions[value].append((time, place))
        return positions

    def of(self, value: int) -> list[int]:
        """The times at which a value is used. An instruction that only passes it on uses it where it is the root of its
        computation.
        """
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._find(value)
        return known

    def _find(self, value: int) -> list[int]:
        schedule, positions = self._schedule, self.positions[value]
        standing = {time for time, _ in positions}
        uses: set[int] = set()
        for time, place in positions:
            for user in self.users[time]:
                opcode = schedule.opcodes[user]
                reads = opcode not in _READS_NOTHING and (place == 0 or opcode not in _READS_TABLE)
                if reads or (schedule.run_at[user].root == user and user in standing):
                    uses.add(user)
        return sorted(uses)
