from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.checks.expectations import bind, parse_expression
from hlo_inspect.report.table import Unit, Value

MIB = 1024 * 1024


def holds(text: str, unit: Unit, actual: Value) -> bool:
    return bind(parse_expression(text), unit).holds(actual)


@pytest.mark.parametrize(
    ("text", "below", "equal", "above"),
    [
        ("== 5", False, True, False),
        ("5", False, True, False),
        ("!= 5", True, False, True),
        ("< 5", True, False, False),
        ("<= 5", True, True, False),
        ("> 5", False, False, True),
        (">= 5", False, True, True),
        (">=5", False, True, True),
        ("  ==   5  ", False, True, False),
    ],
)
def test_comparisons_below_at_and_above_the_value(text: str, below: bool, equal: bool, above: bool) -> None:
    assert [holds(text, "count", actual) for actual in (4, 5, 6)] == [below, equal, above]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in [2, 4]", [False, True, True, True, False]),
        ("in (2, 4]", [False, False, True, True, False]),
        ("in [2, 4)", [False, True, True, False, False]),
        ("in (2, 4)", [False, False, True, False, False]),
        ("in[2,4]", [False, True, True, True, False]),
        ("in [3, 3]", [False, False, True, False, False]),
    ],
)
def test_ranges_at_and_beside_their_bounds(text: str, expected: list[bool]) -> None:
    assert [holds(text, "number", actual) for actual in (1, 2, 3, 4, 5)] == expected


@given(st.integers(), st.integers(), st.integers())
def test_a_closed_range_is_both_comparisons(low: int, high: int, actual: int) -> None:
    low, high = min(low, high), max(low, high)
    both = holds(f">= {low}", "count", actual) and holds(f"<= {high}", "count", actual)
    assert holds(f"in [{low}, {high}]", "count", actual) == both == (low <= actual <= high)


@given(st.integers(), st.lists(st.integers(), min_size=1, max_size=5))
def test_one_of_is_any_of_the_equalities(actual: int, values: list[int]) -> None:
    written = ", ".join(map(str, values))
    assert holds(f"one of {{{written}}}", "count", actual) == any(holds(f"== {value}", "count", actual) for value in values)


@given(st.sampled_from(["==", "<", "<="]), st.integers(), st.integers())
def test_opposite_operators_never_agree_on_a_known_value(operator: str, value: int, actual: int) -> None:
    opposite = {"==": "!=", "<": ">=", "<=": ">"}[operator]
    assert holds(f"{operator} {value}", "count", actual) != holds(f"{opposite} {value}", "count", actual)


@pytest.mark.parametrize(
    ("text", "unit", "exact"),
    [
        ("180 MiB", "bytes", 180 * MIB),
        ("1GB", "bytes", 10**9),
        ("3 ms", "seconds", 0.003),
        ("2.5 GFLOP", "flops", 2_500_000_000),
        ("1e-8", "number", 0.00000001),
        ("4096", "bytes", 4096),
    ],
)
def test_quantities_are_read_in_the_unit_of_the_fact(text: str, unit: Unit, exact: float) -> None:
    assert holds(f"== {text}", unit, exact)
    assert holds(f"in [{text}, {text}]", unit, exact)
    assert not holds(f"> {text}", unit, exact)
    assert not holds(f"== {text}", unit, exact * 1.001)


def test_a_byte_below_the_limit_fails() -> None:
    assert holds(">= 180 MiB", "bytes", 180 * MIB)
    assert not holds(">= 180 MiB", "bytes", 180 * MIB - 1)


def test_text_and_bools_are_equal_or_not() -> None:
    assert holds("adamw", "text", "adamw")
    assert not holds("adamw", "text", "adam")
    assert holds("!= adamw", "text", "adam")
    assert holds("one of {adamw, lion}", "text", "lion")
    assert not holds("one of {adamw, lion}", "text", "adam")
    assert holds("2x8", "text", "2x8")
    assert holds("8", "text", "8")
    assert holds("true", "bool", True)
    assert not holds("== true", "bool", False)
    assert holds("!= true", "bool", False)


def test_quotes_make_text_of_anything() -> None:
    assert holds('"known"', "text", "known")
    assert holds("== 'null'", "text", "null")
    assert holds('!= "true"', "text", "false")
    assert holds("one of {'a, b', \"> 3\"}", "text", "a, b")
    assert holds("one of {'a, b', \"> 3\"}", "text", "> 3")
    assert holds("''", "text", "")


@pytest.mark.parametrize("text", ["== 5", "!= 5", "< 5", ">= 5", "in [0, 9]", "one of {5, 6}", "5", "known"])
def test_an_unknown_value_meets_nothing_but_null(text: str) -> None:
    assert not holds(text, "count", None)
    assert holds("null", "count", None)


@pytest.mark.parametrize(("unit", "actual"), [("count", 0), ("text", ""), ("bool", False), ("number", 0.0)])
def test_an_empty_value_is_known(unit: Unit, actual: Value) -> None:
    assert holds("known", unit, actual)
    assert not holds("null", unit, actual)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a value is missing"),
        (">=", "a value is missing"),
        ("= 3", "'= 3' is not a value; the operators are == != < <= > >="),
        ("=> 3", "'=> 3' is not a value; the operators are == != < <= > >="),
        ("!3", "'!3' is not a value; the operators are == != < <= > >="),
        ("== == 3", "'== 3' is not a value; the operators are == != < <= > >="),
        ("== null", "`null` stands alone, without operator or list; quote it if it is text"),
        ("one of {known, 3}", "`known` stands alone, without operator or list; quote it if it is text"),
        ("in [1]", "a range has two bounds: `in [0.01, 0.1]`"),
        ("in [1, 2, 3]", "a range has two bounds: `in [0.01, 0.1]`"),
        ("in [1, 2", "write a range as `in [a, b]`, alternatives as `one of {a, b}`"),
        ("in {1, 2}", "write a range as `in [a, b]`, alternatives as `one of {a, b}`"),
        ("one of [a, b]", "write a range as `in [a, b]`, alternatives as `one of {a, b}`"),
        ("[1, 2]", "write a range as `in [a, b]`, alternatives as `one of {a, b}`"),
        ("== {a}", "write a range as `in [a, b]`, alternatives as `one of {a, b}`"),
        ("one of {}", "expected values separated by commas, found ''"),
        ("one of {a,}", "expected values separated by commas, found 'a,'"),
        ("one of {a b' c}", 'expected values separated by commas, found "a b\' c"'),
        ("'adamw", "the quotes of 'adamw do not match"),
        ("'a' 'b'", "the quotes of 'a' 'b' do not match"),
    ],
)
def test_malformed_expressions(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_expression(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "unit", "part"),
    [
        ("> 3", "text", "`>` needs an order, which a fact of kind text does not have"),
        ("in [a, b]", "text", "`in` needs an order"),
        ("< true", "bool", "`<` needs an order, which a fact of kind bool does not have"),
        ("true", "text", "`true` is a bool, but the fact is text"),
        ("adamw", "bool", "`adamw` is not a bool: write true or false"),
        ("1", "bool", "`1` is not a bool: write true or false"),
        ("yes", "bool", "`yes` is not a bool: write true or false"),
        ("'true'", "bool", '"true" is text, the fact is of kind bool'),
        ("'3'", "count", '"3" is text, the fact is of kind count'),
        ("adamw", "count", "adamw"),
        ("true", "count", "true"),
        ("3 MiB", "count", "MiB"),
        ("3 ms", "bytes", "ms"),
        ("2 GB", "flops", "GB"),
        ("1:30", "count", "1:30"),
        ("nan", "number", "nan"),
        ("in [5, 3]", "count", "the range `in [5, 3]` is empty"),
        ("in (3, 3]", "count", "the range `in (3, 3]` is empty"),
        ("in [1 MiB, 1000 kB]", "bytes", "the range `in [1 MiB, 1000 kB]` is empty"),
    ],
)
def test_values_that_do_not_fit_the_unit_of_a_fact(text: str, unit: Unit, part: str) -> None:
    expression = parse_expression(text)
    with pytest.raises(ValueError) as caught:
        bind(expression, unit)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "== 0"),
        (">=180 MiB", ">= 180 MiB"),
        ("in[1,2)", "in [1, 2)"),
        ("one  of {a,b}", "one of {a, b}"),
        ("known", "known"),
        ("null", "null"),
        ("'a, b'", '== "a, b"'),
        ("'say \"hi\"'", "== 'say \"hi\"'"),
    ],
)
def test_expressions_print_as_they_can_be_read_again(text: str, canonical: str) -> None:
    expression = parse_expression(text)
    assert str(expression) == canonical
    assert parse_expression(canonical) == expression
