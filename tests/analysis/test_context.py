"""The context: every analysis of a module, each computed once and on first use only."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.devices.mesh_axes import parse_mesh

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


def test_analyses_of_a_small_module(read: Callable[[str], Context]) -> None:
    context = read(TEXT)
    assert context.device_counts.devices == 2
    assert context.shapes_are == "per_device"
    assert (len(context.interface.parameters), len(context.interface.outputs)) == (1, 1)
    assert [fusion.name for fusion in context.fusions] == ["f"]
    assert context.custom_call_targets == {"next": 1}
    assert [collective.start.name for collective in context.collectives] == ["r"]


def test_a_given_mesh_lends_its_names(read: Callable[[str], Context]) -> None:
    module = read(TEXT).module
    assert Context(module).axes == ["d0"]
    assert Context(module, options=ParsedOptions(mesh=parse_mesh("data=2"))).axes == ["data"]
