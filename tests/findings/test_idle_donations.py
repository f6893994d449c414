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
