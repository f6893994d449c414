"""Operands that a result may overwrite, if no later instruction needs them.

Follows `HloDataflowAnalysis::CanShareOperandBufferWithUser` (xla/hlo/analysis/hlo_dataflow_analysis.cc) and on GPU
`NVPTXAliasInfo::MayAlias` and `FusionCanShareBufferHint` (xla/service/gpu/nvptx_alias_info.cc and alias_info.cc).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from functools import cached_property

from hlo_inspect.analysis.memory.buffers import ValueUses
from hlo_inspect.analysis.memory.hlo_values import Values
from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import ELEMENTWISE, opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, Shape, subshape

_LOOP_KINDS = frozenset({"kLoop", "kInput"})


class Overwriting:
    """Decides which operands may be overwritten."""

    def __init__(self, values: Values, uses: ValueUses, views: Views, in_place: InPlace, platform: Platform) -> None:
        self._schedule, self._trees = values.schedule, values.trees
        self._values = values
        self._uses = uses
        self._views = views
        self._in_place = in_place
        self._platform = platform
        self._hints: dict[tuple[str, int, ShapeIndex], bool] = {}
        self._elementwise: dict[str, Collection[int]] = {}
        self._known: dict[tuple[int, int, int, int], bool] = {}

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """The opcodes that may overwrite an operand on this platform."""
        of_platform = {"gpu": {"all-reduce", "collective-broadcast"}, "tpu": {"all-reduce"}}.get(self._platform.name, set())
        return self._in_place.opcodes.union(_ALWAYS, _WRITTEN, {"call", "sort"}, of_platform)

    def is_possible(self, operand: int, operand_place: int, user: int, user_place: int) -> bool:
        """Return True if a part of the result of `user` may use the buffer of a part of its operand.

        Both arguments are times.
        """
        key = (operand, operand_place, user, user_place)
        cached = self._known.get(key)
        if cached is None:
            cached = self._known[key] = self._decide(operand, operand_place, user, user_place)
        return cached

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
            if place is not None and self._values.result(written)[place] == self._values.result(operand)[operand_place]:
                return True
        return False

    def _gpu_hint(self, operand: int, user: int, user_place: int) -> bool | None:
        """Return True if the result may overwrite the operand on GPU; None if the rules of all platforms decide."""
        schedule = self._schedule
        number, opcode = schedule.operands[user].index(operand), schedule.opcodes[user]
        index = self._trees.index(schedule.shapes[user], user_place)
        view, row = schedule.view(user), schedule.rows[user]
        if opcode in ("all-reduce", "collective-broadcast"):
            is_same = len(index) == 1 and view.operand_row(row, index[0]) == view.operand_row(row, number)
            return is_same or len(view.operand_rows(row)) == 1
        if opcode == "custom-call":
            return _matmul(view, row, number, index)
        if opcode != "fusion":
            return None
        fused, shape = self._views.fused(view, row), view.shapes[row]
        result = subshape(shape, index) if shape is not None else None
        if fused is None or not _same_elements(schedule.shapes[operand], result):
            return False
        key = (fused.name, number, index)
        cached = self._hints.get(key)
        if cached is None:
            cached = self._hints[key] = _FusionHint(self._views.for_computation(fused.name), index).holds(number)
        return cached

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
        """Return True if only the call and the root of the called computation use the operand, the root element by element."""
        schedule = self._schedule
        runs = schedule.called.get(user, ())
        if not runs or runs[0].root < 0:
            return False
        root, value = runs[0].root, self._values.top(operand)
        uses = [
            (use, number)
            for time, _ in self._uses.positions[value]
            if isinstance(self._values.results[time], int)
            for use in self._uses.users[time]
            for number, given in enumerate(schedule.operands[use])
            if given == time
        ]
        return len(uses) == 2 and any(
            use == root and _is_elementwise_on(schedule.opcodes[root], number) for use, number in uses
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
        return kind == "kOutput" and _is_other_addend(self._views.for_computation(fused.name), number)

    def _elementwise_parameters(self, fused: Computation) -> Collection[int]:
        """Return the parameters that a result reads element by element: each of its elements needs only the same element.

        Follows `AreTransitiveUsesElementwiseOrTuple`.
        """
        cached = self._elementwise.get(fused.name)
        if cached is None:
            cached = self._elementwise[fused.name] = _elementwise_parameters(self._views.for_computation(fused.name))
        return cached


def _elementwise_parameters(fused: View) -> set[int]:
    """Return the parameters that all users, and their users in turn, take element by element.

    It goes from the last row to the first. A row is good if all its users are good, and elementwise on it or tuples.
    """
    good = [True] * len(fused.rows)
    numbers = set()
    for row in range(len(fused.rows) - 1, -1, -1):
        opcode = fused.opcodes[row]
        if opcode == "parameter":
            number = fused.parameter_number(row)
            if good[row] and number is not None:
                numbers.add(number)
        for number, operand in enumerate(fused.operand_rows(row)):
            if operand is not None and not (good[row] and (opcode == "tuple" or _is_elementwise_on(opcode, number))):
                good[operand] = False
    return numbers


def _is_other_addend(fused: View, number: int) -> bool:
    """Return True if the root adds a dot or a convolution and the parameter, which nothing else uses."""
    root = fused.root
    if root is None or fused.opcodes[root] != "add":
        return False
    operands = fused.operand_rows(root)
    matched = next(
        (i for i, operand in enumerate(operands) if operand is not None and fused.opcodes[operand] in ("convolution", "dot")),
        None,
    )
    if matched is None:
        return False
    other = fused.operand_row(root, 1 - matched)
    if other is None or fused.opcodes[other] != "parameter" or fused.parameter_number(other) != number:
        return False
    uses = [operand for row in fused.users[other] for operand in fused.operand_rows(row) if operand == other]
    return len(uses) == 1


_ALWAYS = ELEMENTWISE | {"while", "conditional"}
"""Opcodes that may overwrite any operand of the same shape."""

_WRITTEN: Mapping[str, int] = dict.fromkeys(opcodes_that_are("update"), 0) | {"set-dimension-size": 0, "triangular-solve": 1}


def _is_elementwise_on(opcode: str, number: int) -> bool:
    """Return True if an instruction is elementwise on the operand (`HloInstruction::IsElementwiseOnOperand`)."""
    return opcode in ELEMENTWISE or (opcode == "dynamic-update-slice" and number == 0)


_LT_MATMUL = "__cublas$lt$matmul"
_SLICES = "dynamic-slice"
_UPDATES = "dynamic-update-slice"


def _same_elements(given: Shape | None, result: Shape | None) -> bool:
    """Return True for equal shapes, and for arrays with equal numbers of elements and equal bits per element."""
    if given == result:
        return True
    if not isinstance(given, ArrayShape) or not isinstance(result, ArrayShape):
        return False
    return given.elements == result.elements and BITS.get(given.dtype) == BITS.get(result.dtype)


def _matmul(view: View, row: int, number: int, index: ShapeIndex) -> bool:
    """Return True if the operand is the addend of a product of matrices, and the result is not the workspace."""
    instruction = view.instruction(row)
    operands = view.operand_rows(row)
    if instruction.attr("custom_call_target") != _LT_MATMUL or len(operands) < 3:
        return False
    config = instruction.attr("backend_config")
    beta = config.member("gemm_backend_config").get("beta", 0) if config is not None else 0
    given = view.operand_row(row, number)
    return beta != 0 and given == view.operand_row(row, 2) and operands.count(given) == 1 and index == (0,)


class _FusionHint:
    """Decides if a result of a fusion may overwrite a parameter.

    All paths from the parameter to this result and to others must go element by element in one order.
    """

    def __init__(self, fused: View, index: ShapeIndex) -> None:
        self._fused = fused
        self._index = index
        root = fused.root
        self._roots: list[int] = []
        output = root
        if root is not None and fused.opcodes[root] == "tuple":
            self._roots = [operand for operand in fused.operand_rows(root) if operand is not None]
            has_element = bool(index) and index[0] < len(fused.operand_rows(root))
            output = fused.operand_row(root, index[0]) if has_element else root
        elif root is not None:
            self._roots = [root]
        self._output = output
        is_bitcast = output is not None and fused.opcodes[output] == "bitcast"
        self._origin = fused.operand_row(output, 0) if output is not None and is_bitcast else output
        self._hero = self._reduction()

    def _reduction(self) -> int | None:
        """Return the first reduction among the results. It is computed before any other result is written."""
        heroes = (self._fused.origin(root, _AROUND_HEROES) for root in self._roots)
        return next((row for row in heroes if row is not None and self._fused.opcodes[row] == "reduce"), None)

    def holds(self, number: int) -> bool:
        fused = self._fused
        parameter = fused.parameters_by_number.get(number)
        if parameter is None or self._output is None or self._origin is None:
            return False
        visited = {parameter}
        waiting = deque([parameter])
        reaches_output = False
        while waiting:
            row = waiting.popleft()
            reaches_output |= row == self._output
            if row == self._hero:
                continue
            for user in fused.users[row]:
                if user not in visited:
                    visited.add(user)
                    waiting.append(user)
                if not self._passes(row, user):
                    return False
        return reaches_output and self._others_agree(visited)

    def _passes(self, row: int, user: int) -> bool:
        """Return True if a use keeps the order of the elements."""
        fused, origin = self._fused, self._origin
        opcode, operands = fused.opcodes[user], fused.operand_rows(user)
        first = operands.index(row)
        if user == origin and opcode == "scatter" and first < len(operands) // 2 and operands.count(row) == 1:
            return True
        if user == origin and opcode == "sort" and operands.count(row) == 1:
            return self._index == (first,)
        if self._is_same_slice(user):
            return self._starts_agree(user)
        if opcode in ("bitcast", "tuple") or user == self._hero:
            return True
        if opcode != "copy" and (opcode in ELEMENTWISE or (opcode == _UPDATES and first == 0)):
            return True
        return user == origin and opcode == _UPDATES and first == 1

    def _is_same_slice(self, user: int) -> bool:
        """Return True if the use is a slice of the array that the root updates, as large as the update."""
        fused, origin = self._fused, self._origin
        if origin is None or fused.opcodes[origin] != _UPDATES or fused.opcodes[user] != _SLICES:
            return False
        updated, update = fused.operand_row(origin, 0), fused.operand_row(origin, 1)
        return updated == fused.operand_row(user, 0) and update is not None and fused.shapes[user] == fused.shapes[update]

    def _starts_agree(self, user: int) -> bool:
        fused, origin = self._fused, self._origin
        shape = fused.shapes[user]
        if isinstance(shape, ArrayShape) and shape.elements == 1:
            return True
        return origin is not None and fused.operand_rows(user)[1:] == fused.operand_rows(origin)[2:]

    def _others_agree(self, visited: set[int]) -> bool:
        """Return True if no other reached result visits the elements in another order."""
        fused = self._fused
        if len(self._roots) < 2:
            return True
        reached = [root for root in self._roots if root in visited]
        if all(root == self._output for root in reached):
            return True
        if self._origin is None or fused.opcodes[self._origin] not in ELEMENTWISE:
            return False
        heroes = (fused.origin(root, _AROUND_HEROES) for root in reached)
        return not any(row is not None and fused.opcodes[row] in ("transpose", "copy") for row in heroes)


_AROUND_HEROES = (opcodes_that_are("relayout") - {"copy", "transpose"}) | {"convert", "negate"}
"""Opcodes between a result and the operation that decides how a fusion is emitted."""
