"""HLO in the forms in which people quote it in public threads: retyped and shortened."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.table import Value

THREADS: dict[str, tuple[str, dict[str, Value]]] = {
    "jax#23543, a gather in f32 that is converted behind it": (
        "I see this in the compiled text:\n```\n"
        "%all-gather.5 = f32[4096,1024]{0,1} all-gather(f32[512,1024]{0,1} %param.2), channel_id=7, "
        "replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}, use_global_device_ids=true\n"
        "%convert.9 = bf16[4096,1024]{0,1} convert(f32[4096,1024]{0,1} %all-gather.5)\n```\nWhy is it not bf16?\n",
        {"collectives.all-gather.count": 1, "collectives.operand_bytes": 512 * 1024 * 4, "opcode.convert": 1},
    ),
    "pytorch/xla#1965, labels of buffers in a log": (
        "2020-05-04 09:05:40.719745: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76]      XLA label: "
        "%fusion.47 = u32[12582912,1]{1,0:T(8,128)} fusion(u32[]{:T(256)} %add.45, u32[]{:T(256)} %add.46....\n"
        "2020-05-04 09:05:40.719758: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76]      Size: 6.00G\n",
        {"fusions.count": 1, "opcode.fusion": 1, "collectives.count": 0},
    ),
    "xla#6750, an all-reduce in a loop": (
        "inside the body:\n\n    ROOT %tuple = (s32[], f32[128]{0}) tuple(%add, %all-reduce.2)\n    ...\n"
        "    %all-reduce.2 = f32[128]{0} all-reduce(%get-tuple-element.3), channel_id=1, replica_groups=[1,8]<=[8], "
        "use_global_device_ids=true, to_apply=%region_0.1\n",
        {"collectives.all-reduce.operand_bytes": 512, "collectives.group_size.8.count": 1, "opcode.tuple": 1},
    ),
    "jax#25010, two gathers of a diff": (
        "```diff\n"
        "-  %all-gather = bf16[1024,1024] all-gather(%convert.1), replica_groups={{0,4},{1,5},{2,6},{3,7}}\n"
        "+  %all-gather.1 = bf16[1024,1024] all-gather(%convert.2), replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}\n```\n",
        {"collectives.all-gather.count": 2, "collectives.all-gather.operand_bytes": 2 * 1024 * 512 * 2},
    ),
    "HighPerfLLMs2024#6, an all-reduce that is sliced": (
        "XLA gives `%all-reduce.3 = f32[64,32]{1,0} all-reduce(%dot.1), replica_groups={{0,1,2,3}}, to_apply=%add` followed by "
        "`%dynamic-slice.1 = f32[16,32]{1,0} dynamic-slice(%all-reduce.3, %i, %c), dynamic_slice_sizes={16,32}`.\n",
        {"collectives.wire_bytes": 12288, "opcode.dynamic-slice": 1},
    ),
    "xla#26987, a transpose of a parameter": (
        "> %param.1 = f32[2048,8192]{1,0} parameter(1)\n> %wrapped_transpose = f32[8192,2048]{1,0} fusion(%param.1), "
        "kind=kInput, calls=%wrapped_transpose_computation\n\nIt doubles the memory.\n",
        {"fusions.kind.kInput": 1, "opcode.parameter": 1, "params.count": None},
    ),
}
"""The thread, its text, and facts that a reader of it can count."""


@pytest.mark.parametrize("thread", THREADS)
def test_figures_of_lines_quoted_in_threads(thread: str) -> None:
    text, facts = THREADS[thread]
    (report,) = hlo_inspect.inspect_all(text.encode(), "summary")
    assert {name: report.facts[name] for name in facts} == facts


def test_lines_before_a_module_are_not_dropped() -> None:
    """In jax#15773 the lines of the question stand before the dump."""
    text = (
        "This copy is odd: %copy.3 = f32[1024]{0} copy(f32[1024]{0} %p)\n\nThe whole text:\n\n"
        "HloModule jit_f\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"
    )
    quoted, module = hlo_inspect.inspect_all(text.encode(), "summary")
    assert (quoted.facts["opcode.copy"], module.facts["module.name"]) == (1, "jit_f")
    note = "the text also holds 1 partial module; inspect_all returns a report for each"
    assert hlo_inspect.inspect(text.encode(), "summary").notes[-1] == note
