"""Which operands an instruction of a GPU may write over.

Follows `NVPTXAliasInfo::MayAlias` and `FusionCanShareBufferHint` (xla/service/gpu/nvptx_alias_info.cc and alias_info.cc).
"""

from __future__ import annotations

from collections import deque

from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import ELEMENTWISE, opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, Shape, subshape

_LT_MATMUL = "__cublas$lt$matmul"
_SLICES = "dynamic-slice"
_UPDATES = "dynamic-update-slice"


class GpuHints:
    """The hints of the instructions of a module."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._fused: dict[tuple[str, int, ShapeIndex], bool] = {}

    def hint(self, view: View, row: int, opcode: str, number: int, given: Shape | None, index: ShapeIndex) -> bool | None:
        """Whether operand `number`, of shape `given`, may be written over by the result at `index`; `None` where the rules of
        all platforms say it.
        """
        operands = view.operand_rows(row)
        if opcode in ("all-reduce", "collective-broadcast"):
            return len(operands) == 1 or (len(index) == 1 and view.operand_row(row, index[0]) == view.operand_row(row, number))
        if opcode == "custom-call":
            return _matmul(view, row, number, index)
        if opcode != "fusion":
            return None
        fused = self._views.fused(view, row)
        if fused is None:
            return False
        if not _same_elements(given, subshape(view.shapes[row], index) if view.shapes[row] is not None else None):  # type: ignore[arg-type]
            return False
        key = (fused.name, number, index)
        known = self._fused.get(key)
        if known is None:
            known = self._fused[key] = _FusionHint(self._views.of(fused.name), index).holds(number)
        return known


def _same_elements(given: Shape | None, result: Shape | None) -> bool:
    """Equal shapes, or arrays of equally many elements of equally many bits."""
    if given == result:
        return True
    if not isinstance(given, ArrayShape) or not isinstance(result, ArrayShape):
        return False
    return given.elements == result.elements and BITS.get(given.dtype) == BITS.get(result.dtype)


def _matmul(view: View, row: int, number: int, index: ShapeIndex) -> bool:
    """The matrix that a product is added to may be written over, except by its workspace."""
    instruction = view.instruction(row)
    operands = view.operand_rows(row)
    if instruction.attr("custom_call_target") != _LT_MATMUL or len(operands) < 3:
        return False
    config = instruction.attr("backend_config")
    beta = config.member("gemm_backend_config").get("beta", 0) if config is not None else 0
    given = view.operand_row(row, number)
    return beta != 0 and given == view.operand_row(row, 2) and operands.count(given) == 1 and index == (0,)


class _FusionHint:
    """Whether a result of a fusion may be written over a parameter: what leads from one to the other goes element by element
    in one order, and so does what leads to other results.
    """

    def __init__(self, fused: View, index: ShapeIndex) -> None:
        self._fused = fused
        self._index = index
        root = fused.root
        self._roots: list[int] = []
        output = root
        if root is not None and fused.opcodes[root] == "tuple":
            self._roots = [one for one in fused.operand_rows(root) if one is not None]
            has_element = bool(index) and index[0] < len(fused.operand_rows(root))
            output = fused.operand_row(root, index[0]) if has_element else root
        elif root is not None:
            self._roots = [root]
        self._output = output
        self._origin = self._without_bitcast(output)
        self._hero = self._reduction()

    def _without_bitcast(self, row: int | None) -> int | None:
        if row is not None and self._fused.opcodes[row] == "bitcast":
            return self._fused.operand_row(row, 0)
        return row

    def _reduction(self) -> int | None:
        """The first reduction that a result is, which is computed before any other result is written."""
        heroes = map(self._hero_of, self._roots)
        return next((row for row in heroes if row is not None and self._fused.opcodes[row] == "reduce"), None)

    def _hero_of(self, root: int) -> int | None:
        """What a result is without what can stand around it."""
        row: int | None = root
        while row is not None and self._fused.opcodes[row] in _AROUND_HEROES and self._fused.operand_rows(row):
            row = self._fused.operand_row(row, 0)
        return row

    def holds(self, number: int) -> bool:
        fused = self._fused
        parameter = next(
            (
                row
                for row, opcode in enumerate(fused.opcodes)
                if opcode == "parameter" and fused.parameter_number(row) == number
            ),
            None,
        )
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
        """Whether a use keeps the order of the elements."""
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
        """A slice of what the root updates, as large as the update."""
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
        """No other result that was reached goes through the elements in another order."""
        fused = self._fused
        if len(self._roots) < 2:
            return True
        reached = [root for root in self._roots if root in visited]
        if all(root == self._output for root in reached):
            return True
        if self._origin is None or fused.opcodes[self._origin] not in ELEMENTWISE:
            return False
        heroes = map(self._hero_of, reached)
        return not any(row is not None and fused.opcodes[row] in ("transpose", "copy") for row in heroes)


_AROUND_HEROES = (opcodes_that_are("relayout") - {"copy", "transpose"}) | {"convert", "negate"}
"""What can stand between a result and the operation that decides how a fusion is emitted."""
