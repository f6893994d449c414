"""Tokens one by one: marks, words, integers, strings, lists."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.strict.tokens import SYNTAX, RefusedError, Tokens


def tokens(text: str) -> Tokens:
    return Tokens(text, 0, len(text))


def test_white_space_and_comments_are_passed_over() -> None:
    found = tokens("  /* a */ { // b\n 1 , 2 }")
    assert found.position == 10
    assert [found.integer(SYNTAX) for _ in found.list("{", "}", SYNTAX)] == [1, 2]
    assert found.at_end()


def test_nothing_behind_the_end_is_seen() -> None:
    found = Tokens("1, 2", 0, 1)
    assert found.integer(SYNTAX) == 1
    assert found.at_end()
    assert not found.take(",")


@pytest.mark.parametrize(
    ("text", "value"),
    [("-9223372036854775808", -(2**63)), ("18446744073709551615", 2**64 - 1), ("007", 7)],
)
def test_integers(text: str, value: int) -> None:
    assert tokens(text).integer(SYNTAX) == value


@pytest.mark.parametrize("text", ["", "a", "1.5", "1x2", "-", "18446744073709551616", "-9223372036854775809", "9" * 5000])
def test_no_integers(text: str) -> None:
    with pytest.raises(RefusedError):
        tokens(text).integer(SYNTAX)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ('"a\nb"', "a\nb"),
        ("'a \" b'", 'a " b'),
        (r'"a\"b\\"', r"a\"b\\"),
        (r'"\303\251\n\x41\u00e9"', r"\303\251\n\x41\u00e9"),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert tokens(text).string(SYNTAX) == value


@pytest.mark.parametrize("text", ["a", '"a', '"a\\\nb"', r'"\q"', r'"\x"', r'"\777"', r'"\u12"'])
def test_no_strings(text: str) -> None:
    with pytest.raises(RefusedError):
        tokens(text).string(SYNTAX)


@pytest.mark.parametrize("text", ["{1,}", "{1 2}", "{,1}", "1", "{1"])
def test_no_lists(text: str) -> None:
    found = tokens(text)
    with pytest.raises(RefusedError):
        [found.integer(SYNTAX) for _ in found.list("{", "}", SYNTAX)]


def test_what_is_refused_has_a_rule_and_a_place() -> None:
    with pytest.raises(RefusedError) as caught:
        tokens("  x").expect("{", "HI011", " in front")
    assert (caught.value.code, caught.value.message, caught.value.position) == ("HI011", "expected '{' in front", 2)
