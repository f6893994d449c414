"""Whether an instruction may write its result over an operand that is not needed afterwards.

Follows `HloDataflowAnalysis::CanShareOperandBufferWithUser` (xla/hlo/analysis/hlo_dataflow_analysis.cc) and the hints of the
platforms (`gpu_overwriting`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from hlo_inspect.analysis.memory.gpu_overwriting import GpuHints
from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.live_ranges import Uses
from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.analysis.memory.values import Values
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import ELEMENTWISE, LITERAL_OPCODES, opcodes_that_are

_LOOP_KINDS = frozenset({"kLoop", "kInput"})


class Overwriting:
    """Which operands may be written over."""

    def __init__(self, values: Values, uses: Uses, views: Views, in_place: InPlace, platform: Platform) -> None:
        self._schedule, self._trees = values.schedule, values.trees
        self._values = values
        self._uses = uses
        self._views = views
        self._in_place = in_place
        self._platform = platform
        self._gpu = GpuHints(views)
        self._elementwise: dict[str, Collection[int]] = {}
        self._known: dict[tuple[int, int, int, int], bool] = {}

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """What may be written over an operand on this platform."""
        of_platform = {"gpu": {"all-reduce", "collective-broadcast"}, "tpu": {"all-reduce"}}.get(self._platform.name, set())
        return self._in_place.opcodes.union(_ALWAYS, _WRITTEN, {"call", "sort"}, of_platform)

    def is_possible(self, operand: int, operand_place: int, user: int, user_place: int) -> bool:
        """Whether the part of the result of `user` may take the buffer of a part of the result of its operand (both times)."""
        key = (operand, operand_place, user, user_place)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(operand, operand_place, user, user_place)
        return known

    def _decide(self, operand: int, operand_place: int, user: int, user_place: int) -> bool:
        schedule, trees = self._schedule, self._trees
        given = trees.part(schedule.shapes[operand], operand_place)
        result = trees.part(schedule.shapes[user], user_place)
        if schedule.opcodes[operand] == "constant" or given is None or result is None:
            return False
        is_equal = given is result or given == result
        if is_equal and self._is_in_place(operand, operand_place, user, user_place):
            return True
        if self._platform.name == "gpu":
            hint = self._gpu_hint(operand, user, user_place)
            if hint is not None:
                return hint
        return is_equal and self._by_opcode(operand, user, user_place)

    def _is_in_place(self, operand: int, operand_place: int, user: int, user_place: int) -> bool:
        schedule, trees = self._schedule, self._trees
        opcode = schedule.opcodes[user]
        if opcode not in self._in_place.opcodes:
            return False
        for pair in self._in_place.pairs(schedule.view(user), schedule.rows[user], opcode):
            operands = schedule.operands[user]
            if pair.operand >= len(operands) or trees.place(schedule.shapes[user], pair.result_index) != user_place:
                continue
            written = operands[pair.operand]
            place = trees.place(schedule.shapes[written], pair.operand_index) if written >= 0 else None
            if place is not None and self._values.of(written)[place] == self._values.of(operand)[operand_place]:
                return True
        return False

    def _gpu_hint(self, operand: int, user: int, user_place: int) -> bool | None:
        schedule, trees = self._schedule, self._trees
        number = schedule.operands[user].index(operand)
        index = trees.index(schedule.shapes[user], user_place)
        view, row = schedule.view(user), schedule.rows[user]
        return self._gpu.hint(view, row, schedule.opcodes[user], number, schedule.shapes[operand], index)

    # -- opcodes --------------------------------------------------------------------------------------------------------

    def _by_opcode(self, operand: int, user: int, user_place: int) -> bool:
        schedule = self._schedule
        opcode, operands = schedule.opcodes[user], schedule.operands[user]
        if opcode in _ALWAYS:
            return True
        if opcode in _WRITTEN:
            number = _WRITTEN[opcode]
            return len(operands) > number and operands[number] == operand and operands.count(operand) == 1
        if opcode == "fusion":
            return self._fusion(user, operands.index(operand))
        if opcode == "all-reduce":
            return self._platform.is_tpu and (len(operands) == 1 or operands[user_place - 1] == operand)
        if opcode == "sort":
            is_its_own = len(operands) == 1 or (operands[user_place - 1] == operand and operands.count(operand) == 1)
            return is_its_own and len(self._uses.users[operand]) == 1
        return opcode == "call" and self._call(operand, user)

    def _call(self, operand: int, user: int) -> bool:
        """The operand is used by the call and by the root of what is called, element by element."""
        schedule = self._schedule
        runs = schedule.called.get(user, ())
        if not runs or runs[0].root < 0:
            return False
        root, value = runs[0].root, self._values.top(operand)
        uses = [
            (one, number)
            for time, _ in self._uses.positions[value]
            if isinstance(self._values.results[time], int)
            for one in self._uses.users[time]
            for number, given in enumerate(schedule.operands[one])
            if given == time
        ]
        return len(uses) == 2 and any(
            one == root and _is_elementwise_on(schedule.opcodes[root], number) for one, number in uses
        )

    # -- fusions --------------------------------------------------------------------------------------------------------

    def _fusion(self, user: int, number: int) -> bool:
        view, row = self._schedule.view(user), self._schedule.rows[user]
        fused = self._views.fused(view, row)
        if fused is None:
            return False
        kind = view.fusion_kind(row)
        if kind in _LOOP_KINDS or (kind == "kCustom" and self._platform.name == "cpu"):
            return number in self._elementwise_parameters(fused)
        return kind == "kOutput" and _is_other_addend(self._views.of(fused.name), number)

    def _elementwise_parameters(self, fused: Computation) -> Collection[int]:
        """The parameters of which each element of a result needs the same element alone
        (`AreTransitiveUsesElementwiseOrTuple`).
        """
        known = self._elementwise.get(fused.name)
        if known is None:
            opcodes = fused.rows.opcodes
            if _ELEMENT_BY_ELEMENT.issuperset(opcodes):
                known = range(opcodes.count("parameter"))
            else:
                known = _elementwise_parameters(self._views.of(fused.name))
            self._elementwise[fused.name] = known
        return known


def _elementwise_parameters(fused: View) -> set[int]:
    """From the last row to the first: a row is good when all its users are elementwise on it, or tuples, and good."""
    good = [True] * len(fused.rows)
    found = set()
    for row in range(len(fused.rows) - 1, -1, -1):
        opcode = fused.opcodes[row]
        if opcode == "parameter":
            number = fused.parameter_number(row)
            if good[row] and number is not None:
                found.add(number)
        operands = fused.operand_rows(row)
        for number, operand in enumerate(operands):
            if operand is not None and not (good[row] and (opcode == "tuple" or _is_elementwise_on(opcode, number))):
                good[operand] = False
    return found


def _is_other_addend(fused: View, number: int) -> bool:
    """The root adds a dot or a convolution and the parameter, which nothing else uses."""
    root = fused.root
    if root is None or fused.opcodes[root] != "add":
        return False
    operands = fused.operand_rows(root)
    matched = next(
        (i for i, one in enumerate(operands) if one is not None and fused.opcodes[one] in ("convolution", "dot")), None
    )
    if matched is None:
        return False
    other = fused.operand_row(root, 1 - matched)
    if other is None or fused.opcodes[other] != "parameter" or fused.parameter_number(other) != number:
        return False
    uses = [one for row in fused.users[other] for one in fused.operand_rows(row) if one == other]
    return len(uses) == 1


_ALWAYS = ELEMENTWISE | {"while", "conditional"}
"""What may be written over any operand of the same shape."""

_ELEMENT_BY_ELEMENT = ELEMENTWISE | LITERAL_OPCODES | {"tuple"}

_WRITTEN: Mapping[str, int] = dict.fromkeys(opcodes_that_are("update"), 0) | {"set-dimension-size": 0, "triangular-solve": 1}


def _is_elementwise_on(opcode: str, number: int) -> bool:
    """`HloInstruction::IsElementwiseOnOperand`."""
    return opcode in ELEMENTWISE or (opcode == "dynamic-update-slice" and number == 0)
