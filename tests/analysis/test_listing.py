"""Rows and operands as they stand in the text."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.listing import Listing, Listings, plain_operands
from hlo_inspect.hlo.module import Computation


@pytest.mark.parametrize(
    ("tail", "names"),
    [
        (")", []),
        ("%a)", ["a"]),
        ("%a, %b.1), dimensions={0}", ["a", "b.1"]),
        ("a, b.1), dimensions={0}", ["a", "b.1"]),
        ("f32[8,4]{1,0} %a.2)", ["a.2"]),
        ("(f32[8], (s32[], pred[])) %a)", ["a"]),
        ("f32[8,4]{1,0:T(8,128)} %a, s32[] %b), to_apply=%f", ["a", "b"]),
        ("%a, /*index=1*/%b), metadata={}", ["a", "b"]),
    ],
)
def test_operands_as_printers_write_them(tail: str, names: list[str]) -> None:
    assert plain_operands(tail) == names


@pytest.mark.parametrize("tail", ["%a#1)", "%a, ...(+2))", "%a", "%a, %b]", 'f32[] %a, "x")', "1)"])
def test_other_operands_are_not_guessed(tail: str) -> None:
    assert plain_operands(tail) is None


def test_rows_with_their_lines() -> None:
    computation = Computation("f", 3, is_entry=False)
    computation.keep_text(4, "\n  %a = f32[] parameter(0)\n  %b = f32[] constant(7)")
    computation.keep_text(9, ("ROOT ", "c", "f32[] add", "%a, %b)"))
    listings = Listings({"f": computation})
    listing = listings.of("f")
    assert listings.of("f") is listing
    assert [(row[1], line) for row, line in zip(listing.rows, listing.lines, strict=True)] == [("a", 4), ("b", 5), ("c", 9)]
    assert [listing.operands(index) for index in range(3)] == [[], [], ["a", "b"]]


def test_nothing_in_it() -> None:
    assert Listing(Computation("f", 3, is_entry=False)).rows == []
