"""Platforms, chips and compilers by their marks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.platforms import find_platform
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.request import PlatformName

GRAPH = Wants(graph=True, entry=True)
TEXT = """HloModule m, is_scheduled=true

%FUSED (f: f32[8]) -> f32[8] {
  %f = f32[8]{0} parameter(0)
  ROOT %g = f32[8]{0} negate(%f)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} fusion(%x), kind=KIND, calls=%FUSED
}
"""
TPU = TEXT.replace("{0}", "{0:T(128)}")


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        (TEXT.replace("FUSED", "fused_computation").replace("KIND", "kLoop"), "cpu"),
        (TEXT.replace("FUSED", "fused_negate").replace("KIND", "kLoop"), "gpu"),
        (TEXT.replace("FUSED", "fused_computation").replace("KIND", "kInput"), "gpu"),
        (TPU.replace("FUSED", "fused_computation").replace("KIND", "kLoop"), "tpu"),
        (TEXT.replace("KIND", 'kLoop, backend_config={"outer_dimension_partitions":["2"]}'), "cpu"),
        (TEXT.replace("KIND", 'kLoop, backend_config={"force_earliest_schedule":false}'), "gpu"),
        (TEXT.replace("m, is", 'm, frontend_attributes={fingerprint_before_lhs="ab"}, is'), "gpu"),
    ],
)
def test_the_platform_by_its_marks(read: Callable[..., Context], text: str, platform: PlatformName) -> None:
    context = read(text, GRAPH)
    assert find_platform(context.module, context.views).name == platform
    assert find_platform(context.module, context.views, "tpu").name == "tpu"


@pytest.mark.parametrize(("inside", "platform"), [("custom-call", "gpu"), ("negate", "cpu")])
def test_marks_of_what_is_fused(read: Callable[..., Context], inside: str, platform: PlatformName) -> None:
    """Compilers put none on what stands in any fusion; a name in its metadata is none."""
    marked = (
        f'{inside}(%f), custom_call_target="__cublas$gemm"'
        if platform == "gpu"
        else 'negate(%f), metadata={op_name="__cublas"}'
    )
    context = read(TEXT.replace("negate(%f)", marked).replace("KIND", "kLoop").replace("FUSED", "fused_computation"), GRAPH)
    assert find_platform(context.module, context.views).name == platform


@pytest.mark.parametrize(
    "caller",
    [
        "call(%x), to_apply=%run",
        "async-done(%started), calls=%run",
        "conditional(%p, %x, %x), true_computation=%run, false_computation=%other",
        "while(%x), condition=%still, body=%run",
    ],
)
def test_marks_of_what_is_called(read: Callable[..., Context], caller: str) -> None:
    """A called computation, a loop's body or a branch may hold a single row with a mark."""
    text = f"""HloModule m, is_scheduled=true

%run (a: f32[8]) -> f32[8] {{
  %a = f32[8]{{0}} parameter(0)
  ROOT %n = f32[8]{{0}} negate(%a), backend_config={{"operation_queue_id":"0"}}
}}

%other (b: f32[8]) -> f32[8] {{
  ROOT %b = f32[8]{{0}} parameter(0)
}}

%still (c: f32[8]) -> pred[] {{
  %c = f32[8]{{0}} parameter(0)
  ROOT %p.1 = pred[] constant(false)
}}

ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
  %p = pred[] constant(true)
  {"%started = ((f32[8]{0}), f32[8]{0}) async-start(%x), calls=%run" if "async" in caller else ""}
  ROOT %r = f32[8]{{0}} {caller}
}}
"""
    context = read(text, GRAPH)
    platform = find_platform(context.module, context.views)
    assert (platform.name, platform.mark) == ("gpu", "operation_queue_id")


@pytest.mark.parametrize(
    ("text", "alignment"),
    [
        (TEXT, 64),
        (TEXT.replace("FUSED", "parallel_fusion.1"), 16),
        (TEXT.replace("negate(%f)", 'custom-call(%f, %f), custom_call_target="__onednn$matmul"'), 16),
    ],
)
def test_older_compilers_for_cpu_aligned_less(read: Callable[..., Context], text: str, alignment: int) -> None:
    context = read(text, GRAPH)
    assert find_platform(context.module, context.views).alignment(0) == alignment


def estimated(cycles: int, more: str = "") -> str:
    config = f'{{"window_config":{{"estimated_cycles":"{cycles}"{more}}}}}'
    text = TPU.replace("KIND", f"kLoop, backend_config={config}")
    row = next(line for line in text.splitlines() if "backend_config" in line)
    return text.replace(row, row.replace("ROOT ", "").replace("%x", "%twin") + "\n" + row)


@pytest.mark.parametrize(
    ("text", "alignment"),
    [
        (estimated(1826), 512),
        (estimated(2120), 32),
        (estimated(2300), 32),
        (estimated(1826, ',"megacore_config":{}'), 32),
        (estimated(2120).replace("%x = f32[8]{0:T(128)}", "%x = f32[8]{0:T(128)S(3)}"), 512),  # v4 alone has this space
        (estimated(5000), 512),
    ],
)
def test_the_generation_of_a_tpu_decides_how_tables_are_rounded(
    read: Callable[..., Context], text: str, alignment: int
) -> None:
    context = read(text, GRAPH)
    assert find_platform(context.module, context.views).table_alignment == alignment


def test_recent_compilers_for_tpu_do_not_use_allocations_again(read: Callable[..., Context]) -> None:
    for text, reuses in ((estimated(5000), True), (estimated(5000, ',"buffering_level":"2"'), False)):
        context = read(text, GRAPH)
        assert find_platform(context.module, context.views).reuses_allocations is reuses
