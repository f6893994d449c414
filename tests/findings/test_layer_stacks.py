"""HI308: a stack of layers that is made whole before a loop that reads it one layer at a time."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.findings import find_rule
from hlo_inspect.report.model import Finding

EXAMPLE = find_rule("HI308").example
SLICE = "dynamic-slice(stack, i, zero, zero), dynamic_slice_sizes={1,256,1024}"
FUSED = """
slicing {
  a = bf16[8,256,1024]{2,1,0} parameter(0)
  n = s32[] parameter(1)
  z = s32[] constant(0)
  flat = bf16[8,256,1024]{2,1,0} bitcast(a)
  one = bf16[1,256,1024]{2,1,0} dynamic-slice(flat, n, z, z), dynamic_slice_sizes={1,256,1024}
  ROOT twice = bf16[1,256,1024]{2,1,0} add(one, one)
}

body {"""


def found(text: str) -> list[Finding]:
    return [finding for finding in hlo_inspect.inspect(text, "memory").findings if finding.rule == "HI308"]


def replaced(*changes: tuple[str, str]) -> str:
    text = EXAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def fused(*changes: tuple[str, str]) -> str:
    text = replaced(("body {", FUSED.strip()), (SLICE, "fusion(stack, i), kind=kLoop, calls=slicing"))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("text", [EXAMPLE, fused()])
def test_one_layer_would_do(text: str) -> None:
    """Eight layers of 256 x 1024 x 2 bytes are 4 MiB; without seven of them 3.5 MiB are free."""
    (finding,) = found(text)
    assert finding.stake == 7 * 256 * 1024 * 2
    assert finding.subject == "half"
    assert "is a conversion of parameter 0: 8 layers, one per iteration of loop" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        replaced(("convert(w)", "exponential(w)")),  # no relation to the parameter: it may be an activation
        replaced(("[8,256,1024]", "[8,16,1024]"), ("[1,256,1024]", "[1,16,1024]"), ("{1,256,1024}", "{1,16,1024}")),  # small
        replaced(("custom-call(i, layer)", "custom-call(i, layer, stack)")),  # the loop reads all of it too
        replaced(
            ("init = ", 'r = f32[8]{0} custom-call(half), custom_call_target="reads"\n  init = ')
        ),  # and so does the entry
        fused(("add(one, one)", "add(one, one)\n  b = bf16[8,256,1024]{2,1,0} add(a, a)")),  # and a fusion
        replaced(
            ("tuple(next, stack)", "tuple(next, new)"), ("next = ", "new = bf16[8,256,1024]{2,1,0} negate(stack)\n  next = ")
        ),
        replaced(("is_scheduled=true", "is_scheduled=false")),
    ],
)
def test_all_layers_are_needed(text: str) -> None:
    assert found(text) == []


def test_layers_of_other_devices() -> None:
    """Gathered layers cannot be sliced. If each device has a part of every layer, one layer can be gathered."""
    gather = "all-gather(w), replica_groups={{0,1}}, dimensions={%d}, channel_id=1, use_global_device_ids=true"
    changes = (("bf16[", "f32["), ("is_scheduled=true", "is_scheduled=true, num_partitions=2"))
    by_layer = replaced(("w = f32[8,256", "w = f32[4,256"), ("convert(w)", gather % 0), *changes)
    in_layer = replaced(("w = f32[8,256", "w = f32[8,128"), ("convert(w)", gather % 1), *changes)
    assert found(by_layer) == []
    (finding,) = found(in_layer)
    assert finding.stake == 7 * 256 * 1024 * 4
