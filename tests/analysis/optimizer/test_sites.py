"""Which input an output succeeds, and what guards it."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.graph import Input
from hlo_inspect.analysis.optimizer.sites import Region, Result, find_sites
from hlo_inspect.hlo.shapes import ArrayShape
from tests.analysis.optimizer.reading import entry_of, flow_of, written

ARRAY = ArrayShape("f32", (8,))
P, Q, C = "%p = f32[8]{0} parameter(0)", "%q = f32[8]{0} parameter(1)", "%c = pred[] parameter(2)"


def sites_of(*lines: str, outputs: int, given: bool) -> tuple[Region, list[str]]:
    flow, frame = flow_of(entry_of(P, Q, C, *lines))
    inputs: dict[Input, ArrayShape] = {(frame, n, ()): ARRAY for n in range(2)}
    results = [Result((n,), ARRAY, (frame, n, ()) if given else None) for n in range(outputs)]
    region = find_sites(flow, frame, inputs, results)
    return region, [f"{site.source[1]}: {written(flow, site.new)}" for site in region.sites]


def test_aliases_say_it() -> None:
    lines = ("%a = f32[8]{0} add(%p, %q)", "%n = f32[8]{0} negate(%q)", "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %n)")
    assert sites_of(*lines, outputs=2, given=True)[1] == ["0: add(p0, p1)", "1: negate(p1)"]


def test_else_the_expressions_do() -> None:
    lines = ("%a = f32[8]{0} add(%p, %q)", "%n = f32[8]{0} negate(%p)", "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %n)")
    assert sites_of(*lines, outputs=2, given=False)[1] == ["1: add(p0, p1)", "0: negate(p0)"]


def test_guards_are_assumed_everywhere() -> None:
    lines = (
        "%n = f32[8]{0} negate(%p)",
        "%s = f32[8]{0} select(%c, %n, %p)",
        "%f = f32[] convert(%c)",
        "%b = f32[8]{0} broadcast(%f), dimensions={}",
        "%m = f32[8]{0} multiply(%n, %b)",
        "%a = f32[8]{0} add(%q, %m)",
        "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%s, %a)",
    )
    region, found = sites_of(*lines, outputs=2, given=True)
    assert found == ["0: negate(p0)", "1: add(negate(p0), p1)"]
    assert list(region.guards.values()) == [True]


def test_a_guard_that_keeps_the_old_value_when_true() -> None:
    lines = ("%n = f32[8]{0} negate(%p)", "%s = f32[8]{0} select(%c, %p, %n)", "ROOT %t = (f32[8]{0}) tuple(%s)")
    region, found = sites_of(*lines, outputs=1, given=True)
    assert found == ["0: negate(p0)"]
    assert list(region.guards.values()) == [False]


def test_a_device_s_own_part_stands_for_the_whole() -> None:
    part = "%d = f32[2]{0} slice(%p), slice={[2:4]}"
    lines = (
        part,
        "%n = f32[2]{0} negate(%d)",
        "%g = f32[8]{0} all-gather(%n), dimensions={0}",
        "ROOT %t = (f32[8]{0}) tuple(%g)",
    )
    assert sites_of(*lines, outputs=1, given=True)[1] == ["0: negate(p0)"]


def test_two_parts_stay_apart() -> None:
    lines = (
        "%d = f32[2]{0} slice(%p), slice={[0:2]}",
        "%e = f32[2]{0} slice(%p), slice={[2:4]}",
        "%a = f32[2]{0} add(%d, %e)",
        "%g = f32[8]{0} all-gather(%a), dimensions={0}",
        "ROOT %t = (f32[8]{0}) tuple(%g)",
    )
    assert sites_of(*lines, outputs=1, given=True)[1] == ["0: add(slice(p0), slice(p0))"]
