"""`S(5)` in `entry_computation_layout` puts a parameter or an output on the host, though its line does not say so."""

from __future__ import annotations

import pytest

import hlo_inspect

HEADER = (
    "HloModule jit_f, SCHEDULEDentry_computation_layout={(f32[512,64]{1,0:S(5)}, f32[512,64]{1,0})->(f32[512,64]{1,0}, RESULT)}"
)
TEXT = """

ENTRY %main (m: f32[512,64], g: f32[512,64]) -> (f32[512,64], f32[512,64]) {
  %m = f32[512,64]{1,0} parameter(0)
  %g = f32[512,64]{1,0} parameter(1)
  %n = f32[512,64]{1,0} add(%m, %g)
  %k = f32[512,64]{1,0} negate(%g)
  ROOT %t = (f32[512,64]{1,0}, f32[512,64]{1,0}) tuple(%n, %k)
}
"""
SIZE = 512 * 64 * 4
TABLES = 2 * 8
"""Bytes of the table of pointers of a tuple."""


def dump(*, scheduled: bool, result: str = "f32[512,64]{1,0}") -> bytes:
    schedule = "is_scheduled=true, " if scheduled else ""
    return (HEADER.replace("SCHEDULED", schedule).replace("RESULT", result) + TEXT).encode()


@pytest.mark.parametrize("scheduled", [True, False])
def test_arguments_on_the_host_take_no_device_memory(scheduled: bool) -> None:
    facts = hlo_inspect.inspect(dump(scheduled=scheduled), "memory").facts
    assert facts["memory.argument_bytes"] == SIZE
    assert facts["memory.output_bytes"] == 2 * SIZE + (TABLES if scheduled else 0)
    if scheduled:
        assert (facts["memory.host_bytes"], facts["memory.peak_bytes"]) == (SIZE, 3 * SIZE + TABLES)
        assert facts["memory.xla_peak_bytes"] == 4 * SIZE + TABLES


def test_outputs_on_the_host_take_no_device_memory() -> None:
    facts = hlo_inspect.inspect(dump(scheduled=True, result="f32[512,64]{1,0:S(5)}"), "memory").facts
    assert (facts["memory.output_bytes"], facts["memory.host_bytes"]) == (SIZE + TABLES, 2 * SIZE)


def test_parameters_have_the_space_of_the_header() -> None:
    report = hlo_inspect.inspect(dump(scheduled=True), "params")
    assert [row["memory_space"] for row in report.table("params").records()] == [5, 0]
    assert report.facts["params.bytes"] == 2 * SIZE


LAYOUT = "entry_computation_layout={(f32[512,512]{1,0:S(5)}, f32[512,512]{1,0})->f32[512,512]{1,0}}"
PAGED = (
    f"HloModule jit_f, is_scheduled=true, {LAYOUT}"
    + """

ENTRY %main (m: f32[512,512], g: f32[512,512]) -> f32[512,512] {
  %m = f32[512,512]{1,0} parameter(0)
  %g = f32[512,512]{1,0} parameter(1)
  ROOT %n = f32[512,512]{1,0} add(%m, %g)
}
"""
)


@pytest.mark.parametrize(("text", "rules"), [(PAGED, set()), (PAGED.replace(":S(5)", ""), {"HI101"})])
def test_an_output_on_the_device_takes_no_parameter_of_the_host(text: str, rules: set[str]) -> None:
    report = hlo_inspect.inspect(text, "summary")
    assert {finding.rule for finding in report.findings} == rules


def test_the_space_of_a_line_holds() -> None:
    text = dump(scheduled=True).replace(b"%m = f32[512,64]{1,0}", b"%m = f32[512,64]{1,0:S(1)}")
    assert [row["memory_space"] for row in hlo_inspect.inspect(text, "params").table("params").records()] == [1, 0]
