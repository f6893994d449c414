"""Look-up of instructions, expressions of fusions, and paths that keep the arrays of a loop apart."""

from __future__ import annotations

import pytest

from hlo_inspect.graph.neighbourhood.expressions import fusion_expression
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace, find_rows, fits
from hlo_inspect.graph.neighbourhood.neighbourhood import Neighbourhood
from hlo_inspect.graph.neighbourhood.paths import InstructionPaths
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module as read
from tests.linear_time import assert_linear


def module(text: str) -> Module:
    return read(text, Wants(graph=True, entry=True))


def views_of(source: Module) -> Views:
    return Views(source.computations)


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


FUSED = """HloModule m
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
inner {{
  q = f32[4] parameter(0)
  ROOT r = f32[4] negate(q)
}}
fused {{
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  z = f32[] constant(0)
{rows}
}}
ENTRY e {{
  p = f32[4] parameter(0)
  o = f32[4] parameter(1)
  ROOT f = f32[4] fusion(p, o), kind=kLoop, calls=fused
}}
"""


def expression(*rows: str) -> str:
    text = FUSED.format(rows="\n".join(f"  {row}" for row in rows))
    return fusion_expression(views_of(module(text)), "fused", ["p", "o"])


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (["ROOT r = f32[4] add(x, y)"], "p + o"),
        (["s = f32[4] subtract(x, y)", "ROOT r = f32[4] subtract(x, s)"], "p - (p - o)"),
        (["s = f32[4] subtract(x, y)", "ROOT r = f32[4] subtract(s, x)"], "p - o - p"),
        (["s = f32[4] add(x, y)", "ROOT r = f32[4] multiply(s, s)"], "(p + o) * (p + o)"),
        (["s = f32[4] multiply(x, y)", "ROOT r = f32[4] divide(x, s)"], "p / (p * o)"),
        (["s = f32[4] negate(x)", "ROOT r = f32[4] power(s, y)"], "(-p) ** o"),
        (["s = pred[4] compare(x, y), direction=GE", "ROOT r = pred[4] and(s, s)"], "(p >= o) & (p >= o)"),
        (["w = f32[4] broadcast(z), dimensions={}", "ROOT r = f32[4] maximum(x, w)"], "max(p, 0)"),
        (["w = bf16[4] convert(x)", "ROOT r = f32[4] convert(w)"], "f32(bf16(p))"),
        (["w = bf16[] convert(z)", "v = bf16[4] broadcast(w), dimensions={}", "ROOT r = f32[4] convert(v)"], "0"),
        (["ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum"], "reduce-add(p)"),
        (["ROOT r = f32[2] slice(x), slice={[1:4:2]}"], "p[1:4:2]"),
        (["ROOT r = f32[4] fusion(y), kind=kLoop, calls=inner"], "-o"),
        (['ROOT r = f32[4] custom-call(x), custom_call_target="Erf"'], "Erf(p)"),
        (["s = f32[4] add(x, y)", "ROOT r = (f32[4], f32[4]) tuple(s, y)"], "p + o; 1 operand as it is"),
        (["ROOT r = f32[4] add(x, nothing)"], "p + nothing"),
        (["s = f32[4] copy(s)", "ROOT r = f32[4] add(x, s)"], "p + …"),
        (["s = f32[4] bitcast(t)", "t = f32[4] copy(s)", "ROOT r = f32[4] add(x, t)"], "p + …"),
        (["s = f32[4] convert(s)", "ROOT r = f32[4] add(x, s)"], "p + f32(…)"),
        (["ROOT r = f32[4] add(x, r)"], "p + …"),
        (["s = f32[4] copy(s)", "ROOT r = (f32[4], f32[4]) tuple(s, y)"], "…; 1 operand as it is"),
    ],
)
def test_expressions_of_fusions(rows: list[str], text: str) -> None:
    assert expression(*rows) == text


def test_a_long_expression_is_shortened() -> None:
    """Each sum adds the previous sum to itself, so the full expression has 2^40 terms."""
    rows = [
        "s0 = f32[4] add(x, y)",
        *(f"s{n} = f32[4] add(s{n - 1}, s{n - 1})" for n in range(1, 40)),
        "ROOT r = f32[4] copy(s39)",
    ]
    text = expression(*rows)
    assert "…" in text
    assert len(text) < 400


LOOP = """HloModule m
body {
  s = (f32[2], f32[2], f32[2]) parameter(0)
  a = f32[2] get-tuple-element(s), index=0
  b = f32[2] get-tuple-element(s), index=1
  c = f32[2] get-tuple-element(s), index=2
  a1 = f32[2] sine(a)
  b1 = f32[2] add(b, a)
  c1 = f32[2] cosine(c)
  ROOT t = (f32[2], f32[2], f32[2]) tuple(a1, b1, c1)
}
condition {
  s = (f32[2], f32[2], f32[2]) parameter(0)
  ROOT k = pred[] constant(false)
}
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  r = f32[2] parameter(2)
  i = (f32[2], f32[2], f32[2]) tuple(p, q, r)
  w = (f32[2], f32[2], f32[2]) while(i), condition=condition, body=body
  x = f32[2] get-tuple-element(w), index=0
  y = f32[2] get-tuple-element(w), index=1
  z = f32[2] get-tuple-element(w), index=2
  ex = f32[2] exponential(x)
  ey = f32[2] exponential(y)
  ez = f32[2] exponential(z)
  ROOT o = (f32[2], f32[2], f32[2]) tuple(ex, ey, ez)
}
"""


def place_of(source: Module, name: str) -> RowPlace:
    (place,) = find_rows(source, views_of(source), name)
    return place


def names(around: Neighbourhood, numbers: list[int]) -> list[str]:
    return [around.graph.name(number) for number in numbers]


def test_feeds_and_reads_of_a_loop_keep_its_arrays_apart() -> None:
    source = module(LOOP)
    views = views_of(source)
    for name, expected in (("ex", {"w", "p", "a1"}), ("ey", {"w", "q", "b1", "p", "a1"}), ("ez", {"w", "r", "c1"})):
        around = Neighbourhood(source, views, place_of(source, name), 10)
        assert (name, set(names(around, [neighbour.number for neighbour in around.feeds]))) == (name, expected)
    around = Neighbourhood(source, views, place_of(source, "q"), 10)
    assert names(around, [neighbour.number for neighbour in around.reads]) == ["w", "b1", "ey"]
    assert [neighbour.steps for neighbour in around.reads] == [1, 2, 2]
    assert around.parameter_paths == []


def test_paths_through_a_loop_follow_one_array() -> None:
    source = module(LOOP)
    views = views_of(source)
    assert InstructionPaths(source, views, [place_of(source, "r")], [place_of(source, "ey")]).shortest == []
    ways = InstructionPaths(source, views, [place_of(source, "p")], [place_of(source, "ey")])
    assert [[ways.graph.name(number) for number in way] for way in ways.shortest] == [["p", "w", "ey"]]
    assert {ways.graph.name(number) for number in ways.joined} == {"p", "w", "a1", "b1", "ey"}


def test_the_path_from_a_parameter_follows_its_array() -> None:
    source = module(LOOP)
    around = Neighbourhood(source, views_of(source), place_of(source, "ez"), 2)
    assert [names(around, way) for way in around.parameter_paths] == [["r", "w"]]


def test_paths_from_many_instructions_take_linear_time() -> None:
    """Each instruction is the start of a path to the same root."""

    def find_paths(count: int) -> None:
        rows = "\n".join(f"  n{number} = f32[2] negate(p)" for number in range(count))
        names = ", ".join(f"n{number}" for number in range(count))
        root = f"  ROOT c = f32[{2 * count}] concatenate({names}), dimensions={{0}}"
        source = module(f"HloModule m\nENTRY e {{\n  p = f32[2] parameter(0)\n{rows}\n{root}\n}}\n")
        views = views_of(source)
        ways = InstructionPaths(source, views, find_rows(source, views, "negate"), find_rows(source, views, "c"))
        assert len(ways.shortest) == 8

    assert_linear(find_paths, 5_000)
