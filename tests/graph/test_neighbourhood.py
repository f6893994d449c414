"""Patterns of names, and time of paths. Expressions of fusions and paths of loops are in tests/cases/graph/neighbourhood."""

from __future__ import annotations

import pytest

from hlo_inspect.graph.neighbourhood.instruction_lookup import find_rows, fits
from hlo_inspect.graph.neighbourhood.paths import InstructionPaths
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module
from tests.linear_time import assert_linear


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("*", "", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("*b*", "abc", True),
        ("*bb*", "abc", False),
        ("**", "x", True),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert fits(text, pattern.split("*")) == matches


def test_matching_a_pattern_takes_linear_time() -> None:
    assert not fits("a" * 100_000, ["", *["a"] * 1000, "b"])


def test_paths_from_many_instructions_take_linear_time() -> None:
    """Each instruction is the start of a path to the same root."""

    def find_paths(count: int) -> None:
        rows = "\n".join(f"  n{number} = f32[2] negate(p)" for number in range(count))
        names = ", ".join(f"n{number}" for number in range(count))
        root = f"  ROOT c = f32[{2 * count}] concatenate({names}), dimensions={{0}}"
        source = module(
            f"HloModule m\nENTRY e {{\n  p = f32[2] parameter(0)\n{rows}\n{root}\n}}\n", Wants(graph=True, entry=True)
        )
        views = Views(source.computations)
        ways = InstructionPaths(source, views, find_rows(source, views, "negate"), find_rows(source, views, "c"))
        assert len(ways.shortest) == 8

    assert_linear(find_paths, 5_000)
