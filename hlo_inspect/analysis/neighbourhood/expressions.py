"""What a fusion computes, in one short line: the expression of its root."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.view import View, Views
from hlo_inspect.hlo.shapes import ArrayShape
from hlo_inspect.hlo.tokens import ScanError

MAX_NODES = 48
MAX_DEPTH = 12
MAX_OUTPUTS = 3
CUT = "…"

_INFIX = {
    "or": ("|", 1), "xor": ("^", 1), "and": ("&", 2), "compare": ("", 3), "add": ("+", 4), "subtract": ("-", 4),
    "multiply": ("*", 5), "divide": ("/", 5), "remainder": ("%", 5), "power": ("**", 7),
}  # fmt: skip
_DIRECTIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_SIGN, _ATOM = 6, 9
_SHORT = {
    "maximum": "max", "minimum": "min", "exponential": "exp", "exponential-minus-one": "expm1", "log-plus-one": "log1p",
}  # fmt: skip
_LEFT_OUT = frozenset({"bitcast", "broadcast", "copy", "reshape", "opt-barrier"})
"""What changes no value: the operand stands in its place."""
_FIRST_ONLY = {"dynamic-slice": 1, "dynamic-update-slice": 2, "reduce": 1, "reduce-window": 1, "pad": 1}
"""Operands that are shown; indices and initial values are not."""
_LONGEST_LITERAL = 24

Text = tuple[str, int]
"""A text and how tightly its outermost operator binds."""


class FusionExpressions:
    """The expressions of a module's fused computations."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def of(self, computation: str, arguments: Sequence[str]) -> str:
        """The expression of the root, in the names of the arguments; empty where there is no such computation. Of many results
        the first few are given, and what is deep or long is cut to `…`.
        """
        if computation not in self._views.computations:
            return ""
        view = self._views.of(computation)
        if view.root is None:
            return ""
        writer = _Writer(self._views, view, arguments)
        if view.opcodes[view.root] != "tuple":
            return writer.text(view.root, 0)[0]
        results = [row for row in view.operand_rows(view.root) if row is not None]
        shown = [writer.text(row, 0)[0] for row in results[:MAX_OUTPUTS]]
        more = len(results) - len(shown)
        return ", ".join([*shown, *([f"{more} more"] if more else [])])


class _Writer:
    """Writes the expressions of one computation, together of at most `MAX_NODES` instructions."""

    def __init__(self, views: Views, view: View, arguments: Sequence[str]) -> None:
        self._views = views
        self._view = view
        self._arguments = arguments
        self._left = MAX_NODES

    def text(self, row: int, depth: int) -> Text:
        view, opcode = self._view, self._view.opcodes[row]
        operands = view.operand_rows(row)
        while opcode in _LEFT_OUT and len(operands) == 1 and operands[0] is not None:
            row = operands[0]
            opcode, operands = view.opcodes[row], view.operand_rows(row)
        if opcode == "parameter":
            number = view.parameter_number(row)
            known = number is not None and number < len(self._arguments)
            return (self._arguments[number] if known and number is not None else view.rows[row][1]), _ATOM
        if opcode == "constant":
            return self._constant(row), _ATOM
        self._left -= 1
        if depth >= MAX_DEPTH or self._left < 0:
            return CUT, _ATOM
        return self._operation(row, opcode, depth + 1)

    def _constant(self, row: int) -> str:
        shape = self._view.shapes[row]
        try:
            literal = self._view.instruction(row).literal
        except ScanError:
            literal = ""
        is_scalar = isinstance(shape, ArrayShape) and not shape.dimensions
        return literal if is_scalar and 0 < len(literal) <= _LONGEST_LITERAL else "constant"

    def _operation(self, row: int, opcode: str, depth: int) -> Text:
        operands = [self._operand(row, number, depth) for number in range(len(self._view.operand_rows(row)))]
        if opcode in _INFIX and len(operands) == 2:
            sign, binds = _INFIX[opcode]
            sign = sign or self._direction(row)
            right = binds if opcode in {"add", "multiply", "and", "or", "xor"} else binds + 1
            return f"{_bracketed(operands[0], binds)} {sign} {_bracketed(operands[1], right)}", binds
        if opcode == "negate" and len(operands) == 1:
            return f"-{_bracketed(operands[0], _SIGN)}", _SIGN
        if opcode == "get-tuple-element" and len(operands) == 1:
            return f"{operands[0][0]}[{self._view.element_number(row)}]", _ATOM
        shown = operands[: _FIRST_ONLY.get(opcode, len(operands))]
        return f"{self._function(row, opcode)}({', '.join(text for text, _ in shown)})", _ATOM

    def _operand(self, row: int, number: int, depth: int) -> Text:
        source = self._view.operand_rows(row)[number]
        return (self._view.operands(row)[number].name or "?", _ATOM) if source is None else self.text(source, depth)

    def _direction(self, row: int) -> str:
        try:
            direction = self._view.instruction(row).attr("direction")
        except ScanError:
            direction = None
        return _DIRECTIONS.get(direction or "", "?")

    def _function(self, row: int, opcode: str) -> str:
        """What an operation is called: a conversion by its type, a reduction by what it applies, a custom call by target."""
        shape = self._view.shapes[row]
        if opcode in {"convert", "bitcast-convert"} and isinstance(shape, ArrayShape):
            return shape.dtype
        try:
            if opcode in {"reduce", "reduce-window"}:
                return "-".join(filter(None, (opcode, self._applied(self._view.instruction(row).callee("to_apply")))))
            if opcode == "custom-call":
                return self._view.instruction(row).attr("custom_call_target") or opcode
        except ScanError:
            return opcode
        return _SHORT.get(opcode, opcode)

    def _applied(self, computation: str | None) -> str:
        if computation is None or computation not in self._views.computations:
            return ""
        view = self._views.of(computation)
        root = view.opcodes[view.root] if view.root is not None else ""
        return _SHORT.get(root, root)


def _bracketed(operand: Text, binds: int) -> str:
    text, own = operand
    return text if own >= binds else f"({text})"
