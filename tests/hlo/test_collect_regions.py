"""What is kept of computations that are read many at a time."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.collect_regions import RegionCollector
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.regions import find_region
from tests.hlo.reading import body

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

"""
SUM = """%sum (p: f32[4]) -> f32[] {
  %p = f32[4]{0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%add
}

"""
MAIN = """ENTRY %main (q: f32[4]) -> f32[] {
  %q = f32[4]{0} parameter(0), sharding={replicated}
  ROOT %f = f32[] fusion(%q), kind=kInput, calls=%sum
}
"""


def collect(text: str, wants: Wants) -> tuple[Module, bool]:
    """`text` as one region from line 3 on."""
    module = Module(Header("m"), "dump.txt", 1, wants)
    region = find_region("\n" + text, 1, len(text) + 1)
    assert region is not None
    return module, RegionCollector(module).region(region, 3, "\n" + text)


def test_opcodes_roots_and_lines() -> None:
    module, taken = collect(ADD + SUM + MAIN, Wants(every_line=True))
    assert taken
    assert [(c.name, c.line, c.root_opcode, c.opcodes, c.is_entry) for c in module.computations.values()] == [
        ("add", 3, "add", ["parameter", "parameter", "add"], False),
        ("sum", 9, "reduce", ["parameter", "constant", "reduce"], False),
        ("main", 15, "fusion", ["parameter", "fusion"], True),
    ]
    assert module.entry is module.computations["main"]
    assert list(module.shardings) == ["{replicated}"]


def test_what_is_wanted_is_kept_wherever_it_stands() -> None:
    wants = Wants(opcodes=frozenset({"reduce", "fusion"}), operands=frozenset({"reduce"}), every_line=True)
    module, _ = collect(ADD + SUM + MAIN, wants)
    assert [(i.computation.name, i.name, i.line, i.is_root) for i in module.instructions] == [
        ("sum", "r", 12, True),
        ("main", "f", 17, True),
    ]
    assert [str(shape) for shape in module.instructions[0].operand_shapes] == ["f32[4]", "f32[]"]


def test_the_text_is_kept_for_the_graph() -> None:
    module, _ = collect(ADD + SUM + MAIN, Wants(graph=True))
    assert [(i.name, i.line) for i in body(module.computations["sum"])] == [("p", 10), ("z", 11), ("r", 12)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ADD + SUM + MAIN, []),
        (ADD + SUM.replace("(%p, %z)", "(%p, %a)") + MAIN, [("HI008", 12, "a")]),  # a name of another computation
        (ADD + SUM.replace("%z =", "%p =") + MAIN, [("HI007", 11, "p"), ("HI008", 12, "z")]),
        (ADD + ADD + MAIN.replace("%sum", "%add"), [("HI007", 9, "add")]),
        (ADD + SUM.replace("reduce(", "oops(") + MAIN, [("HI004", 12, "r")]),
    ],
)
def test_faults_have_their_lines(text: str, found: list[tuple[str, int, str]]) -> None:
    module, taken = collect(text, Wants(checked=True))
    assert taken
    assert [(p.code, p.location.line, p.subject) for p in module.problems] == found


def test_nothing_is_taken_where_a_shape_makes_no_sense() -> None:
    module, taken = collect(ADD + SUM.replace("f32[4]{0} parameter", "f32[4]{x} parameter") + MAIN, Wants(checked=True))
    assert not taken
    assert module.computations == {}
