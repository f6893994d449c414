"""Attribute values that stand for themselves: words, numbers, strings, names, indices."""

from __future__ import annotations

import re
from collections.abc import Callable

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.strict.devices import braced_integers
from hlo_inspect.hlo.strict.literals import take_number
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.shapes import take_shape
from hlo_inspect.hlo.strict.tokens import ATTRIBUTE, WORD, Tokens

Kind = Callable[[Tokens, Scope], object]
"""Passes one value."""

_MAX_INT32 = 2**31
_DICT_MARK = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"|[{}\"]")


def word_of(*words: str) -> Kind:
    allowed = frozenset(words)

    def take(tokens: Tokens, scope: Scope) -> None:
        start = tokens.position
        word = tokens.match(WORD)
        if word is None or word[0] not in allowed:
            tokens.refuse(ATTRIBUTE, f"expected {', '.join(words[:4])}{', …' if len(words) > 4 else ''}", start)

    return take


take_boolean = word_of("true", "false")


def take_integer(tokens: Tokens, scope: Scope) -> None:
    tokens.integer(ATTRIBUTE)


def take_int32(tokens: Tokens, scope: Scope) -> None:
    start = tokens.position
    if not -_MAX_INT32 <= tokens.integer(ATTRIBUTE) < _MAX_INT32:
        tokens.refuse(ATTRIBUTE, "expected an integer of 32 bits", start)


def take_float(tokens: Tokens, scope: Scope) -> None:
    take_number(tokens, "f32", ATTRIBUTE)


def take_string(tokens: Tokens, scope: Scope) -> None:
    tokens.string(ATTRIBUTE)


def take_string_or_dict(tokens: Tokens, scope: Scope) -> None:
    if tokens.at("{"):
        _take_dict(tokens)
    else:
        tokens.string(ATTRIBUTE)


def _take_dict(tokens: Tokens) -> None:
    """Free text but for braces and strings in double quotes, whose escapes may be any. As `HloLexer::LexJsonDict`."""
    start = tokens.position
    depth = 0
    for mark in _DICT_MARK.finditer(tokens.text, start, tokens.end):
        if mark[0] == '"':
            break
        depth += (mark[0] == "{") - (mark[0] == "}")
        if depth == 0:
            tokens.move(mark.end())
            return
    tokens.refuse(ATTRIBUTE, "a brace or a string is not closed", start)


def take_integers(tokens: Tokens, scope: Scope) -> None:
    braced_integers(tokens, ATTRIBUTE)


def take_integer_lists(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        braced_integers(tokens, ATTRIBUTE)


def take_computation(tokens: Tokens, scope: Scope) -> None:
    """A name, or a computation in place, which is read later."""
    if tokens.at("{"):
        end = scan.balanced_end(tokens.text, tokens.position, holds_lines=True)
        scope.bodies.append((tokens.position + 1, end - 1))
        tokens.move(end)
        return
    start = tokens.position
    name = tokens.name(ATTRIBUTE, "a computation")
    if name not in scope.computations:
        tokens.refuse("HI009", f"computation {name} is not defined before its call", start)


def take_computations(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_computation(tokens, scope)


def take_instructions(tokens: Tokens, scope: Scope) -> None:
    tokens.expect("{", ATTRIBUTE)
    while True:
        start = tokens.position
        name = tokens.name(ATTRIBUTE, "an instruction")
        if name not in scope.instructions:
            tokens.refuse("HI008", f"instruction {name} is not defined before its use", start)
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)


def take_frontend_attributes(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        tokens.attribute_name(ATTRIBUTE)
        take_string_or_dict(tokens, scope)


def take_statistics(tokens: Tokens, scope: Scope) -> None:
    for number in tokens.list("{", "}", ATTRIBUTE):
        tokens.attribute_name(ATTRIBUTE)
        if number:
            take_number(tokens, "f64", ATTRIBUTE)
        else:
            tokens.integer(ATTRIBUTE)


def take_booleans(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_boolean(tokens, scope)


def take_booleans_or_one(tokens: Tokens, scope: Scope) -> None:
    (take_booleans if tokens.at("{") else take_boolean)(tokens, scope)


def take_shape_index(tokens: Tokens) -> tuple[int, ...]:
    """`{0,1}`; its last comma may stand alone."""
    found = []
    tokens.expect("{", ATTRIBUTE)
    while not tokens.at("}"):
        found.append(tokens.integer(ATTRIBUTE))
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)
    return tuple(found)


def take_original_array(tokens: Tokens) -> None:
    tokens.expect("{", ATTRIBUTE)
    if not tokens.at("}"):
        tokens.string(ATTRIBUTE)
        if tokens.at("{"):
            take_shape_index(tokens)
    tokens.expect("}", ATTRIBUTE)


def take_origin(tokens: Tokens, scope: Scope) -> None:
    """`{{"a"}}`, for a tuple `{({"a" {0}}, {"b"})}`, or `{[synthetic_call]}`."""
    tokens.expect("{", ATTRIBUTE)
    if tokens.take("["):
        if tokens.word(ATTRIBUTE, "synthetic_call") != "synthetic_call":
            tokens.refuse(ATTRIBUTE, "expected synthetic_call")
        tokens.expect("]", ATTRIBUTE)
        tokens.expect("}", ATTRIBUTE)
        return
    depth = 0
    while not tokens.take("}"):
        start = tokens.position
        if tokens.at("{"):
            take_original_array(tokens)
        elif tokens.take("("):
            depth += 1
        elif tokens.take(")"):
            depth -= 1
        elif not tokens.take(",") or depth < 1:
            tokens.refuse(ATTRIBUTE, "expected the original values", start)


def take_aliasing(tokens: Tokens, scope: Scope) -> None:
    """`{{0}: (1, {})}`: which part of the result takes the buffer of which operand."""
    tokens.expect("{", ATTRIBUTE)
    while not tokens.at("}"):
        take_shape_index(tokens)
        tokens.expect(":", ATTRIBUTE)
        tokens.expect("(", ATTRIBUTE)
        tokens.integer(ATTRIBUTE)
        tokens.expect(",", ATTRIBUTE)
        take_shape_index(tokens)
        tokens.expect(")", ATTRIBUTE)
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)


def take_anything(tokens: Tokens, scope: Scope) -> None:
    tokens.move(scan.value_end(tokens.text, tokens.position, single=True))


def take_shapes(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_shape(tokens)
