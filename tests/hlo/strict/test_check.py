"""Computations: their names, parameters and results."""

from __future__ import annotations

import tracemalloc

import pytest

from hlo_inspect.errors import ParseError
from tests.hlo.reading import modules
from tests.hlo.strict import cases
from tests.hlo.strict.cases_modules import COMPUTATIONS


@pytest.mark.parametrize("case", COMPUTATIONS, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)


@pytest.mark.parametrize(
    ("text", "line"),
    [("HloModule m\n", 1), ("HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n", 4), ("HloModule m\n\nENTRY e {\n", 3)],
)
def test_a_text_that_ends_too_early_is_refused_at_the_start_of_its_last_line(text: str, line: int) -> None:
    with pytest.raises(ParseError) as caught:
        modules(text.encode(), strict=True)
    assert (caught.value.line, caught.value.column, caught.value.code) == (line, 1, "HI002")


def test_what_a_long_header_aliases_is_kept_with_one_copy_of_its_line() -> None:
    """2,000 entries of one line of about 40,000 characters: a copy each would be 80 MB."""
    entries = ", ".join(f"{{{number}}}: ({number}, {{}})" for number in range(2000))
    shape = f"({', '.join(['f32[]'] * 2000)})"
    text = f"HloModule m, input_output_alias={{ {entries} }}\n\nENTRY e {{\n  p = {shape} parameter(0)\n}}\n"
    tracemalloc.start()
    modules(text.encode(), strict=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
