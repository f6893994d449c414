"""The line of the program, the scope and the parameter that an array comes from."""

from __future__ import annotations

import re

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.table import Value

_AT = re.compile(r"AT\((\S*):(\d+)\)")
_STATE = "(s32[], f32[8,64]{1,0}, f32[4,8,64]{2,1,0}, f32[4,8,64]{2,1,0}, f32[4,64,64]{2,1,0})"


def module(text: str) -> str:
    """Write out `STATE`, `ONE_LAYER`, and `AT(name:line)` as metadata of that line of m.py."""
    text = text.replace("STATE", _STATE).replace("ONE_LAYER", "dynamic_slice_sizes={1,64,64}")
    return _AT.sub(r'metadata={op_name="jit(f)/\1" source_file="m.py" source_line=\2}', text)


TRAIN = module("""HloModule step, is_scheduled=true, entry_computation_layout={(f32[4,64,64]{2,1,0}, f32[8,64]{1,0})->f32[8]{0}}

%writing (stack: f32[4,8,64], i: s32[], y: f32[8,64]) -> f32[4,8,64] {
  %stack = f32[4,8,64]{2,1,0} parameter(0)
  %y = f32[8,64]{1,0} parameter(2)
  %b = f32[1,8,64]{2,1,0} bitcast(%y), AT(jvp()/while/body/broadcast_in_dim:20)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %u = f32[4,8,64]{2,1,0} dynamic-update-slice(%stack, %b, %i, %zero, %zero), AT(jvp()/while/body/dus:20)
}

%body (s: STATE) -> STATE {
  %s = STATE parameter(0)
  %i.1 = s32[] get-tuple-element(%s), index=0
  %x = f32[8,64]{1,0} get-tuple-element(%s), index=1
  %saved = f32[4,8,64]{2,1,0} get-tuple-element(%s), index=2
  %inputs = f32[4,8,64]{2,1,0} get-tuple-element(%s), index=3
  %w = f32[4,64,64]{2,1,0} get-tuple-element(%s), index=4
  %inputs.1 = f32[4,8,64]{2,1,0} fusion(%inputs, %i.1, %x), kind=kLoop, calls=%writing, AT(jvp()/while/body/dus:20)
  %zero.1 = s32[] constant(0)
  %layer = f32[1,64,64]{2,1,0} dynamic-slice(%w, %i.1, %zero.1, %zero.1), ONE_LAYER, AT(jvp()/while/body/ds:20)
  %flat = f32[64,64]{1,0} bitcast(%layer)
  %dot = f32[8,64]{1,0} dot(%x, %flat), lhs_contracting_dims={1}, rhs_contracting_dims={0}, AT(jvp()/while/body/mlp/dot:5)
  %tanh = f32[8,64]{1,0} tanh(%dot), AT(jvp()/while/body/mlp/tanh:6)
  %saved.1 = f32[4,8,64]{2,1,0} fusion(%saved, %i.1, %tanh), kind=kLoop, calls=%writing.1, AT(jvp()/while/body/dus:20)
  %next = f32[8,64]{1,0} add(%x, %tanh), AT(jvp()/while/body/add:7)
  %one = s32[] constant(1)
  %j = s32[] add(%i.1, %one)
  ROOT %t = STATE tuple(%j, %next, %saved.1, %inputs.1, %w)
}

%condition (c: STATE) -> pred[] {
  %c = STATE parameter(0)
  %i.2 = s32[] get-tuple-element(%c), index=0
  %four = s32[] constant(4)
  ROOT %less = pred[] compare(%i.2, %four), direction=LT
}

ENTRY %main (p: f32[4,64,64], x: f32[8,64]) -> f32[8] {
  %p = f32[4,64,64]{2,1,0} parameter(0), metadata={op_name="params['w']"}
  %x.1 = f32[8,64]{1,0} parameter(1), metadata={op_name="x"}
  %w.1 = f32[4,64,64]{2,1,0} copy(%p)
  %half = bf16[4,64,64]{2,1,0} convert(%p), AT(jvp()/convert:3)
  %zero.2 = f32[] constant(0)
  %a = f32[4,8,64]{2,1,0} broadcast(%zero.2), dimensions={}, AT(jvp()/broadcast_in_dim:20)
  %a.1 = f32[4,8,64]{2,1,0} broadcast(%zero.2), dimensions={}, AT(jvp()/broadcast_in_dim:20)
  %start = s32[] constant(0)
  %first = f32[8,64]{1,0} copy(%x.1)
  %init = STATE tuple(%start, %first, %a, %a.1, %w.1)
  %loop = STATE while(%init), condition=%condition, body=%body, AT(jvp()/while:20)
  %end = f32[8,64]{1,0} get-tuple-element(%loop), index=1
  %kept = f32[4,8,64]{2,1,0} get-tuple-element(%loop), index=2
  %kept.1 = f32[4,8,64]{2,1,0} get-tuple-element(%loop), index=3
  %wide = f64[4,8,64]{2,1,0} convert(%kept)
  ROOT %r = f32[8]{0} custom-call(%end, %kept, %kept.1, %half, %wide), custom_call_target="reads", AT(transpose(jvp())/reads:9)
}
""")
_WRITING = TRAIN[TRAIN.index("%writing") : TRAIN.index("%body")]
TRAIN = TRAIN.replace("%body (", _WRITING.replace("%writing", "%writing.1") + "%body (", 1)


def columns(report: Report, table: str, *names: str) -> list[tuple[Value, ...]]:
    named = next(t for t in report.tables if t.name == table)
    positions = [[column.name for column in named.columns].index(name) for name in names]
    return [tuple(row[position] for position in positions) for row in named.rows]


def sources(report: Report, table: str = "live_at_peak") -> dict[Value, tuple[Value, ...]]:
    return {row[0]: row[1:] for row in columns(report, table, "name", "source", "path")}


def sizes(report: Report, table: str, label: str) -> dict[Value, int]:
    return {row[0]: int(str(row[1])) for row in columns(report, table, label, "bytes")}


def test_a_stack_has_the_line_of_what_the_loop_writes_into_it() -> None:
    """Two stacks: one of `tanh` in line 6, one of the layer's input, which line 7 makes; `lax.scan` is line 20."""
    rows = sources(hlo_inspect.inspect(TRAIN, "memory"))
    assert rows["a"] == ("m.py:6", None)
    assert rows["a.1"] == ("m.py:7", None)


def test_arrays_of_a_parameter_have_its_path() -> None:
    """A copy, a conversion by line 3, and the layer that the scan slices."""
    rows = sources(hlo_inspect.inspect(TRAIN, "memory"))
    assert rows["p"] == ("", "params['w']")
    assert rows["w.1"] == ("", "params['w']")
    assert rows["half"] == ("m.py:3", "params['w']")
    assert rows["layer"] == ("", "params['w']")


def test_totals_by_line_and_scope_add_up_to_the_peak() -> None:
    """A stack of 4 x 8 x 64 floats is 8,192 bytes, a layer's result 2,048, the parameter 65,536 and one layer of it 16,384."""
    report = hlo_inspect.inspect(TRAIN, "memory")
    lines = sizes(report, "live_by_source", "source")
    assert lines["m.py:6"] == 8192
    assert lines["m.py:7"] == 8192 + 2048
    assert lines["m.py:3"] == 65536 // 2
    assert lines["(parameters)"] == 65536 + 2048
    assert lines["(copies of parameters)"] == 65536 + 16384
    assert "m.py:20" not in lines
    scopes = sizes(report, "live_by_scope", "scope")
    assert scopes["mlp"] == 8192 + 2048  # `a` and `dot`
    assert scopes["(copies of parameters)"] == 65536 + 16384
    for totals in (lines, scopes):
        assert sum(totals.values()) == report.facts["memory.peak_bytes"]


def test_largest_arrays_and_show_say_the_same() -> None:
    rows = {
        name: rest for name, *rest in columns(hlo_inspect.inspect(TRAIN, "memory"), "largest_arrays", "name", "source", "path")
    }
    assert rows["a"] == ["m.py:6", None]
    assert rows["a.1"] == ["m.py:7", None]
    assert rows["wide"] == ["m.py:6", None]  # XLA's own conversion of the first stack
    assert rows["w.1"] == ["", "params['w']"]
    assert elements("saved.1") == "made at m.py:6 in mlp"
    assert elements("a") == "made at m.py:6 in mlp"
    assert elements("w.1") == "copied from parameter 0, params['w']"
    assert elements("half") == elements("p") == ""


def elements(name: str, text: str = TRAIN) -> str:
    rows = hlo_inspect.inspect(text, "show", name=name).headline
    return next((headline_text(row) for row in rows if row.label == "elements"), "")


def test_saved_activations_are_named_by_what_is_written() -> None:
    """The finding names scopes; two stacks of 4 x 8192 x 64 floats are 8 MiB each."""
    backward = TRAIN.replace("jit(f)/jvp()/while/body/add", "jit(f)/jvp()/while/body/attention/add").replace(
        "8,64]", "8192,64]"
    )
    (finding,) = [f for f in hlo_inspect.inspect(backward, "memory").findings if f.rule == "HI305"]
    assert "attention 10.0 MiB, mlp 8.00 MiB" in finding.message
    assert finding.source == sources(hlo_inspect.inspect(backward, "memory"))[str(finding.subject)][0]
    assert finding.source != "m.py:20"  # the line of the scan


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (", AT(jvp()/while:20)", "", "m.py:6"),  # TPU of old versions
        ('"m.py" source_line=6', '"m.py" source_line=20', "m.py:20"),  # a function in the line of the scan
        (", AT(jvp()/while/body/mlp/tanh:6)", "", "m.py:5"),
    ],
)
def test_metadata_that_is_missing_or_equal(old: str, new: str, expected: str) -> None:
    assert module(old) in TRAIN
    assert sources(hlo_inspect.inspect(TRAIN.replace(module(old), new), "memory"))["a"] == (expected, None)


def test_a_loop_that_reads_a_stack_has_slices_with_the_line_of_its_elements() -> None:
    """The backward loop slices the stack at line 20, that of its scan; the layer in its hands was made in line 6."""
    backward = module("""
%body.b (s.b: (s32[], f32[4,8,64])) -> (s32[], f32[4,8,64]) {
  %s.b = (s32[], f32[4,8,64]{2,1,0}) parameter(0)
  %i.b = s32[] get-tuple-element(%s.b), index=0
  %k.b = f32[4,8,64]{2,1,0} get-tuple-element(%s.b), index=1
  %zero.b = s32[] constant(0)
  %slice.b = f32[1,8,64]{2,1,0} dynamic-slice(%k.b, %i.b, %zero.b, %zero.b), dynamic_slice_sizes={1,8,64}, AT(ds:20)
  %n.b = s32[] custom-call(%i.b, %slice.b), custom_call_target="reads"
  ROOT %t.b = (s32[], f32[4,8,64]{2,1,0}) tuple(%n.b, %k.b)
}

%condition.b (c.b: (s32[], f32[4,8,64])) -> pred[] {
  %c.b = (s32[], f32[4,8,64]{2,1,0}) parameter(0)
  %j.b = s32[] get-tuple-element(%c.b), index=0
  %four.b = s32[] constant(4)
  ROOT %less.b = pred[] compare(%j.b, %four.b), direction=LT
}

ENTRY""")
    text = TRAIN.replace("\nENTRY", backward, 1).replace(
        "  ROOT %r = ",
        module(
            "  %init.b = (s32[], f32[4,8,64]{2,1,0}) tuple(%start, %kept)\n"
            "  %loop.b = (s32[], f32[4,8,64]{2,1,0}) while(%init.b), condition=%condition.b, body=%body.b, "
            "AT(transpose(jvp())/while:20)\n  ROOT %r = "
        ),
    )
    assert elements("slice.b", text) == "made at m.py:6 in mlp"


def test_asynchronous_writes_are_writes() -> None:
    """TPU writes into a stack by a start and a done if the stack is on the host."""
    start = (
        "  %put = ((f32[4,8,64]{2,1,0}, f32[1,8,64]{2,1,0}, s32[], s32[], s32[]), f32[4,8,64]{2,1,0}, u32[]) "
        'dynamic-update-slice-start(%saved, %up, %i.1, %zero.1, %zero.1), metadata={op_name="dus" source_file="m.py" '
        "source_line=20}\n  %saved.1 = f32[4,8,64]{2,1,0} dynamic-update-slice-done(%put)\n"
    )
    lines = TRAIN.splitlines(keepends=True)
    write = next(line for line in lines if line.startswith("  %saved.1 = "))
    text = TRAIN.replace(write, "  %up = f32[1,8,64]{2,1,0} bitcast(%tanh)\n" + start)
    assert sources(hlo_inspect.inspect(text, "memory"))["a"] == ("m.py:6", None)


def test_a_write_outside_of_a_loop_keeps_its_own_line() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[8,64]) -> f32[8] {
  %x = f32[8,64]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %i = s32[] constant(2)
  %a = f32[16,64]{1,0} broadcast(%zero), dimensions={}
  %y = f32[8,64]{1,0} tanh(%x), metadata={op_name="tanh" source_file="m.py" source_line=6}
  %u = f32[16,64]{1,0} dynamic-update-slice(%a, %y, %i, %i), metadata={op_name="dus" source_file="m.py" source_line=8}
  ROOT %r = f32[8]{0} custom-call(%u), custom_call_target="reads"
}
"""
    assert sources(hlo_inspect.inspect(text, "memory"))["u"] == ("m.py:8", None)


def test_joined_slices_are_a_copy_of_the_parameter() -> None:
    """TPU copies a weight in four slices and joins them: the array has the role and the path of the weight."""
    text = """HloModule m, is_scheduled=true

ENTRY %main (p: f32[4,8,128], x: f32[8]) -> f32[8] {
  %p = f32[4,8,128]{2,1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  %x = f32[8]{0:T(128)} parameter(1), metadata={op_name="x"}
  %s = START slice-start(%p), slice={[0:2], [0:8], [0:128]}
  %s.1 = START slice-start(%p), slice={[2:4], [0:8], [0:128]}
  %d = f32[2,8,128]{2,1,0:T(8,128)S(1)} slice-done(%s)
  %d.1 = f32[2,8,128]{2,1,0:T(8,128)S(1)} slice-done(%s.1)
  %joined = f32[4,8,128]{2,1,0:T(8,128)S(1)} custom-call(%d, %d.1), custom_call_target="ConcatBitcast"
  ROOT %r = f32[8]{0:T(128)} custom-call(%x, %joined), custom_call_target="reads"
}
"""
    text = text.replace("START", "((f32[4,8,128]{2,1,0:T(8,128)}), f32[2,8,128]{2,1,0:T(8,128)S(1)}, s32[]{:S(2)})")
    rows = columns(hlo_inspect.inspect(text, "memory"), "largest_arrays", "name", "relation", "of_parameter", "path")
    assert ("joined", "copy", "0", "params['w']") in rows
