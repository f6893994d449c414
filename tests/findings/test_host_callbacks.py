"""HI510: Python on the host that each step calls, with calls and bytes worked out by hand."""

from __future__ import annotations

import hlo_inspect
from hlo_inspect.report.model import Finding

CALL = 'custom_call_target="%s", metadata={op_name="jit(f)/%s" source_file="/w/a.py" source_line=%d}'
LOOP = """HloModule step, is_scheduled=true

more {
  s = (s32[], f32[256,256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  l = s32[] constant(6)
  ROOT c = pred[] compare(n, l), direction=LT
}

body {
  s = (s32[], f32[256,256]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[256,256]{1,0} get-tuple-element(s), index=1
  o = s32[] constant(1)
  m = s32[] add(n, o)
  INSIDE
  y = f32[256,256]{1,0} sine(x)
  ROOT t = (s32[], f32[256,256]) tuple(m, y)
}

ENTRY main {
  s = (s32[], f32[256,256]) parameter(0)
  w = (s32[], f32[256,256]) while(s), condition=more, body=body LIMIT
  r = f32[256,256]{1,0} get-tuple-element(w), index=1
  BEHIND
  ROOT z = f32[256,256]{1,0} negate(r)
}
"""
TRIPS = ', backend_config={"known_trip_count":{"n":"6"}}'


def found(inside: str, behind: str = "", limit: str = TRIPS) -> list[Finding]:
    text = LOOP.replace("INSIDE", inside).replace("BEHIND", behind).replace("LIMIT", limit)
    return [finding for finding in hlo_inspect.inspect(text, "custom-calls").findings if finding.rule == "HI510"]


def call(target: str, word: str, line: int, operands: str = "x") -> str:
    return f"c{line} = () custom-call({operands}), " + CALL % (target, word, line)


def test_a_call_in_a_loop_counts_each_run() -> None:
    (finding,) = found(call("xla_ffi_python_cpu_callback", "debug_print", 7, "x, n"))
    assert finding.stake == 6 * (256 * 256 * 4 + 4)
    assert "Python on the host 6 times by debug_print in a.py:7; a device sends it 1.50 MiB" in finding.message
    assert (finding.severity, finding.source) == ("warning", "/w/a.py:7")


def test_calls_of_one_line_are_one_finding_and_others_are_infos() -> None:
    inside = call("xla_python_gpu_callback", "debug_callback", 7)
    again = call("xla_python_gpu_callback", "debug_callback", 7, "r").replace("c7", "d7")
    other = call("xla_ffi_python_gpu_callback", "io_callback", 8, "")
    first, second = found(inside, f"{again}\n  {other}")
    assert (first.stake, first.severity) == (7 * 262_144, "warning")
    assert "7 times" in first.message
    assert (second.stake, second.severity) == (0, "info")
    assert "once by io_callback in a.py:8" in second.message


def test_a_loop_of_unknown_length_gives_a_lower_bound() -> None:
    (finding,) = found(call("xla_ffi_python_gpu_callback", "debug_print", 7), limit="")
    assert ">= " in finding.message


def test_a_tpu_sends_each_operand_of_a_call() -> None:
    name = 'metadata={op_name="jit(f)/debug_callback" source_file="/w/a.py" source_line=7}'
    sends = "".join(
        f"{operand}s = ({kind}, u32[], token[]) send({operand}, k), channel_id={number}, is_host_transfer=true, {name}\n  "
        f"{operand}d = token[] send-done({operand}s), channel_id={number}, is_host_transfer=true\n  "
        for number, (operand, kind) in enumerate((("x", "f32[256,256]"), ("n", "s32[]")), 1)
    )
    (finding,) = found(f"k = token[] after-all()\n  {sends}")
    assert finding.stake == 6 * (256 * 256 * 4 + 4)  # one call with two operands
    assert "6 times" in finding.message


def test_other_custom_calls_and_sends_to_devices_are_none() -> None:
    assert found('k = f32[256,256]{1,0} custom-call(x), custom_call_target="python_callback_fusion"') == []
    sent = "k = token[] after-all()\n  e = (f32[256,256], u32[], token[]) send(x, k), channel_id=1"
    assert found(sent) == []
    slices = 'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime"}'
    assert found(f"{sent}, {slices}") == []
