"""The graph of values is the same natively as in Python: on dumps, on damaged ones, and on programs made by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.graph_reader import read_in_python, read_values
from hlo_inspect.graph.native_graph import NativeGraph
from hlo_inspect.graph.value_graph import SlicedValue, Value, ValueGraph
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.fuzz.mutate import Mutator
from tests.hlo.reading import modules

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(path for path in DATA.rglob("*") if path.suffix in {".txt", ".hlo"} and 300 < path.stat().st_size < 200_000)
WANTS = Wants(graph=True, entry=True)


@pytest.fixture(autouse=True, scope="module")
def _native_for_all() -> Iterator[None]:
    """Read texts of any length natively."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.VARIABLE, "1")
        library.load.cache_clear()
        if library.library() is None:
            pytest.skip("no library")
        yield
    library.load.cache_clear()


def plain(value: Value) -> object:
    """Return a value that can be compared."""
    if isinstance(value, tuple):
        return [plain(element) for element in value]
    return (value.starts, value.nodes, value.stop) if isinstance(value, SlicedValue) else value


def state(graph: ValueGraph) -> list[object]:
    """Return all that a graph says."""
    calls = [(call.number, call.name, call.caller, call.first, call.stop, call.called) for call in graph.frames]
    values = [[plain(call.value(row)) for row in range(len(call.view.names))] for call in graph.frames]
    nodes = [list(made_of) for made_of in graph.operands], bytes(graph.kinds), list(graph.frame_of), list(graph.row_of)
    by_name = {name: [call.number for call in calls] for name, calls in graph.frames_by_name.items()}
    return [nodes, calls, values, by_name, graph.callers(), graph.is_ordered, graph.is_whole]


def compare(text: bytes | str) -> int:
    """Compare the graphs of each module's computations that no other starts with. Return how many were read natively."""
    read = 0
    for module in modules(text, WANTS):
        views = Views(module.computations)
        names = list(module.computations)[-2:]
        for name in names:
            graph = read_values(views, name)
            assert state(graph) == state(read_in_python(views, name))
            read += isinstance(graph, NativeGraph)
    return read


def test_dumps() -> None:
    assert sum(compare(path.read_bytes()) > 0 for path in DUMPS) > len(DUMPS) // 2


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_mutants(first: int) -> None:
    for seed in range(first, first + 40):
        mutator = Mutator(seed)
        try:
            compare(mutator(mutator.chance.choice(DUMPS[::3]).read_bytes()))
        except HloInspectError:  # no module is left
            continue


FUNCTIONS = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%inner (x: f32[12], y: f32[12]) -> f32[12] {
  %y = f32[12]{0} parameter(1)
  %x = f32[12]{0} parameter(0)
  ROOT %z = f32[12]{0} subtract(%x, %y)
}

%pair (x: f32[12]) -> (f32[12], f32[12]) {
  %x = f32[12]{0} parameter(0)
  %n = f32[12]{0} negate(%x)
  ROOT %t = (f32[12]{0}, f32[12]{0}) tuple(%n, %x)
}

%body (s: (f32[12], f32[12])) -> (f32[12], f32[12]) {
  %s = (f32[12]{0}, f32[12]{0}) parameter(0)
  %l = f32[12]{0} get-tuple-element(%s), index=0
  %r = f32[12]{0} get-tuple-element(%s), index=1
  %c = f32[12]{0} fusion(%l, %r), kind=kLoop, calls=%inner
  ROOT %t = (f32[12]{0}, f32[12]{0}) tuple(%c, %r)
}

%condition (s: (f32[12], f32[12])) -> pred[] {
  %s = (f32[12]{0}, f32[12]{0}) parameter(0)
  ROOT %p = pred[] constant(true)
}

"""
ARRAY, TWO, HALF = "f32[12]{0}", "(f32[12]{0}, f32[12]{0})", "f32[6]{0}"
KINDS = {ARRAY: "array", TWO: "two", HALF: "half", "pred[]": "truth"}
ROWS = [
    (ARRAY, "add(%array, %array)"),
    (ARRAY, "convert(%array)"),
    (ARRAY, "concatenate(%half, %half), dimensions={0}"),
    (ARRAY, "bitcast(%array)"),
    ("f32[12,1]{1,0}", "bitcast(%array)"),
    (HALF, "slice(%array), slice={[0:6]}"),
    (HALF, "slice(%array), slice={[5:11]}"),
    (TWO, "tuple(%array, %array)"),
    ("((f32[12]{0}, f32[12]{0}), f32[12]{0})", "tuple(%two, %array)"),
    (ARRAY, "get-tuple-element(%two), index=0"),
    (ARRAY, "get-tuple-element(%two), index=1"),
    (ARRAY, "get-tuple-element(%two), index=2"),
    (ARRAY, "fusion(%array, %array), kind=kLoop, calls=%inner"),
    (ARRAY, "call(%array, %array), to_apply=%inner"),
    (ARRAY, "call(%array), to_apply=%absent"),
    (TWO, "call(%array), to_apply=%pair"),
    (TWO, "while(%two), condition=%condition, body=%body"),
    (TWO, "conditional(%truth, %array, %array), branch_computations={%pair, %pair}"),
    (TWO, "conditional(%truth, %array, %array), true_computation=%pair, false_computation=%pair"),
    (ARRAY, "conditional(%truth, %array, %two), branch_computations={%pair, %absent}"),
    (ARRAY, "all-reduce(%array), replica_groups={}, to_apply=%add"),
    (TWO, "all-reduce(%array, %array), replica_groups={}, to_apply=%add"),
    (TWO, "opt-barrier(%two)"),
    (TWO, "opt-barrier(%array, %array)"),
    ("f32[]", "dot(%array, %array), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    (ARRAY, 'custom-call(%array, %two), custom_call_target="fmha"'),
    (ARRAY, 'custom-call(%array), custom_call_target="Sharding"'),
    (ARRAY, "reduce-window(%two, %two, %two, %two, %two), to_apply=%add"),
    ("token[]", "after-all()"),
]


def program(seed: int) -> str:
    """Return a program with rows of all actions, which use earlier rows by chance."""
    chance = random.Random(seed)  # noqa: S311 - no secrets
    named = {"array": ["x", "y"], "two": ["t"], "half": ["h"], "truth": ["p"]}
    rows = [
        "%x = f32[12]{0} parameter(0)",
        "%t = (f32[12]{0}, f32[12]{0}) parameter(1)",
        "%y = f32[12]{0} parameter(2)",
        "%h = f32[6]{0} parameter(3)",
        "%p = pred[] parameter(4)",
        "%u = ((f32[12]{0}, ()), f32[12]{0}) parameter(5)",
    ]
    for number in range(chance.randrange(1, 60)):
        shape, text = chance.choice(ROWS)
        for kind, names in named.items():
            while f"%{kind}" in text:
                text = text.replace(f"%{kind}", f"% {chance.choice(names[-6:])}", 1)
        rows.append(f"%r.{number} = {shape} {text.replace('% ', '%')}")
        if shape in KINDS:
            named[KINDS[shape]].append(f"r.{number}")
    rows.append(f"ROOT %root = (f32[12]{{0}}, {TWO}) tuple(%{named['array'][-1]}, %{named['two'][-1]})")
    lines = "".join(f"  {row}\n" for row in rows)
    return f"HloModule m\n\n{FUNCTIONS}ENTRY %main (x: f32[12]) -> f32[12] {{\n{lines}}}\n"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30))
def test_programs(seed: int) -> None:
    assert compare(program(seed)) > 0


def test_a_tuple_that_nests_deeper_than_a_stack() -> None:
    shape, rows = "f32[4]{0}", ["%x = f32[4]{0} parameter(0)", "%t.0 = (f32[4]{0}) tuple(%x)"]
    rows += [f"%t.{number} = (f32[4]{{0}}) tuple(%t.{number - 1})" for number in range(1, 3000)]
    lines = "".join(f"  {row}\n" for row in rows)
    text = f"HloModule m\n\nENTRY %main (x: {shape}) -> f32[4] {{\n{lines}  ROOT %n = f32[4]{{0}} negate(%t.2999)\n}}\n"
    (module,) = modules(text, WANTS)
    graph = read_values(Views(module.computations), "main")
    assert isinstance(graph, NativeGraph)
    assert (len(graph), list(graph.operands[1])) == (2, [0])


def test_sends_and_receives_are_read_in_python() -> None:
    rows = "%x = f32[4]{0} parameter(0)", "%k = token[] after-all()", "ROOT %s = (f32[4], u32[], token[]) send(%x, %k)"
    lines = "".join(f"  {row}\n" for row in rows)
    assert compare(f"HloModule m\n\nENTRY %main (x: f32[4]) -> f32[4] {{\n{lines}}}\n") == 0
