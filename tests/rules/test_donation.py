"""Which parameters a person is advised to donate: those of which an output is the new value."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Finding
from tests.analysis.optimizer.programs import ADAM, step_of

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


def advice(text: str, *also: str) -> list[Finding]:
    found = hlo_inspect.inspect(text, "params", also=also).findings
    return [finding for finding in found if finding.rule in {"HI101", "HI505"}]


@pytest.mark.parametrize(
    "new",
    [
        "ROOT new = f32[1024,1024]{1,0} fusion(cache, row, at), kind=kLoop, calls=write",
        "zero = s32[] constant(0)\n  one = f32[1024,1024]{1,0} dynamic-update-slice(cache, row, at, zero)\n"
        "  ROOT new = f32[1024,1024]{1,0} dynamic-update-slice(one, row, zero, zero)",
        "state = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(at, cache, row)\n"
        "  loop = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) while(state), body=body, condition=condition\n"
        "  ROOT new = f32[1024,1024]{1,0} get-tuple-element(loop), index=1",
        "ROOT new = f32[1024,1024]{1,0} multiply(cache, cache)",
    ],
)
def test_what_is_written_in_part_or_changed_elementwise(new: str) -> None:
    (finding,) = advice(module(*CACHE, new, before=WRITE + "\n" + BODY), "optimizer")
    assert (finding.rule, finding.severity, finding.subject, finding.bytes_at_stake) == ("HI101", "warning", "cache", 4 * MIB)
    assert finding.message == (
        "parameter 0 could be donated: an output that takes no parameter's buffer is its new value; that would save 4.00 MiB"
    )


@pytest.mark.parametrize(
    "new",
    [
        f"h = f32[1024,1024]{{1,0}} dot(x, w), {DOT}\n  ROOT y = f32[1024,1024]{{1,0}} dot(h, v), {DOT}",
        f"h = f32[1024,1024]{{1,0}} dot(x, w), {DOT}\n  ROOT y = f32[1024,1024]{{1,0}} add(x, h)",  # a residual
        'ROOT y = f32[1024,1024]{1,0} custom-call(x, w, v), custom_call_target="attention"',
    ],
)
def test_a_forward_pass_keeps_its_weights(new: str) -> None:
    """Without data flow three weights of 4 MiB and one result are no warning, and one parameter is named for the one result."""
    assert advice(module(*WEIGHTS, new), "optimizer") == []
    (finding,) = advice(module(*WEIGHTS, new))
    assert (finding.rule, finding.severity, finding.bytes_at_stake) == ("HI101", "info", 4 * MIB)
    assert finding.message.startswith("parameter 0 could be donated, if the caller does not use it again: an output ")


def test_names_of_an_optimizers_state_make_it_a_warning() -> None:
    named = [line + (', metadata={op_name="opt_state[0].mu"}' if " v =" in f" {line}" else "") for line in WEIGHTS]
    (finding,) = advice(module(*named, f"ROOT y = f32[1024,1024]{{1,0}} dot(x, w), {DOT}"))
    assert finding.severity == "warning"


def test_weights_and_state_are_named_once() -> None:
    """A weight and two moments of 64 MiB: HI505 names the moments, HI101 the weight; without data flow HI101 names all."""
    text = (
        step_of(*ADAM, outputs="new m v", states=2, donated=False).replace("[4,4]", "[4096,4096]").replace("[9,4]", "[9,4096]")
    )
    assert {finding.rule: finding.bytes_at_stake for finding in advice(text, "optimizer")} == {
        "HI101": 64 * MIB,
        "HI505": 128 * MIB,
    }
    assert {finding.rule: finding.bytes_at_stake for finding in advice(text)} == {"HI101": 192 * MIB}


def test_an_array_without_elements_is_not_reported_as_unread() -> None:
    lines = ("x = f32[8]{0} parameter(0)", "none = f32[0]{0} parameter(1)", "ROOT y = f32[8]{0} negate(x)")
    found = hlo_inspect.inspect(module(*lines), "params")
    assert [finding.rule for finding in found.findings if finding.rule == "HI102"] == []
    assert found.facts["params.unused_count"] == 1


@pytest.mark.parametrize(("elements", "severity"), [(512, "info"), (262143, "info"), (262144, "warning")])
def test_a_small_function_need_not_give_its_arguments_away(elements: int, severity: str) -> None:
    """An addition of two arrays: 1 MiB is worth a warning, 2 KiB are none."""
    shape = f"f32[{elements}]{{0}}"
    lines = (f"x = {shape} parameter(0)", f"y = {shape} parameter(1)", f"ROOT r = {shape} add(x, y)")
    (finding,) = advice("HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n", "optimizer")
    assert (finding.severity, finding.bytes_at_stake) == (severity, 4 * elements)
    assert ("if the caller does not use it again" in finding.message) == (severity == "info")


@pytest.mark.parametrize(("columns", "severity"), [(256, "info"), (1024, "warning")])
def test_without_data_flow_a_small_function_is_not_warned_either(columns: int, severity: str) -> None:
    """A cache of 256 KiB or 1 MiB of which a row is written: both readings say the same."""
    lines = (
        f"cache = f32[256,{columns}]{{1,0}} parameter(0)",
        f"row = f32[1,{columns}]{{1,0}} parameter(1)",
        "at = s32[] parameter(2)",
        "zero = s32[] constant(0)",
        f"ROOT new = f32[256,{columns}]{{1,0}} dynamic-update-slice(cache, row, at, zero)",
    )
    found = [advice(module(*lines), *also) for also in ([], ["optimizer"])]
    assert [finding.severity for findings in found for finding in findings] == [severity, severity]


def test_what_comes_back_in_another_sharding_cannot_take_a_buffer() -> None:
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
    assert advice(text, "optimizer") == []
