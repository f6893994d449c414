"""Graphs of a module: what is a layer, what a graph of its own, and which node reads which."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect_explorer.layers import LayeredGraph, Node, find_graphs, node_id

DATA = Path(__file__).parents[1] / "data"

STEP = """HloModule jit_step

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%fused (p: f32[4], q: f32[4]) -> f32[4] {
  %q = f32[4] parameter(1)
  %p = f32[4] parameter(0)
  ROOT %r = f32[4] multiply(%p, %q), metadata={op_name="jit(step)/jvp(layer_0)/mul"}
}

%twice (v: f32[4]) -> f32[4] {
  %v = f32[4] parameter(0)
  ROOT %w = f32[4] add(%v, %v)
}

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4] get-tuple-element(%s), index=1
  %y = f32[4] negate(%x), metadata={op_name="jit(step)/jvp(layers)/while/body/closed_call/attention/neg"}
  %z = f32[4] call(%y), to_apply=%twice
  ROOT %t = (s32[], f32[4]) tuple(%i, %z)
}

%below (s: (s32[], f32[4])) -> pred[] {
  %s = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(7)
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

%left (l: f32[4]) -> f32[4] {
  ROOT %l = f32[4] parameter(0)
}

%right (m: f32[4]) -> f32[4] {
  %m = f32[4] parameter(0)
  ROOT %o = f32[4] call(%m), to_apply=%twice
}

ENTRY %main (flag: pred[], x: f32[4]) -> (f32[], f32[4]) {
  %flag = pred[] parameter(0)
  %x = f32[4] parameter(1)
  %fusion.1 = f32[4] fusion(%x, %x), kind=kLoop, calls=%fused, metadata={op_name="jit(step)/jvp(layer_0)/mul"}
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]) tuple(%zero, %fusion.1)
  %loop = (s32[], f32[4]) while(%init), condition=%below, body=%body, metadata={op_name="jit(step)/jvp(layers)/while"}
  %out = f32[4] get-tuple-element(%loop), index=1
  %either = f32[4] conditional(%flag, %out, %x), true_computation=%left, false_computation=%right
  %nought = f32[] constant(0)
  %total = f32[] reduce(%either, %nought), dimensions={0}, to_apply=%sum
  ROOT %result = (f32[], f32[4]) tuple(%total, %either)
}
"""


def by_id(graph: LayeredGraph) -> dict[str, Node]:
    return {node_id(node.view, node.row): node for node in graph.nodes}


@pytest.fixture
def graphs(read: Callable[[str], Context]) -> dict[str, LayeredGraph]:
    return {graph.computation: graph for graph in find_graphs(read(STEP))}


def test_scopes_fusions_loops_and_branches_are_layers(graphs: dict[str, LayeredGraph]) -> None:
    """The scope of the loop's body begins below that of the loop."""
    layers = {key: node.layer for key, node in by_id(graphs["main"]).items()}
    assert layers["main/x"] == layers["main/init"] == layers["main/total"] == ""
    assert layers["main/fusion.1"] == layers["fused/p"] == layers["fused/r"] == "jvp(layer_0)/fusion.1"
    assert layers["main/loop"] == "jvp(layers)/loop"
    assert layers["below/less"] == "jvp(layers)/loop/condition"
    assert layers["body/x"] == layers["body/z"] == "jvp(layers)/loop/body"
    assert layers["body/y"] == "jvp(layers)/loop/body/attention"
    assert (layers["left/l"], layers["right/o"]) == ("either/branch 0", "either/branch 1")
    assert graphs["main"].layers == {
        "jvp(layer_0)/fusion.1": "fused",
        "jvp(layers)/loop/condition": "below",
        "jvp(layers)/loop/body": "body",
        "either/branch 0": "left",
        "either/branch 1": "right",
    }


def test_what_several_call_or_a_reduction_applies_is_a_graph_of_its_own(graphs: dict[str, LayeredGraph]) -> None:
    assert [*graphs] == ["main", "sum", "twice"]
    nodes = by_id(graphs["main"])
    assert {key: node.calls for key, node in nodes.items() if node.calls} == {
        "main/total": ["sum"],
        "body/z": ["twice"],
        "right/o": ["twice"],
    }


def test_edges_pass_through_layers(graphs: dict[str, LayeredGraph]) -> None:
    """A parameter reads what the caller passes, and the caller reads the roots. The condition's flag is no parameter's."""
    edges = {key: [source for _, source in node.edges] for key, node in by_id(graphs["main"]).items()}
    assert edges["fused/p"] == edges["fused/q"] == ["main/x"]
    assert edges["main/fusion.1"] == ["fused/r"]
    assert edges["body/s"] == edges["below/s"] == ["main/init"]
    assert sorted(edges["main/loop"]) == ["below/less", "body/t"]
    assert (edges["left/l"], edges["right/m"]) == (["main/out"], ["main/x"])
    assert edges["main/either"] == ["main/flag", "left/l", "right/o"]
    assert edges["main/result"] == ["main/total", "main/either"]
    assert edges["main/x"] == edges["main/zero"] == []


def test_operands_that_no_parameter_takes_keep_their_edges(read: Callable[[str], Context]) -> None:
    text = STEP.replace("  %q = f32[4] parameter(1)\n", "  %q = f32[4] constant({1, 2, 3, 4})\n")
    nodes = by_id(find_graphs(read(text))[0])
    assert nodes["main/fusion.1"].edges == [(1, "main/x"), (2, "fused/r")]


def test_computations_that_call_each_other_are_a_graph(read: Callable[[str], Context]) -> None:
    circle = "".join(
        f"%{name} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n  ROOT %q = f32[] call(%p), to_apply=%{other}\n}}\n\n"
        for name, other in (("one", "two"), ("two", "one"), ("alone", "alone"))
    )
    graphs = find_graphs(read(f"HloModule circle\n\n{circle}ENTRY %main {{\n  ROOT %x = f32[] parameter(0)\n}}\n"))
    assert [(graph.computation, len(graph.nodes)) for graph in graphs] == [("main", 1), ("one", 4), ("alone", 2)]
    assert graphs[1].layers == {"q": "two"}


def test_names_of_the_text_are_levels_of_their_own(entry: Callable[..., Context]) -> None:
    """A slash within brackets is part of a scope, and control characters are escaped."""
    context = entry('ROOT %a = f32[] parameter(0), metadata={op_name="jit(f)/a(b/c)/d\x07/e"}')
    (node,) = find_graphs(context)[0].nodes
    assert node.layer == "a(b∕c)/d\\x07"


def test_instructions_of_one_name_are_two_nodes(entry: Callable[..., Context]) -> None:
    context = entry("%a = f32[] parameter(0)", "%a = f32[] negate(%a)", "ROOT %b = f32[] negate(%a)")
    assert [node_id(node.view, node.row) for node in find_graphs(context)[0].nodes] == ["main/a:0", "main/a:1", "main/b"]


DUMPS = [*sorted(DATA.glob("*/*scan*.after.txt")), *sorted(DATA.glob("memory/*.hlo"))]


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_each_instruction_of_a_dump_is_one_node(path: Path) -> None:
    """The instructions are counted by their lines. Each edge begins at a node of the same module."""
    text = path.read_text(encoding="utf-8")
    (module,) = read_modules(open_source(text), Wants(graph=True))
    nodes = {node_id(node.view, node.row): node for graph in find_graphs(Context(module)) for node in graph.nodes}
    assert len(nodes) == len(re.findall(r"^ +(?:ROOT )?%?[\w.\-]+ = ", text, re.M))
    assert {source for node in nodes.values() for _, source in node.edges} <= nodes.keys()
