"""Costs by kind of fusion, phase and line of source."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.module_cost import module_cost
from hlo_inspect.analysis.provenance import NOT_FUSED, NOT_PRINTED, Labeller, Labels, Provenances
from hlo_inspect.graph import calls
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.op_names import StackFrames
from hlo_inspect.hlo.wants import Wants
from tests.analysis.cost.small import by_label, cost_of, view_of

P = "%p = f32[8] parameter(0)"
TWICE = "%twice {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] add(%x, %x)\n}\n"


def labels(line: str) -> Labels:
    return Labeller(Provenances(StackFrames())).get(view_of(P, line), 1)


def test_kinds() -> None:
    lines = [
        "%a = f32[8] add(%p, %p)",
        "%f = f32[8] fusion(%a), kind=kLoop, calls=%twice",
        "%g = f32[8] fusion(%f), kind=kInput, calls=%twice",
        "%h = f32[8] fusion(%g), kind=kLoop, calls=%twice",
        "%i = f32[8] fusion(%h), calls=%twice",
    ]
    assert by_label(cost_of(P, *lines, before=TWICE).tally("kind")) == {
        NOT_FUSED: (8, 0, 0, 96),
        "kLoop": (16, 0, 0, 128),
        "kInput": (8, 0, 0, 64),
        NOT_PRINTED: (8, 0, 0, 64),
    }


def test_a_fusion_in_the_short_spelling() -> None:
    assert labels("%s = ((f32[8]), f32[8]) fusion-start(%p), kind=kLoop, calls=%twice").kind == "kLoop"
    assert labels("%s = f32[8] fusion(%p), kind=kLoop").kind == NOT_PRINTED


@pytest.mark.parametrize(
    ("metadata", "phase"),
    [
        ('op_name="jit(step)/jvp(layer)/dot_general"', "forward"),
        ('op_name="jit(step)/transpose(jvp(layer))/dot_general"', "backward"),
        ('op_name="jit(step)/apply_updates/mul"', "optimizer"),
        ('op_name="jit(step)/mul"', "unknown"),
        ('source_file="x.py"', "unknown"),
        ('op_name="jit(step)/(jvp()/add:jvp(layer)/add)"', "forward"),
        ('op_name="jit(step)/(jvp()/add:transpose(jvp())/add)"', "unknown"),
    ],
)
def test_phases(metadata: str, phase: str) -> None:
    assert labels(f"%a = f32[8] negate(%p), metadata={{{metadata}}}").phase == phase


@pytest.mark.parametrize("target", ["x", ", metadata={op_name=}", r"\", metadata={}"])
def test_strings_before_the_metadata(target: str) -> None:
    line = f'%a = f32[8] custom-call(%p), custom_call_target="{target}", metadata={{op_name="jit(f)/jvp(layer)/dot"}}'
    assert labels(line).phase == "forward"


def test_a_field_that_stands_twice() -> None:
    """The last one counts, as without the first."""
    assert labels('%a = f32[8] negate(%p), metadata={op_name="jvp(x)/a" op_name="transpose(jvp(x))/a"}').phase == "backward"


def test_sources_inline() -> None:
    lines = [
        '%a = f32[8] negate(%p), metadata={op_name="a" source_file="x.py" source_line=7}',
        '%b = f32[8] negate(%a), metadata={op_name="b" source_file="x.py" source_line=7}',
        '%c = f32[8] negate(%b), metadata={op_name="c" source_file="y.py"}',
        '%d = f32[8] negate(%c), metadata={op_name="d"}',
        "%e = f32[8] negate(%d)",
    ]
    sources = by_label(cost_of(P, *lines).tally("source"))
    assert {label: row[0] for label, row in sources.items()} == {"x.py:7": 16, "y.py": 8, NOT_PRINTED: 16}


def test_sources_by_frame() -> None:
    text = """HloModule m

FileNames
1 "x.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY %main {
  %p = f32[8] parameter(0)
  ROOT %a = f32[8] negate(%p), metadata={op_name="a" stack_frame_id=1}
}
"""
    (module,) = read_modules(open_source(text), calls.WANTS | Wants(graph=True))
    assert by_label(module_cost(module, CallGraph(module)).tally("source")) == {"x.py:12": (8, 0, 0, 64)}


def test_text_in_a_string_is_no_metadata() -> None:
    """The same text stands behind both; only the second is metadata."""
    real = 'metadata={source_file="x.py" source_line=7}'
    fake = r'frontend_attributes={a=", metadata={source_file=\"y.py\"}"}'
    labeller = Labeller(Provenances(StackFrames()))
    view = view_of(P, f"%a = f32[8] negate(%p), {fake}", f"%b = f32[8] negate(%a), {fake}, {real}")
    assert [labeller.get(view, index).source for index in (1, 2)] == [NOT_PRINTED, "x.py:7"]


def test_layers_share_labels_and_keep_their_names() -> None:
    """Labels of rows are one object if names differ in a layer's number only: not in the function, the scope or the line."""
    metadata = [
        'op_name="jit(f_1)/layers_0/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_1)/layers_1/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_2)/layers_1/mlp/dot" source_file="m_0.py" source_line=7',
        'op_name="jit(f_1)/layers_1/mlp/dot" source_file="m_1.py" source_line=7',
        'op_name="jit(f_1)/layers_1/attention/dot" source_file="m_0.py" source_line=7',
    ]
    view = view_of(P, *(f"%a{number} = f32[8] negate(%p), metadata={{{text}}}" for number, text in enumerate(metadata)))
    labeller = Labeller(Provenances(StackFrames()))
    shared = [labeller.shared(view, row) for row in range(1, 6)]
    assert [shared[0] is other for other in shared] == [True, view.rows.extent is not None, False, False, False]
    exact = [labeller.get(view, row) for row in range(1, 6)]
    assert [own.op_name for own in exact] == [text.split('"')[1] for text in metadata]
    assert [(own.scope, own.source) for own in exact] == [
        *[("layers_*/mlp", "m_0.py:7")] * 3,
        ("layers_*/mlp", "m_1.py:7"),
        ("layers_*/attention", "m_0.py:7"),
    ]
