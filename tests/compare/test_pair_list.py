"""Many comparisons in one table."""

from __future__ import annotations

from hlo_inspect.compare.comparison import DIFFERENT, ONLY_IN_NEW, ONLY_IN_OLD, SAME, PairList
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.request import Request

MODULE = """HloModule {name}, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT n = f32[8]{{0}} {opcode}(p)
}}

"""


def test_a_pair_is_a_row_and_so_is_a_module_without_a_mate() -> None:
    old = "".join(MODULE.format(name=name, opcode="negate") for name in ("a", "b", "gone"))
    new = "".join(MODULE.format(name=name, opcode=opcode) for name, opcode in (("a", "negate"), ("b", "cosine")))
    new += MODULE.format(name="fresh", opcode="tanh").replace("[8]", "[9]")
    pairs = PairList()
    for comparison in Comparisons(Request()).compare(ComparedInput(old), ComparedInput(new)):
        pairs.add(comparison)
    rows = pairs.report("old -> new").table("pairs").records()
    assert len(pairs) == 4
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("a", SAME), ("b", DIFFERENT), ("gone", ONLY_IN_OLD), ("fresh", ONLY_IN_NEW)
    ]  # fmt: skip
    # in b the cosine is added and the negate removed
    assert [row["changes"] for row in rows] == [0, 2, None, None]
    assert rows[0]["facts"] == 0
