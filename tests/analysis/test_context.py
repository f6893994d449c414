"""The context: every analysis of a module, each computed once and on first use only."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.context import Context

TEXT = """HloModule test, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %f = f32[4]{0} fusion(%p, %p), kind=kLoop, calls=%add
  %r = f32[4]{0} all-reduce(%f), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add
  ROOT %c = f32[4]{0} custom-call(%r), custom_call_target="next"
}
"""
ANALYSES = {"device_counts", "shapes_are", "interface", "fusions", "custom_call_targets", "collectives"}


def test_each_analysis_is_computed_once(read: Callable[[str], Context]) -> None:
    context = read(TEXT)
    assert ANALYSES.isdisjoint(vars(context))
    first = {name: getattr(context, name) for name in sorted(ANALYSES)}
    assert all(getattr(context, name) is value for name, value in first.items())
