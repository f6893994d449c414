"""Bits that spread over a graph: worked out by hand, and the same natively as in Python."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_inspect.graph.flow import ALL_BITS, Bits, Flow, FlowRule, PythonFlow, flow_of, no_bits, nodes_of_kind
from hlo_inspect.native import library
from hlo_inspect.native.node_lists import NodeLists

Make = Callable[[Sequence[Sequence[int]], bytes], Flow]

DIAMOND = [[], [0], [0], [1, 2], [3]]
"""Node 0 is used twice, by 1 and 2, whose sum 3 is handed on by 4."""


def native_flow(operands: Sequence[Sequence[int]], kinds: bytes) -> Flow:
    loaded = library.library()
    if loaded is None:
        pytest.skip("no library")
    from hlo_inspect.native.flow import NativeFlow

    lists = NodeLists.of(operands)
    return NativeFlow(loaded, lists.ends, lists.nodes, kinds)


@pytest.fixture(params=[PythonFlow, native_flow])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_users_take_the_bits_of_their_operands(make: Make) -> None:
    bits = array("Q", [1, 2, 4, 0, 8])
    make(DIAMOND, bytes(5)).on(bits, 3)
    assert list(bits) == [1, 3, 5, 3, 11]


def test_operands_are_given_the_bits_of_their_users(make: Make) -> None:
    bits = array("Q", [0, 2, 4, 0, 9])
    make(DIAMOND, bytes(5)).back(bits, 14, kept=7)
    assert list(bits) == [6, 2, 4, 0, 1]


def test_a_rule_looks_at_bits_operands_and_kind(make: Make) -> None:
    flow = make(DIAMOND, bytes([0, 1, 0, 1, 1]))
    bits = array("Q", [4, 0, 0, 0, 0])
    flow.on(bits, rules=(FlowRule(operands_have=4, kind_has=1, takes=4), FlowRule(has=4, lacks=8, takes=16)))
    assert list(bits) == [20, 20, 0, 20, 20]  # 2 has another kind, and 3 has 1 among its operands
    bits = array("Q", [4, 0, 0, 0, 0])
    flow.on(bits, rules=(FlowRule(operands_have=4, operands_lack=2, takes=4), FlowRule(kind_has=1, takes=2)))
    assert list(bits) == [4, 6, 4, 2, 2]  # 1 among the operands of 3 has the bit 2
    bits = array("Q", [0, 0, 0, 1, 3])
    flow.back(bits, rules=(FlowRule(has=1, kind_lacks=2, takes=32, gives=64), FlowRule(has=64, gives=128)))
    assert list(bits) == [128, 64 + 128, 64 + 128, 1 + 32 + 64, 3 + 32]


def test_nodes_that_lead_to_all_groups(make: Make) -> None:
    bits = no_bits(5)
    make(DIAMOND, bytes(5)).mark_leading_to_all([[1], [2, 4]], bits, 1)
    assert list(bits) == [1, 1, 0, 0, 0]  # 1 leads to 4 as well, 2 not to 1
    groups = [[4]] * 200 + [[3]]  # more than the bits of a number
    bits = no_bits(5)
    make(DIAMOND, bytes(5)).mark_leading_to_all(groups, bits, 2)
    assert list(bits) == [2, 2, 2, 2, 0]


def test_nodes_with_bits(make: Make) -> None:
    assert list(make(DIAMOND, bytes(5)).nodes_with(array("Q", [1, 3, 5, 1 << 63 | 1, 4]), 1, 2)) == [0, 2, 3]


def test_classes(make: Make) -> None:
    flow = make(DIAMOND, bytes(5))
    bits = array("Q", [7, 7, 7, 1 << 63, 7])
    class_of, firsts = flow.classes(range(5), bits, bytes([0, 0, 1, 0, 0]), bytes(5), 4)
    assert (list(class_of), list(firsts)) == ([0, 0, 1, 2, 3], [0, 2, 3, 4])
    class_of, firsts = flow.classes([3, 3, 0], bits, bytes(3), bytes([1, 1, 1]), 1)
    assert (list(class_of), list(firsts)) == ([0, 1, 2], [0, 1, 2])


def test_nodes_of_kinds() -> None:
    assert nodes_of_kind(bytes([1, 2, 3, 0, 255]), 2) == [1, 2, 4]


def test_large_graphs_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    if library.library() is None:
        pytest.skip("no library")
    monkeypatch.delenv(library.VARIABLE, raising=False)
    assert isinstance(flow_of(DIAMOND, bytes(5)), PythonFlow)
    assert not isinstance(flow_of(DIAMOND * 100, bytes(500)), PythonFlow)


@pytest.mark.parametrize("call", ["on", "mark", "classes"])
def test_arrays_of_another_length_are_refused(call: str) -> None:
    flow = native_flow(DIAMOND, bytes(5))
    calls: dict[str, Callable[[], object]] = {
        "on": lambda: flow.on(no_bits(4)),
        "mark": lambda: flow.mark_leading_to_all([[1]], no_bits(6), 1),
        "classes": lambda: flow.classes(range(5), no_bits(5), bytes(4), bytes(5), 0),
    }
    with pytest.raises(ValueError, match="another length"):
        calls[call]()


NODES = st.integers(0, 60)
BITS = st.integers(0, ALL_BITS) | st.integers(0, 15)
RULES = st.lists(st.builds(FlowRule, *[st.integers(0, 3)] * 6, BITS, BITS), max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], bytes, Bits]:
    """Draw a graph, kinds and bits. In some graphs a node comes before its operands."""
    count = draw(st.integers(1, 40))
    backwards = draw(st.booleans())
    lasts = [count if backwards else node for node in range(count)]
    operands = [draw(st.lists(st.integers(0, last - 1), max_size=3)) if last else [] for last in lasts]
    kinds, bits = draw(st.binary(min_size=count, max_size=count)), draw(st.lists(BITS, min_size=count, max_size=count))
    return operands, kinds, array("Q", bits)


@settings(max_examples=150, deadline=None)
@given(graphs(), BITS, BITS, RULES, st.lists(st.lists(NODES, max_size=4), max_size=70))
def test_both_do_the_same(
    graph: tuple[list[list[int]], bytes, Bits], passed: int, kept: int, rules: list[FlowRule], groups: list[list[int]]
) -> None:
    operands, kinds, start = graph
    groups = [[node % len(operands) for node in group] for group in groups]

    def results(flow: Flow) -> list[object]:
        bits = start[:]
        flow.on(bits, passed, rules)
        states: list[object] = [list(bits)]
        flow.back(bits, passed, rules, kept)
        states.append(list(bits))
        flow.mark_leading_to_all(groups, bits, 1 << 40)
        class_of, firsts = flow.classes(range(len(kinds)), bits, kinds[::-1], kinds, len(kinds) // 2)
        parts = [node // 2 for node in range(len(kinds))]
        of_parts = [list(numbers) for numbers in flow.classes(parts, bits, bytes(len(kinds)), kinds, 3)]
        return [*states, list(bits), list(class_of), list(firsts), of_parts, list(flow.nodes_with(bits, kept & 7, passed & 8))]

    assert results(native_flow(operands, kinds)) == results(PythonFlow(operands, kinds))
