"""HI309: a donated parameter that no output takes, and a temporary that could be in its memory."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.findings import find_rule
from hlo_inspect.report.model import Finding

EXAMPLE = find_rule("HI309").example


def found(text: str) -> list[Finding]:
    return [finding for finding in hlo_inspect.inspect(text, "memory").findings if finding.rule == "HI309"]


def replaced(*changes: tuple[str, str]) -> str:
    text = EXAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_temporary_fits() -> None:
    """The temporary, 512 x 1024 x 4 bytes (2 MiB), is written after the last read of the parameter, which is as large."""
    (finding,) = found(EXAMPLE)
    assert (finding.subject, finding.stake) == ("cache", 512 * 1024 * 4)
    assert finding.message == ("2.00 MiB of donated parameter 0 are idle after x; y, 2.00 MiB, could use this memory")


def test_a_donated_buffer_used_by_an_output_carries_no_temporary() -> None:
    """The same parameter with an output in its place: XLA puts the temporary there, so that no heap is left."""
    text = replaced(
        ("buffer_donor={ (0, {}) }", "input_output_alias={ {0}: (0, {}, may-alias) }"),
        ("ROOT r =", "r ="),
        ('"reads"\n}', '"reads"\n  new = f32[512,1024]{1,0} custom-call(r), custom_call_target="writes"\n'
         "  ROOT t = (f32[512,1024]{1,0}, f32[8]{0}) tuple(new, r)\n}"),
    )  # fmt: skip
    assert found(text) == []
    assert hlo_inspect.inspect(text, "memory").facts["memory.heap_bytes"] == 0


LOOP = """HloModule f, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

body (s: (s32[], f32[], f32[1048576])) -> (s32[], f32[], f32[1048576]) {
  s = (s32[], f32[], f32[1048576]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  t = f32[] get-tuple-element(s), index=1
  y = f32[1048576]{0} get-tuple-element(s), index=2
  part = f32[1]{0} dynamic-slice(y, i), dynamic_slice_sizes={1}
  e = f32[] reshape(part)
  u = f32[] add(t, e)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[], f32[1048576]{0}) tuple(n, u, y)
}

condition (s: (s32[], f32[], f32[1048576])) -> pred[] {
  s = (s32[], f32[], f32[1048576]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  eight = s32[] constant(8)
  ROOT c = pred[] compare(i, eight), direction=LT
}

added (p: f32[], q: f32[1048576]) -> f32[1048576] {
  p = f32[] parameter(0)
  q = f32[1048576]{0} parameter(1)
  all = f32[1048576]{0} broadcast(p), dimensions={}
  ROOT add = f32[1048576]{0} add(all, q)
}

ENTRY main (x: f32[1048576]) -> f32[1048576] {
  x = f32[1048576]{0} parameter(0)
  a = f32[1048576]{0} exponential(x)
  i = s32[] constant(0)
  z = f32[] constant(0)
  first = s32[] copy(i)
  zero = f32[] copy(z)
  s = (s32[], f32[], f32[1048576]{0}) tuple(first, zero, a)
  w = (s32[], f32[], f32[1048576]{0}) while(s), condition=condition, body=body,
    backend_config={"known_trip_count":{"n":"8"}}
  sum = f32[] get-tuple-element(w), index=1
  ROOT new = f32[1048576]{0} fusion(sum, a), kind=kLoop, calls=added
}
"""
"""A loop reads what the donated parameter became, and the output takes the parameter's buffer (openxla/xla, jaxlib 0.7.2)."""


def test_a_temporary_between_the_parameter_and_its_output() -> None:
    """exp(x), 4 MiB, is made by the last read of x and last read for the output: one buffer would do."""
    (finding,) = found(LOOP)
    assert (finding.subject, finding.stake) == ("x", 4 << 20)
    assert finding.message == "4.00 MiB of donated parameter 0 are idle after a; a, 4.00 MiB, could use this memory"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fusion(sum, a)", "fusion(sum, x)"),  # the parameter is read until the end
        ("input_output_alias={ {}: (0, {}, may-alias) }", "replica_count=1"),  # not donated
    ],
)
def test_a_parameter_that_is_read_to_the_end_is_not_idle(old: str, new: str) -> None:
    assert found(LOOP.replace(old, new)) == []


@pytest.mark.parametrize(
    "text",
    [
        replaced(("custom-call(y)", "custom-call(y, cache)")),  # the parameter is read after the temporary is made
        replaced(("y = f32[512,1024]", "y = f32[513,1024]")),  # too large
        replaced(("[512,1024]", "[128,1024]")),  # half a MiB
        replaced((", buffer_donor={ (0, {}) }", "")),  # not donated
        replaced(("cache = f32[512,1024]{1,0}", "cache = f32[512,1024]{1,0:S(5)}")),  # in host memory
        replaced(("is_scheduled=true", "is_scheduled=false")),
    ],
)
def test_a_buffer_that_cannot_carry_the_temporary_is_no_finding(text: str) -> None:
    assert found(text) == []


def test_one_temporary_is_named_once() -> None:
    """The smaller of two donated parameters has the temporary."""
    two = replaced(
        ("{ (0, {}) }", "{ (0, {}), (1, {}) }"),
        ("  x = ", "  more = f32[1024,1024]{1,0} parameter(1)\n  x = "),
    )
    assert [finding.subject for finding in found(two)] == ["cache"]
