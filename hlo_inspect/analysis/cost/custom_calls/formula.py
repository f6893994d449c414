"""Formulas of a user's file: arithmetic over the shapes of a custom call and the numbers of its `backend_config`.

    2 * operands[0].dims[0] * operands[0].dims[1] * result.dims[1]
    min(config.tokens, operands[1].elements) / 2

There are numbers, references, `+ - * /`, parentheses, `min` and `max`; division is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern

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
    """What is wrong with a formula, and at which character, from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Reference(NamedTuple):
    """A number of a custom call: of an operand or a result a dimension, the elements or the bytes, or a field of its
    configuration.
    """

    text: str
    array: tuple[bool, int] | None = None
    """Whether it is an operand, and its number."""
    dimension: int | None = None
    size: str = ""
    field: str = ""


class Formula(NamedTuple):
    """A formula as it is computed: numbers and references in reverse Polish notation, with the signs between them."""

    text: str
    steps: tuple[Fraction | Reference | str, ...]

    def value(self, values: Values) -> Fraction:
        """The number that it has for a custom call; `FormulaError` where it divides by zero."""
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
    """Raises `FormulaError` at the first character that does not fit, and where a constant is divided by zero."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"a formula has at most {MAX_LENGTH:,} characters, this one {len(text):,}", 0)
    parser = _Parser(text)
    parser.sum(0)
    if parser.token is not None:
        raise FormulaError(f"{parser.token!r} does not fit here", parser.position)
    formula = Formula(text, tuple(parser.steps))
    if not any(isinstance(step, Reference) for step in formula.steps):
        formula.value(lambda _: 0)
    return formula


class _Parser:
    """Reads a formula from left to right; `token` is the next one, `None` at the end."""

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
        known = "operands[N].dims[N], .elements, .bytes, the same of results[N] and result, config.NAME, min(…), max(…)"
        raise FormulaError(f"unknown name {text[:40]!r}; there are {known}", position)
    if match["field"]:
        return Reference(text, field=match["field"])
    dimension = None if match["dimension"] is None else int(match["dimension"])
    return Reference(text, (match["list"] == "operands", int(match["at"] or 0)), dimension, match["size"] or "")
