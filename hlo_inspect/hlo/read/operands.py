"""The operands of an instruction, in every form in which XLA's printers have written them.

A tail is the text of an instruction after its opening parenthesis.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.hlo.read import tokens
from hlo_inspect.lazy_pattern import lazy_pattern

_NAME = tokens.NAME
_ARRAY = r"[a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[^{}%\"\n]*+\})?"
_TUPLE = r"\((?:[^()%\"\n/]++|/\*index=[0-9]++\*/|\((?:[^()%\"\n/]++|/\*index=[0-9]++\*/)*+\))*+\)"
_PRINTED = rf"(?:/\*index=[0-9]++\*/)?+(?:(?:{_ARRAY}|{_TUPLE}) )?+%"
_NAMES = lazy_pattern(rf"(?:%?{_NAME}(?:, %?{_NAME})*+)?+(?=\))")
_PRINTED_OPERANDS = lazy_pattern(rf"{_PRINTED}({_NAME})(?:, {_PRINTED}({_NAME})((?:, {_PRINTED}{_NAME})*+))?+\)")
"""The names of the first two, and the rest: most rows have no more than two."""
_MARKED = lazy_pattern(rf"%({_NAME})")
_PRINTED_OPERAND = lazy_pattern(rf"(?:({_ARRAY}|{_TUPLE}) )?+%({_NAME})")
_ELEMENT = lazy_pattern(rf"(?:(?:{_ARRAY}|{_TUPLE}) )?+%?{_NAME}\), index=([0-9]{{1,9}}+)(?=,|$)")

_USE = lazy_pattern(r"(?:(.*[\s)}\]]))?%?([A-Za-z_][\w.\-]*+)((?:#\d{1,9})*+)", re.ASCII | re.DOTALL)
_PLAIN = lazy_pattern(r"[^()\[{\"'/]*+\)")
_TEXT = r"[^()\"'/=]*+"
_INDEX = r"/\*index=[0-9]++\*/"
_INNER = rf"\({_TEXT}(?:(?:\({_TEXT}\)|{_INDEX}){_TEXT})*+\)"
_NESTED = rf"{_TEXT}(?:(?:\({_TEXT}(?:(?:{_INNER}|{_INDEX}){_TEXT})*+\)|{_INDEX}){_TEXT})*+"
_SHAPED = lazy_pattern(rf"{_NESTED}\)(?=, [A-Za-z_][\w.\-]*+=|$)", re.ASCII)
"""Operands with shapes, tuples of tuples at most, and what printers write behind them."""

LEFT_OUT = "...(+"
"""How a printer with `compact_operands` begins the number of operands that it leaves out, behind the first four."""


class Operand(NamedTuple):
    """A use: the instruction's name with the tuple index of `name#0#1`, and the text of the shape where one is printed.

    `name` is `None` where no instruction is named: an operand that the printer left out, or an instruction written in place.
    """

    name: str | None
    path: tuple[int, ...] = ()
    shape: str = ""


def operand_names(tail: str) -> list[str] | None:
    """The names of the operands where they are printed as most are, with a shape or without; `None` for all others, which
    `operands_of` reads.
    """
    printed = _PRINTED_OPERANDS.match(tail)
    if printed is not None:
        if printed[3]:
            return _MARKED.findall(tail, 0, printed.end())
        return [printed[1]] if printed[2] is None else [printed[1], printed[2]]
    return _names_alone(tail)


def _names_alone(tail: str) -> list[str] | None:
    """The names of operands that are printed without shapes; `None` for all others."""
    bare = _NAMES.match(tail)
    if bare is None:
        return None
    names = bare[0].replace("%", "").split(", ") if bare[0] else []
    return None if "null" in names else names


def printed_element(tail: str) -> int | None:
    """Which element a get-tuple-element takes, where it is printed as most are; `None` for all others."""
    printed = _ELEMENT.match(tail)
    return int(printed[1]) if printed is not None else None


def operands_of(tail: str, end: int | None = None) -> tuple[Operand, ...]:
    """The operands of a tail; `end` is that of `operands_end` where it is known. `ScanError` where the parenthesis is not
    closed.
    """
    names = _names_alone(tail)
    if names is not None:
        return tuple([Operand(name) for name in names])
    printed = _PRINTED_OPERANDS.match(tail) if "%" in tail else None
    if printed is not None:
        return tuple([Operand(name, (), shape) for shape, name in _PRINTED_OPERAND.findall(tail, 0, printed.end())])
    text = tokens.without_comments(tail[: operands_end(tail) if end is None else end])
    return tuple(_operand(text[start:stop].strip()) for start, stop in tokens.split_items(text))


def operands_end(tail: str) -> int:
    """The index of the parenthesis that closes the operands; `ScanError` where none does."""
    printed = _PLAIN.match(tail) or _SHAPED.match(tail)
    if printed is not None:
        return printed.end() - 1
    return tokens.balanced_end("(" + tail, 0, holds_lines=True) - 2


def _operand(text: str) -> Operand:
    """One item of an operand list: `[shape] [%]name[#i…]`; anything else has no name."""
    use = _USE.fullmatch(text)
    if use is None or text == "null":
        return Operand(None, (), text)
    path = tuple(int(index) for index in use[3].split("#")[1:])
    return Operand(use[2], path, use[1].strip() if use[1] else "")
