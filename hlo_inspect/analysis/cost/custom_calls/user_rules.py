"""Rules of a user's file for custom calls, by target and name of the kernel.

`configs/custom_calls/example.yaml` is an example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import partial
from typing import Literal, NamedTuple, get_args

from hlo_inspect import configs
from hlo_inspect.analysis.cost.custom_calls.call_cost import MAX_FIGURE, CallCost, call_bytes, config_of, whole
from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements, shape_size
from hlo_inspect.configs import Node
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

UserFigure = Literal["flops", "matmul_flops", "transcendentals", "bytes"]
_FIGURES: tuple[UserFigure, ...] = get_args(UserFigure)


class UserRule(NamedTuple):
    """A rule for custom calls of a target; `kernel` is the name of the kernel. Both may hold `*` and `?`."""

    target: str
    kernel: str
    formulas: Mapping[UserFigure, Formula]
    place: str

    def fits(self, target: str, kernel: str) -> bool:
        return fnmatchcase(target, self.target) and fnmatchcase(kernel, self.kernel)

    def cost(self, op: Operation) -> CallCost:
        """Return the cost by the formulas. Matrix multiplications count as FLOPs too if only they are stated."""
        matmul_flops = self._figure("matmul_flops", op)
        flops = self._figure("flops", op) if "flops" in self.formulas else matmul_flops
        work = Work(flops, self._figure("transcendentals", op), min(flops, matmul_flops))
        size = self._figure("bytes", op) if "bytes" in self.formulas else call_bytes(op)
        return CallCost(work, size, "user", flops)

    def _figure(self, name: UserFigure, op: Operation) -> int:
        formula = self.formulas.get(name)
        if formula is None:
            return 0
        try:
            value = formula.value(partial(_value, op))
        except (FormulaError, UnknownCostError) as error:
            raise UnknownCostError(f"{name} of {self.place}: {error.args[0]}") from None
        if not 0 <= value <= MAX_FIGURE:
            raise UnknownCostError(f"{name} of {self.place} is {float(value):.6g}, which makes no sense")
        return int(value)


def _value(op: Operation, reference: Reference) -> int:
    """Return the number that a reference stands for. Raise UnknownCostError if a custom call has no such number."""
    if reference.array is None:
        return whole(config_of(op).fields, reference.field)
    is_operand, number = reference.array
    if is_operand:
        array = op.operand_array(number)
    else:
        results: list[ArrayShape] = [leaf for _, leaf in array_leaves(op.shape)]
        if number >= len(results):
            raise UnknownCostError(f"it has no {reference.text.partition('.')[0]}")
        array = results[number]
    if reference.dimension is not None:
        return dimension(array, reference.dimension)
    return elements(array) if reference.size == "elements" else shape_size(array)


UserRules = tuple[UserRule, ...]
"""The rules of a file. The first rule that fits a custom call counts."""


def load_user_rules(path: str) -> UserRules:
    """Load the rules of a YAML file. Raise UsageError with line and column if it is unreadable."""
    fields = configs.read(path).fields(allowed=("custom_calls",), required=("custom_calls",))
    return tuple(map(_rule, fields["custom_calls"].items()))


def _rule(node: Node) -> UserRule:
    fields = node.fields(allowed=("target", "kernel", *_FIGURES), required=("target",))
    kernel = fields["kernel"].text() if "kernel" in fields else "*"
    formulas = {name: _formula(fields[name]) for name in _FIGURES if name in fields}
    if not formulas:
        raise node.error(f"this entry has no formula: one of {', '.join(_FIGURES)} is needed")
    return UserRule(fields["target"].text(), kernel, formulas, str(node.location))


def _formula(node: Node) -> Formula:
    if node.kind not in {"text", "number"}:
        raise node.error(f"expected a formula, found a value of kind {node.kind}")
    try:
        return parse_formula(node.scalar)
    except FormulaError as error:
        raise node.file.error(error.message, node.line, node.column + error.position) from None


# -- formulas -----------------------------------------------------------------------------------------------------------------


MAX_LENGTH = 1000
MAX_DEPTH = 50

_TOKEN = lazy_pattern(
    r"\s*(?:(?P<number>\d{1,18}(?:\.\d{1,9})?)|(?P<reference>config\.[\w.$\-]+|[A-Za-z_]\w*(?:\[\d{1,6}\]|\.\w+)*)"
    r"|(?P<sign>[-+*/(),]))",
    re.ASCII,
)
_REFERENCE = lazy_pattern(
    r"(?:(?P<list>operands|results)\[(?P<at>\d{1,6})\]|result)\.(?:dims\[(?P<dimension>\d{1,6})\]|(?P<size>elements|bytes))"
    r"|config\.(?P<field>[\w.$\-]+)",
    re.ASCII,
)

Values = Callable[["Reference"], int]


class FormulaError(Exception):
    """A fault in a formula, with the index of its character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Reference(NamedTuple):
    """A number of a custom call: a dimension, the elements or bytes of an operand or result, or a configuration field."""

    text: str
    array: tuple[bool, int] | None = None
    """A pair: True for an operand, False for a result; and its number."""
    dimension: int | None = None
    size: str = ""
    field: str = ""


class Formula(NamedTuple):
    """A formula in reverse Polish notation: numbers and references, with the operators behind them."""

    steps: tuple[Fraction | Reference | str, ...]

    def value(self, values: Values) -> Fraction:
        """Compute the formula for a custom call. Raise FormulaError if it divides by zero."""
        stack: list[Fraction] = []
        for step in self.steps:
            if isinstance(step, Fraction):
                stack.append(step)
            elif isinstance(step, Reference):
                stack.append(Fraction(values(step)))
            else:
                right, left = stack.pop(), stack.pop()
                if step == "/" and not right:
                    raise FormulaError("it divides by zero", 0)
                stack.append(_OPERATIONS[step](left, right))
        return stack[0]


_OPERATIONS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "min": min,
    "max": max,
}


def parse_formula(text: str) -> Formula:
    """Parse a formula. Raise FormulaError at the first character that does not fit, and if a constant is divided by zero."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"a formula has at most {MAX_LENGTH:,} characters, this one {len(text):,}", 0)
    parser = _Parser(text)
    parser.sum(0)
    if parser.token is not None:
        raise FormulaError(f"{parser.token!r} does not fit here", parser.position)
    formula = Formula(tuple(parser.steps))
    if not any(isinstance(step, Reference) for step in formula.steps):
        formula.value(lambda _: 0)
    return formula


class _Parser:
    """Parses a formula from left to right; `token` is the next one, None at the end."""

    def __init__(self, text: str) -> None:
        self.steps: list[Fraction | Reference | str] = []
        self.token: str | None = None
        self.position = 0
        self._text = text
        self._end = 0
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        if match is None:
            rest = self._text[self._end :]
            self.position = self._end + len(rest) - len(rest.lstrip())
            if rest.strip():
                raise FormulaError(f"{rest.strip()[:20]!r} is no part of a formula", self.position)
            self.token = None
        else:
            self.token = match[0].strip()
            self.position = match.end() - len(self.token)
            self._end = match.end()

    @property
    def _found(self) -> str:
        return "the end" if self.token is None else repr(self.token)

    def _take(self, sign: str) -> None:
        if self.token != sign:
            raise FormulaError(f"expected {sign!r}, found {self._found}", self.position)
        self._advance()

    def sum(self, depth: int) -> None:
        self._product(depth)
        while (sign := self.token) in {"+", "-"}:
            self._advance()
            self._product(depth)
            self.steps.append(str(sign))

    def _product(self, depth: int) -> None:
        self._factor(depth)
        while (sign := self.token) in {"*", "/"}:
            self._advance()
            self._factor(depth)
            self.steps.append(str(sign))

    def _factor(self, depth: int) -> None:
        token, position = self.token, self.position
        if depth > MAX_DEPTH:
            raise FormulaError(f"it nests deeper than {MAX_DEPTH} parentheses", position)
        if token is None or token in set("+*/),"):
            raise FormulaError(f"expected a number, found {self._found}", position)
        self._advance()
        if token == "(":
            self.sum(depth + 1)
            self._take(")")
        elif token == "-":
            self.steps.append(Fraction(0))
            self._factor(depth + 1)
            self.steps.append("-")
        elif token in {"min", "max"}:
            self._least_or_greatest(token, depth)
        elif token[0].isdecimal():
            self.steps.append(Fraction(token))
        else:
            self.steps.append(_reference(token, position))

    def _least_or_greatest(self, name: str, depth: int) -> None:
        self._take("(")
        self.sum(depth + 1)
        while self.token == ",":
            self._advance()
            self.sum(depth + 1)
            self.steps.append(name)
        self._take(")")


def _reference(text: str, position: int) -> Reference:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        references = "operands[N].dims[N], .elements, .bytes, the same of results[N] and result, config.NAME, min(…), max(…)"
        raise FormulaError(f"unknown name {text[:40]!r}; there are {references}", position)
    if match["field"]:
        return Reference(text, field=match["field"])
    dimension = None if match["dimension"] is None else int(match["dimension"])
    return Reference(text, (match["list"] == "operands", int(match["at"] or 0)), dimension, match["size"] or "")
