"""The graph of values, on small texts: which values depend on which, and that bad texts end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases.component_facts import Components
from hlo_inspect.graph.graph_reader import read_values
from hlo_inspect.graph.value_graph import PARAMETER, ValueGraph, nodes_in
from hlo_inspect.hlo.wants import Wants

Read = Callable[..., Context]

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def values(read: Read, text: str) -> ValueGraph:
    context = read(f"HloModule m\n\n{text}", Wants(graph=True, entry=True))
    assert context.module.entry is not None
    return read_values(context.views, context.module.entry.name)


def inputs(graph: ValueGraph) -> list[set[str]]:
    """Return the entry parameters that each element of the result depends on."""
    root = graph.result()
    parts = Components(graph)
    reached: list[set[str]] = []
    for number, made_of in enumerate(parts.operands):
        members = [node for node, part in enumerate(parts.component_of) if part == number and graph.kinds[node] & PARAMETER]
        names = {graph.frames[graph.frame_of[node]].view.rows[graph.row_of[node]][1] for node in members}
        reached.append(names.union(*(reached[other] for other in made_of)))
    elements = root if isinstance(root, tuple) else (root,)
    return [set().union(*(reached[parts.component_of[node]] for node in nodes_in(element))) for element in elements]


def test_a_combined_all_reduce_is_one_for_each_operand(read: Read) -> None:
    graph = values(
        read,
        f"""{ADD}
ENTRY %e (a: f32[4], b: f32[8]) -> (f32[4], f32[8]) {{
  %a = f32[4] parameter(0)
  %b = f32[8] parameter(1)
  ROOT %r = (f32[4], f32[8]) all-reduce(%a, %b), replica_groups={{}}, to_apply=%add
}}
""",
    )
    assert inputs(graph) == [{"a"}, {"b"}]


CONCATENATED = """
ENTRY %e (a: f32[4], b: f32[8]) -> (f32[4], f32[8], f32[5]) {{
  %a = f32[4] parameter(0)
  %b = f32[8] parameter(1)
  %c = f32[12] concatenate(%a, %b), dimensions={{0}}
  %h = bf16[12] convert(%c)
  %r = bf16[12] all-reduce(%h), replica_groups={{}}, to_apply=%add
  %f = f32[12] convert(%r)
  %m = f32[12] {middle}
  %x = f32[4] slice(%m), slice={{[0:4]}}
  %y = f32[8] slice(%m), slice={{[4:12]}}
  %z = f32[5] slice(%m), slice={{[2:7]}}
  ROOT %t = (f32[4], f32[8], f32[5]) tuple(%x, %y, %z)
}}
"""


@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        ("copy(%f)", [{"a"}, {"b"}, {"a", "b"}]),
        ("add(%f, %f)", [{"a"}, {"b"}, {"a", "b"}]),
        ("reverse(%f), dimensions={0}", [{"a", "b"}] * 3),  # the parts change places
    ],
)
def test_parts_of_a_concatenation_are_kept_apart(read: Read, middle: str, expected: list[set[str]]) -> None:
    assert inputs(values(read, ADD + CONCATENATED.format(middle=middle))) == expected


def test_the_state_of_a_loop_depends_on_its_start_and_its_body(read: Read) -> None:
    """Element 1 adds element 2 in each run; element 2 stays as it is; element 3 becomes what element 1 was."""
    graph = values(
        read,
        """%body (s: (s32[], f32[4], f32[4], f32[4])) -> (s32[], f32[4], f32[4], f32[4]) {
  %s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4] get-tuple-element(%s), index=1
  %y = f32[4] get-tuple-element(%s), index=2
  %n = f32[4] add(%x, %y)
  ROOT %t = (s32[], f32[4], f32[4], f32[4]) tuple(%i, %n, %y, %x)
}

%condition (s: (s32[], f32[4], f32[4], f32[4])) -> pred[] {
  %s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  ROOT %c = pred[] compare(%i, %i), direction=LT
}

ENTRY %e (i: s32[], a: f32[4], b: f32[4], c: f32[4]) -> (s32[], f32[4], f32[4], f32[4]) {
  %i = s32[] parameter(0)
  %a = f32[4] parameter(1)
  %b = f32[4] parameter(2)
  %c = f32[4] parameter(3)
  %t = (s32[], f32[4], f32[4], f32[4]) tuple(%i, %a, %b, %c)
  ROOT %w = (s32[], f32[4], f32[4], f32[4]) while(%t), condition=%condition, body=%body
}
""",
    )
    assert inputs(graph) == [{"i"}, {"a", "b"}, {"b"}, {"a", "b", "c"}]


def test_each_call_of_a_computation_has_values_of_its_own(read: Read) -> None:
    graph = values(
        read,
        """%f (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %n = f32[4] negate(%p)
}

ENTRY %e (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  %x = f32[4] call(%a), to_apply=%f
  %y = f32[4] fusion(%b), kind=kLoop, calls=%f
  ROOT %t = (f32[4], f32[4]) tuple(%x, %y)
}
""",
    )
    assert inputs(graph) == [{"a"}, {"b"}]


def test_a_recv_has_the_value_of_its_send(read: Read) -> None:
    meeting = 'frontend_attributes={_xla_host_transfer_rendezvous="r"}'
    graph = values(
        read,
        f"""ENTRY %e (a: f32[4], b: f32[4]) -> f32[4] {{
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  %k = token[] after-all()
  %v = (f32[4], u32[], token[]) recv(%k), channel_id=1, {meeting}
  %d = (f32[4], token[]) recv-done(%v), channel_id=1
  %s = (f32[4], u32[], token[]) send(%b, %k), channel_id=2, {meeting}
  ROOT %g = f32[4] get-tuple-element(%d), index=0
}}
""",
    )
    assert inputs(graph) == [{"b"}]


ENTRY = "ENTRY %e (a: f32[4]) -> f32[4] {{\n  %a = f32[4] parameter(0)\n  {}\n}}\n"


@pytest.mark.parametrize(
    "text",
    [
        "%f (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n  ROOT %c = f32[4] call(%p), to_apply=%f\n}\n\n"
        "ENTRY %e (a: f32[4]) -> f32[4] {\n  %a = f32[4] parameter(0)\n  ROOT %x = f32[4] call(%a), to_apply=%f\n}\n",
        ENTRY.format("%x = f32[4] add(%y, %a)\n  ROOT %y = f32[4] negate(%x)"),
        ENTRY.format("ROOT %x = f32[4] while(%a), body=%no, condition=%no"),
        ENTRY.format("ROOT %x = f32[4] get-tuple-element(%a), index=7"),
    ],
    ids=["part of a recursion", "uses what comes later", "a loop without a body", "an element of an array"],
)
def test_bad_texts_end(read: Read, text: str) -> None:
    assert len(inputs(values(read, text))) == 1


def test_calls_that_multiply_are_bounded(read: Read) -> None:
    """Thirty computations that each call the next one twice would be a billion calls."""
    lines = [
        f"%f{n} (p: f32[4]) -> f32[4] {{\n  %p = f32[4] parameter(0)\n  %a = f32[4] call(%p), to_apply=%f{n + 1}\n"
        f"  ROOT %b = f32[4] call(%a), to_apply=%f{n + 1}\n}}\n"
        for n in reversed(range(30))
    ]
    last = "%f30 (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}\n"
    entry = "ENTRY %e (a: f32[4]) -> f32[4] {\n  %a = f32[4] parameter(0)\n  ROOT %x = f32[4] call(%a), to_apply=%f0\n}\n"
    graph = values(read, "\n".join([last, *lines, entry]))
    assert not graph.is_whole
    assert len(graph) < 2000
    assert inputs(graph) == [{"a"}]


def test_each_call_receives_what_was_sent(read: Read) -> None:
    """Both calls compute `first` from the sent array; the received array is only added."""
    meet = 'channel_id=1, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="meet"}'
    graph = values(
        read,
        f"""
%received (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
  %t = token[] after-all()
  %r = (f32[8], u32[], token[]) recv(%t), {meet}
  %d = (f32[8], token[]) recv-done(%r), channel_id=1, is_host_transfer=true
  %g = f32[8] get-tuple-element(%d), index=0
  ROOT %a = f32[8] add(%g, %p)
}}

ENTRY %main (first: f32[8], second: f32[8]) -> (f32[8], f32[8]) {{
  %first = f32[8] parameter(0)
  %second = f32[8] parameter(1)
  %t = token[] after-all()
  %s = (f32[8], u32[], token[]) send(%first, %t), {meet}
  %u = f32[8] call(%second), to_apply=%received
  %v = f32[8] call(%second), to_apply=%received
  ROOT %o = (f32[8], f32[8]) tuple(%u, %v)
}}
""",
    )
    assert inputs(graph) == [{"first", "second"}, {"first", "second"}]


TWO_CONCATENATIONS = """ENTRY %e (a: f32[4], b: f32[8], p: f32[{first}], q: f32[{second}]) -> (f32[4], f32[8]) {{
  %a = f32[4] parameter(0)
  %b = f32[8] parameter(1)
  %p = f32[{first}] parameter(2)
  %q = f32[{second}] parameter(3)
  %c = f32[12] concatenate(%a, %b), dimensions={{0}}
  %d = f32[12] concatenate(%p, %q), dimensions={{0}}
  %s = f32[12] add(%c, %d)
  %x = f32[4] slice(%s), slice={{[0:4]}}
  %y = f32[8] slice(%s), slice={{[4:12]}}
  ROOT %t = (f32[4], f32[8]) tuple(%x, %y)
}}
"""


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(4, 8, [{"a", "p"}, {"b", "q"}]), (8, 4, [{"a", "b", "p", "q"}] * 2)],
)
def test_parts_that_start_at_different_places_are_no_parts_of_a_sum(
    read: Read, first: int, second: int, expected: list[set[str]]
) -> None:
    """Elements 4 to 12 are `b` plus `q` if both arrays are cut at 4.

    If the second one is cut at 8, they are `b` plus the rest of `p` and `q`. Such a sum is one array, made of all four inputs.
    """
    assert inputs(values(read, TWO_CONCATENATIONS.format(first=first, second=second))) == expected
