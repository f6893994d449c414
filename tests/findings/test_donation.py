"""Parameters that a person is advised to donate: those of which an output is the new value."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Finding
from tests.optimizer.programs import ADAM, step_of

MIB = 1 << 20

WRITE = """write {
  old = f32[1024,1024]{1,0} parameter(0)
  row = f32[1,1024]{1,0} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT new = f32[1024,1024]{1,0} dynamic-update-slice(old, row, at, zero)
}
"""
BODY = """body {
  state = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  cache = f32[1024,1024]{1,0} get-tuple-element(state), index=1
  row = f32[1,1024]{1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  new = f32[1024,1024]{1,0} fusion(cache, row, i), kind=kLoop, calls=write
  ROOT all = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(next, new, row)
}

condition {
  state = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(8)
  ROOT goes_on = pred[] compare(i, n), direction=LT
}
"""
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CACHE = ("cache = f32[1024,1024]{1,0} parameter(0)", "row = f32[1,1024]{1,0} parameter(1)", "at = s32[] parameter(2)")
WEIGHTS = (
    "x = f32[1024,1024]{1,0} parameter(0)",
    "w = f32[1024,1024]{1,0} parameter(1)",
    "v = f32[1024,1024]{1,0} parameter(2)",
)


def module(*lines: str, before: str = "") -> str:
    return f"HloModule m\n\n{before}\nENTRY main {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def advice(text: str) -> list[Finding]:
    findings = hlo_inspect.inspect(text, "params").findings
    return [finding for finding in findings if finding.rule in {"HI101", "HI505"}]


HALVES = (
    "upper = f32[512,1024]{1,0} slice(cache), slice={[0:512], [0:1024]}\n"
    "  lower = f32[512,1024]{1,0} slice(cache), slice={[512:1024], [0:1024]}"
)
UPDATED = "ROOT new = f32[1024,1024]{1,0} fusion(cache, row, at), kind=kLoop, calls=write"


@pytest.mark.parametrize(
    "new",
    [
        UPDATED,
        "zero = s32[] constant(0)\n  one = f32[1024,1024]{1,0} dynamic-update-slice(cache, row, at, zero)\n"
        "  ROOT new = f32[1024,1024]{1,0} dynamic-update-slice(one, row, zero, zero)",
        "state = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(at, cache, row)\n"
        "  loop = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) while(state), body=body, condition=condition\n"
        "  ROOT new = f32[1024,1024]{1,0} get-tuple-element(loop), index=1",
        "ROOT new = f32[1024,1024]{1,0} multiply(cache, cache)",
        f"{HALVES}\n  written = f32[512,1024]{{1,0}} dynamic-update-slice(upper, row, at, at)\n"
        "  ROOT new = f32[1024,1024]{1,0} concatenate(written, lower), dimensions={0}",
    ],
)
def test_arrays_written_in_part_or_elementwise_could_be_donated(new: str) -> None:
    (finding,) = advice(module(*CACHE, new, before=WRITE + "\n" + BODY))
    assert (finding.rule, finding.severity, finding.subject, finding.stake) == ("HI101", "warning", "cache", 4 * MIB)
    assert finding.message == ("parameter 0 is not donated, but its new value is an output; donating it saves 4.00 MiB")


@pytest.mark.parametrize(
    "new",
    [
        f"h = f32[1024,1024]{{1,0}} dot(x, w), {DOT}\n  ROOT y = f32[1024,1024]{{1,0}} dot(h, v), {DOT}",
        f"h = f32[1024,1024]{{1,0}} dot(x, w), {DOT}\n  ROOT y = f32[1024,1024]{{1,0}} add(x, h)",  # a residual
        'ROOT y = f32[1024,1024]{1,0} custom-call(x, w, v), custom_call_target="attention"',
        # one half of the input stays, as in a coupling layer of a flow
        f"{HALVES.replace('cache', 'x')}\n  p = f32[512,1024]{{1,0}} dot(upper, w), {DOT}\n"
        "  ROOT y = f32[1024,1024]{1,0} concatenate(p, lower), dimensions={0}",
    ],
)
def test_a_forward_pass_keeps_its_weights(new: str) -> None:
    """Three weights of 4 MiB have the shape of the result, which is the new value of none."""
    assert advice(module(*WEIGHTS, new)) == []


def test_quick_does_not_say_what_data_flow_would() -> None:
    """A cache of which a row is written: a finding of data flow. By shapes alone it would be another one."""
    report = hlo_inspect.inspect(module(*CACHE, UPDATED, before=WRITE), "params", quick=True)
    assert [finding.rule for finding in report.findings] == []
    assert "undonated-parameter" in report.left_out_rules
    assert "undonated-parameter" in next(note for note in report.notes if note.startswith("findings: left out by --quick"))


def test_weights_and_state_are_named_once() -> None:
    """A weight and two moments of 64 MiB: HI505 names the moments, HI101 the weight."""
    text = (
        step_of(*ADAM, outputs="new m v", states=2, donated=False).replace("[4,4]", "[4096,4096]").replace("[9,4]", "[9,4096]")
    )
    assert {finding.rule: finding.stake for finding in advice(text)} == {
        "HI101": 64 * MIB,
        "HI505": 128 * MIB,
    }


def test_an_array_without_elements_is_not_reported_as_unread() -> None:
    lines = ("x = f32[8]{0} parameter(0)", "none = f32[0]{0} parameter(1)", "ROOT y = f32[8]{0} negate(x)")
    report = hlo_inspect.inspect(module(*lines), "params")
    assert [finding.rule for finding in report.findings if finding.rule == "HI102"] == []
    assert report.facts["params.unused_count"] == 1


@pytest.mark.parametrize(("elements", "severity"), [(512, "info"), (262143, "info"), (262144, "warning")])
def test_a_small_function_need_not_give_its_arguments_away(elements: int, severity: str) -> None:
    """An addition of two arrays: 1 MiB is worth a warning, 2 KiB are none."""
    shape = f"f32[{elements}]{{0}}"
    lines = (f"x = {shape} parameter(0)", f"y = {shape} parameter(1)", f"ROOT r = {shape} add(x, y)")
    (finding,) = advice("HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n")
    assert (finding.severity, finding.stake) == (severity, 4 * elements)
    assert ("if the caller does not use it again" in finding.message) == (severity == "info")


@pytest.mark.parametrize(("columns", "severity"), [(256, "info"), (1024, "warning")])
def test_a_small_cache_is_not_warned_of(columns: int, severity: str) -> None:
    """A cache of 256 KiB or 1 MiB of which a row is written."""
    lines = (
        f"cache = f32[256,{columns}]{{1,0}} parameter(0)",
        f"row = f32[1,{columns}]{{1,0}} parameter(1)",
        "at = s32[] parameter(2)",
        "zero = s32[] constant(0)",
        f"ROOT new = f32[256,{columns}]{{1,0}} dynamic-update-slice(cache, row, at, zero)",
    )
    assert [finding.severity for finding in advice(module(*lines))] == [severity]


def test_an_output_in_another_sharding_takes_no_buffer() -> None:
    """A parameter is doubled and gathered, and an output of its shape is made of something else."""
    layout = "{(f32[16,16]{1,0}, f32[16,16]{1,0})->(f32[32,16]{1,0}, f32[16,16]{1,0})}"
    text = f"HloModule m, entry_computation_layout={layout}, num_partitions=2\n"
    text += """
ENTRY e {
  a = f32[16,16]{1,0} parameter(0)
  b = f32[16,16]{1,0} parameter(1)
  d = f32[16,16]{1,0} add(a, a)
  g = f32[32,16]{1,0} all-gather(d), replica_groups={{0,1}}, dimensions={0}
  s = f32[16,16]{1,0} all-reduce(b), replica_groups={{0,1}}, to_apply=add
  ROOT t = (f32[32,16]{1,0}, f32[16,16]{1,0}) tuple(g, s)
}
"""
    assert advice(text) == []
