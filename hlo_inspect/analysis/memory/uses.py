"""Where values are used, one by one (`HloValue::ComputeUses`, xla/service/hlo_value.cc)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from hlo_inspect.analysis.memory.schedule import Schedule
from hlo_inspect.analysis.memory.values import Values

_READS_TABLE = frozenset({"get-tuple-element", "copy"})
_READS_NOTHING = frozenset({"tuple", "domain"})


def users_of(schedule: Schedule) -> list[list[int]]:
    """By time the times of what uses the result, each once."""
    users: list[list[int]] = [[] for _ in range(schedule.end + 1)]
    for time, operands in enumerate(schedule.operands):
        for operand in operands:
            if not users[operand] or users[operand][-1] != time:
                users[operand].append(time)
    return users


def uses_of(schedule: Schedule, values: Values, wanted: Collection[int]) -> dict[int, list[int]]:
    """By wanted value the times at which it is used. An instruction that only passes a value on uses it where it is the root of
    its computation.
    """
    wanted = frozenset(wanted)
    users = users_of(schedule)
    positions: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for time in range(schedule.end):
        for place, value in enumerate(values.of(time)):
            if value in wanted:
                positions[value].append((time, place))
    found: dict[int, list[int]] = {}
    for value, places in positions.items():
        standing = {time for time, _ in places}
        uses: set[int] = set()
        for time, place in places:
            for user in users[time]:
                opcode = schedule.opcodes[user]
                reads = opcode not in _READS_NOTHING and (place == 0 or opcode not in _READS_TABLE)
                if reads or (schedule.run_at[user].root == user and user in standing):
                    uses.add(user)
        found[value] = sorted(uses)
    return found
