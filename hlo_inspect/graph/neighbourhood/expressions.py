"""The expression that a fusion computes, in one short line."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import COMMUTATIVE, NAMING, STARTING_COLLECTIVES, TABLE, opcodes_that_are
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.shapes import ArrayShape

MAX_NODES = 48
MAX_DEPTH = 12
MAX_OUTPUTS = 3
CUT = "…"

_BINDS = {"|": 2, "^": 3, "&": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "**": 8}
"""Operators and their precedence, as in Python. Comparisons bind least."""
_DIRECTIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_SIGN, _ATOM = 7, 9
_LEFT_OUT = (opcodes_that_are("relayout") - {"transpose"}) | {"broadcast", "opt-barrier"}
"""Opcodes that change no value; the operand is shown instead."""
_AS_THEY_ARE = (NAMING - {"tuple"}) | {"copy"}
_REDUCING = opcodes_that_are("reduction") - STARTING_COLLECTIVES
_FIRST_ONLY = dict.fromkeys(_REDUCING | {"dynamic-slice", "pad"}, 1) | {"dynamic-update-slice": 2}
"""The number of shown operands; indices and initial values are not shown."""
_LONGEST_LITERAL = 24

Text = tuple[str, int]
"""A text and the precedence of its outermost operator."""


def scalar_text(view: View, row: int | None) -> str:
    """Return the value of a scalar constant; empty for any other row."""
    if row is None or view.opcodes[row] != "constant":
        return ""
    shape = view.shapes[row]
    if not isinstance(shape, ArrayShape) or shape.dimensions:
        return ""
    literal = view.instruction_at(row).literal
    return literal if len(literal) <= _LONGEST_LITERAL else ""


def fusion_expression(views: Views, computation: str, arguments: Sequence[str]) -> str:
    """Return the expression of a fused computation's root in terms of the arguments; empty if the computation does not exist.

    It shows the first `MAX_OUTPUTS` results, and `…` for parts that are too deep or too long.
    """
    view = views.find(computation)
    if view is None or view.root is None:
        return ""
    writer = _Writer(views, view, [(name, _ATOM) for name in arguments], [MAX_NODES])
    if view.opcodes[view.root] != "tuple":
        return writer.text(view.root, 0)[0]
    results = [row for row in view.operand_rows(view.root) if row is not None]
    computed = [row for row in results if not writer.is_argument(row)]
    texts = [writer.text(row, 0)[0] for row in computed[:MAX_OUTPUTS]]
    if len(computed) > MAX_OUTPUTS:
        texts.append(f"{len(computed) - MAX_OUTPUTS} more")
    if len(computed) < len(results):
        left_out = len(results) - len(computed)
        texts.append(f"{left_out} operand{'s' if left_out > 1 else ''} as {'they are' if left_out > 1 else 'it is'}")
    return "; ".join(texts)


class _Writer:
    """Write the expressions of one computation and of those that it fuses.

    `left` holds the number of instructions that may still be written.
    """

    def __init__(self, views: Views, view: View, arguments: Sequence[Text], left: list[int]) -> None:
        self._views = views
        self._view = view
        self._arguments = arguments
        self._left = left
        self._around: list[int] = []  # the rows whose operands are written

    def is_argument(self, row: int) -> bool:
        """Return True if a row has the unchanged values of a parameter."""
        source = self._view.origin(row, _AS_THEY_ARE)
        return source is not None and self._view.opcodes[source] == "parameter"

    def text(self, start: int, depth: int) -> Text:
        """Return the expression of a row; `…` in a cycle."""
        view = self._view
        row = view.origin(start, _LEFT_OUT)
        if row is None or row in self._around:
            return CUT, _ATOM
        opcode = view.opcodes[row]
        if opcode in {"convert", "bitcast-convert"}:
            source = view.origin(row, _LEFT_OUT | {opcode})
            row, opcode = (source, "constant") if source is not None and view.opcodes[source] == "constant" else (row, opcode)
        if opcode == "parameter":
            number = view.parameter_number(row)
            if number is not None and number < len(self._arguments):
                return self._arguments[number]
            return view.names[row], _ATOM
        if opcode == "constant":
            return scalar_text(view, row) or "constant", _ATOM
        self._left[0] -= 1
        if depth >= MAX_DEPTH or self._left[0] < 0:
            return CUT, _ATOM
        self._around.append(row)
        text = self._operation(row, opcode, depth + 1)
        self._around.pop()
        return text

    def _operation(self, row: int, opcode: str, depth: int) -> Text:
        operands = [self._operand(row, number, depth) for number in range(len(self._view.operand_rows(row)))]
        sign = _written(opcode)
        binds = _BINDS.get(sign)
        if opcode == "compare":
            sign, binds = _DIRECTIONS.get(self._view.instruction_at(row).attr("direction") or "", "?"), 1
        if binds is not None and len(operands) == 2:
            right = binds if opcode in COMMUTATIVE else binds + 1
            return f"{_bracketed(operands[0], binds)} {sign} {_bracketed(operands[1], right)}", binds
        if opcode == "negate" and len(operands) == 1:
            return f"-{_bracketed(operands[0], _SIGN)}", _SIGN
        if opcode == "get-tuple-element" and len(operands) == 1:
            return f"{operands[0][0]}[{self._view.element_number(row)}]", _ATOM
        if opcode == "slice" and len(operands) == 1:
            return f"{_bracketed(operands[0], _ATOM)}[{self._ranges(row)}]", _ATOM
        if opcode == "fusion":
            return self._write_fusion(row, operands, depth)
        shown = operands[: _FIRST_ONLY.get(opcode, len(operands))]
        return f"{self._function(row, opcode)}({', '.join(text for text, _ in shown)})", _ATOM

    def _write_fusion(self, row: int, operands: Sequence[Text], depth: int) -> Text:
        """Write a fusion inside of a fusion as its root."""
        view = self._views.find(self._view.instruction_at(row).callee("calls"))
        if view is None or view.root is None or view.opcodes[view.root] == "tuple":
            return f"fusion({', '.join(text for text, _ in operands)})", _ATOM
        return _Writer(self._views, view, operands, self._left).text(view.root, depth)

    def _operand(self, row: int, number: int, depth: int) -> Text:
        source = self._view.operand_row(row, number)
        if source is not None:
            return self.text(source, depth)
        operand = self._view.operand(row, number)
        return (operand.name if operand is not None else None) or "?", _ATOM

    def _ranges(self, row: int) -> str:
        """Return the ranges of a slice, as `:, 0:1024`."""
        ranges = self._view.instruction_at(row).attr("slice") or ()
        shape = self._view.operand_shape(row, 0)
        sizes = (
            shape.dimensions if isinstance(shape, ArrayShape) and len(shape.dimensions) == len(ranges) else [None] * len(ranges)
        )
        return ", ".join(":" if part == (0, size, 1) else _range(part) for part, size in zip(ranges, sizes, strict=True))

    def _function(self, row: int, opcode: str) -> str:
        """Return the name of an operation: the type of a conversion, the operator of a reduction, a custom call's target."""
        shape = self._view.shapes[row]
        if opcode in {"convert", "bitcast-convert"} and isinstance(shape, ArrayShape):
            return shape.dtype
        instruction = self._view.instruction_at(row)
        if opcode in _REDUCING:
            return "-".join(filter(None, (opcode, self._applied(instruction.callee("to_apply")))))
        if opcode == "custom-call":
            return instruction.attr("custom_call_target") or opcode
        return _function_name(opcode)

    def _applied(self, computation: str | None) -> str:
        view = self._views.find(computation)
        return _function_name(view.opcodes[view.root]) if view is not None and view.root is not None else ""


def _written(opcode: str) -> str:
    info = TABLE.get(opcode)
    return info.written if info is not None else opcode


def _function_name(opcode: str) -> str:
    written = _written(opcode)
    return opcode if written in _BINDS else written


def _bracketed(operand: Text, binds: int) -> str:
    text, own = operand
    return text if own >= binds else f"({text})"


def _range(part: SliceDimension) -> str:
    return f"{part.start}:{part.limit}" + (f":{part.stride}" if part.stride != 1 else "")
