"""The command `collectives` on texts that are made: long bodies, many loops; and what is at stake."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.figure import Quantity, add
from tests.tables import columns


def test_the_bytes_of_a_collective_of_unknown_groups_are_at_stake() -> None:
    rows = "  p = f32[8] parameter(0)\n  ROOT c = f32[8] all-to-all(p), replica_groups={}, dimensions={0}\n"
    (finding,) = hlo_inspect.inspect(f"HloModule m\n\nENTRY e {{\n{rows}}}\n", "collectives").findings
    assert (finding.rule, finding.stake) == ("HI201", 8 * 4)


@pytest.mark.parametrize("command", ["collectives", "summary"])
def test_runs_of_a_loop_follow_its_trip_count_without_its_body(command: str) -> None:
    """5 runs of the outer body have 3 of the inner loop each.

    The inner body is 300 lines without a collective, of which `collectives` reads nothing.
    """
    state = "(f32[8], s32[])"
    adds = "\n".join(f"  %a{i} = f32[8] add(%a{i - 1}, %a{i - 1})" for i in range(1, 300))
    text = f"""HloModule m, num_partitions=2

%inner (x: {state}) -> {state} {{
  %x = {state} parameter(0)
  %a0 = f32[8] get-tuple-element(%x), index=0
{adds}
  %i = s32[] get-tuple-element(%x), index=1
  ROOT %y = {state} tuple(%a299, %i)
}}

%condition (c: {state}) -> pred[] {{
  %c = {state} parameter(0)
  ROOT %no = pred[] constant(false)
}}

%outer (o: {state}) -> {state} {{
  %o = {state} parameter(0)
  ROOT %v = {state} while(%o), condition=%condition, body=%inner, backend_config={{"known_trip_count":{{"n":"3"}}}}
}}

ENTRY %main (p: {state}) -> {state} {{
  %p = {state} parameter(0)
  ROOT %w = {state} while(%p), condition=%condition, body=%outer, backend_config={{"known_trip_count":{{"n":"5"}}}}
}}
"""
    loops = hlo_inspect.inspect(text, command).table("loops")
    assert columns(loops, "loop", "parent", "trip_count", "runs") == [("v", "w", 3, 15), ("w", "", 5, 5)]


def test_the_table_of_loops_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops in one another: the runs in each are added to those of the next loop around it, and to no other."""

    def nested(depth: int) -> str:
        shape, text = "(s32[], f32[4])", "HloModule m, num_partitions=2\n\n"
        trips = 'condition=cond, backend_config={"known_trip_count":{"n":"2"}}'
        sums = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
        text += sums + f"cond {{\n  p = {shape} parameter(0)\n  ROOT c = pred[] constant(true)\n}}\n"
        inner = "copy(p)"
        for i in reversed(range(depth)):
            lines = [f"p = {shape} parameter(0)", "i = s32[] get-tuple-element(p), index=0", f"w = {shape} {inner}"]
            lines += ["x = f32[4] get-tuple-element(w), index=1", f"r = f32[4] all-reduce(x), channel_id={i + 1}, to_apply=add"]
            lines += [f"ROOT t = {shape} tuple(i, r)"]
            text += f"body{i} {{\n  " + "\n  ".join(lines) + "\n}\n"
            inner = f"while(p), body=body{i}, {trips}"
        return text + f"ENTRY e {{\n  p = {shape} parameter(0)\n  ROOT w = {shape} {inner}\n}}\n"

    calls: list[int] = []

    def counting(a: Quantity, b: Quantity) -> Quantity:
        calls[-1] += 1
        return add(a, b)

    monkeypatch.setattr("hlo_inspect.graph.calls.add", counting)
    monkeypatch.setattr("hlo_inspect.passes.collectives.add", counting)
    for depth in (30, 60):
        calls.append(0)
        rows = hlo_inspect.inspect(nested(depth), "collectives").table("loops").records()
        assert max(int(row["collectives"] or 0) for row in rows) == sum(2**n for n in range(1, depth + 1))
    assert calls[1] < 2.5 * calls[0]


def test_a_program_before_partitioning_has_collectives_that_are_not_known() -> None:
    """The step all-reduces two gradients after partitioning; before it there is none."""
    data = Path(__file__).parents[1] / "data/cpu"
    for command in ("collectives", "summary"):
        before, after = (hlo_inspect.inspect(data / f"adamw_step.{stage}.txt", command) for stage in ("before", "after"))
        assert [row.parts[0] for row in before.headline if row.label == "collectives"] == [
            "?: this is the program before partitioning, which adds the collectives"
        ]
        assert "before partitioning" not in str(after.headline)
