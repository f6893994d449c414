"""The layout behind an array's dimensions, as XLA's parser takes it.

`HloParserImpl::ParseLayout` does not ask whether its fields could be read: what is wrong inside of one is refused only where
the brace is not closed behind it, so that `{0:T(8}` passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hlo_inspect.hlo.strict.tokens import SHAPE, SYNTAX, RefusedError, Tokens

_START = re.compile(r"\{(?:\s++|/\*(?:[^*]++|\*(?!/))*+\*/)*+(?=-?\d|:)", re.ASCII)
_TYPE = re.compile(r"[a-z][a-z0-9]*+(?![\w.\-])", re.ASCII)
_LEVEL = re.compile(r"[DCSH](?![\w.\-])", re.ASCII)
_MAX_INT64 = 2**63 - 1


def take_layout(tokens: Tokens) -> list[int] | None:
    """Passes a layout: the numbers of the dimensions from minor to major. `None` where a brace opens something else."""
    start = tokens.position
    if tokens.match(_START) is None:
        return None
    order: list[int] = []
    if not tokens.at(":"):
        order.append(tokens.integer(SHAPE))
        while tokens.take(","):
            order.append(tokens.integer(SHAPE))
    if tokens.take(":"):
        for name, take in _FIELDS:
            if tokens.match(name) is not None:
                _try(take, tokens)
        if tokens.at("P"):
            tokens.refuse(SHAPE, "only a sparse array has a physical shape", start)
    if not tokens.take("}"):
        tokens.refuse(SHAPE, "the layout makes no sense", start)
    return order


def _try(take: Callable[[Tokens], None], tokens: Tokens) -> None:
    """Reads a field as far as it makes sense."""
    try:
        take(tokens)
    except RefusedError as error:
        if error.code != SYNTAX:
            raise


def _take_levels(tokens: Tokens) -> None:
    for _ in tokens.list("(", ")", SYNTAX):
        if tokens.match(_LEVEL) is None:
            tokens.refuse(SYNTAX, "expected D, C, S or H")
        tokens.take("+")
        tokens.take("~")


def _take_tiles(tokens: Tokens) -> None:
    while True:
        for _ in tokens.list("(", ")", SYNTAX):
            if not tokens.take("*"):
                tokens.integer(SYNTAX)
        if not tokens.at("("):
            return


def _take_splits(tokens: Tokens) -> None:
    while True:
        tokens.expect("(", SYNTAX)
        tokens.integer(SYNTAX)
        for _ in tokens.list(":", ")", SYNTAX):
            tokens.integer(SYNTAX)
        if not tokens.at("("):
            return


def _take_type(tokens: Tokens) -> None:
    """Of the opening bracket, the type and the closing one each may be missing."""
    tokens.take("(")
    tokens.match(_TYPE)
    tokens.take(")")


def _take_number(tokens: Tokens) -> None:
    tokens.expect("(", SYNTAX)
    tokens.integer(SYNTAX)
    tokens.expect(")", SYNTAX)


def _take_padding(tokens: Tokens) -> None:
    start = tokens.position
    tokens.expect("(", SYNTAX)
    if not 0 < tokens.integer(SYNTAX) <= _MAX_INT64:
        tokens.refuse(SHAPE, "a tail is padded to a multiple of 1 or more", start)
    tokens.expect(")", SYNTAX)


def _word(letters: str) -> re.Pattern[str]:
    return re.compile(rf"{letters}(?![\w.\-])", re.ASCII)


_FIELDS: tuple[tuple[re.Pattern[str], Callable[[Tokens], None]], ...] = (
    (_word("D"), _take_levels),
    (_word("T"), _take_tiles),
    (_word("L"), _take_padding),
    (re.compile("#"), _take_type),
    (re.compile(r"\*"), _take_type),
    (_word("E"), _take_number),
    (_word("S"), _take_number),
    (_word("SC"), _take_splits),
    (_word("M"), _take_number),
)
"""The fields in the order in which XLA has them; each may be missing."""
