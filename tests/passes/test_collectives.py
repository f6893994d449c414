"""The command `collectives`: totals, rows and groups of one small module, findings, and what cannot be known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.figure import Quantity, add
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from tests.tables import columns, totals

TEXT = """HloModule m, is_scheduled=true, num_partitions=4

%max (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(%a, %b)
}

%body (s: (f32[8])) -> (f32[8]) {
  %s = (f32[8]{0}) parameter(0)
  %v = f32[8]{0} get-tuple-element(%s), index=0
  %inside = f32[8]{0} all-reduce(%v), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%max
  ROOT %t = (f32[8]{0}) tuple(%inside)
}

%never (s: (f32[8])) -> pred[] {
  %s = (f32[8]{0}) parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %main (p: (f32[8])) -> f32[8] {
  %p = (f32[8]{0}) parameter(0)
  %w = (f32[8]{0}) while(%p), condition=%never, body=%body
  %v = f32[8]{0} get-tuple-element(%w), index=0
  %g = (f32[8]{0}, f32[32]{0}) all-gather-start(%v), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, GLOBAL
  %d = f32[32]{0} all-gather-done(%g)
  %e = f32[8]{0} all-to-all(%v), channel_id=3, replica_groups={{0,1},{2,3}}, dimensions={0}
  %c = f32[8]{0} collective-permute(%e), channel_id=4, source_target_pairs={{0,1},{1,0}}
  %tok = token[] after-all()
  %send = (f32[8]{0}, u32[], token[]) send(%c, %tok), channel_id=5
  %sent = token[] send-done(%send), channel_id=5
  ROOT %out = f32[8]{0} negate(%c)
}
""".replace("GLOBAL", 'use_global_device_ids=true, metadata={op_name="jit(f)/gather" source_file="a.py" source_line=3}')


def collectives(text: str) -> Report:
    return hlo_inspect.inspect(text, ("collectives",))


def one(line: str, header: str = "") -> Report:
    entry = f"ENTRY %main (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  ROOT %c = {line}\n}}\n"
    return collectives(f"HloModule m{header}\n\n{entry}")


def test_facts() -> None:
    """32 bytes each: reduced over 2 (32 on the wire), gathered from 4 (96), exchanged over 2 (16), sent on (32)."""
    facts = {name: value for name, value in collectives(TEXT).facts.items() if not name.startswith(("module.", "mesh."))}
    assert facts.pop("collectives.expected_reduce_scatter_count") == 0
    facts = {name: value for name, value in facts.items() if ".ex" not in name}
    phases = {name: facts.pop(name) for name in list(facts) if ".phase." in name}
    assert {name: value for name, value in phases.items() if value} == {
        "collectives.phase.unknown.count": 4,
        "collectives.phase.unknown.operand_bytes": 128,
    }
    of_kind = {name: facts.pop(name) for name in list(facts) if name.split(".")[1].split("-")[0] in {"all", "reduce", "ragged"}}
    assert facts == {
        "collectives.count": 4,
        "collectives.operand_bytes": 128,
        "collectives.result_bytes": 224,
        "collectives.wire_bytes": 176,
        "collectives.async_count": 1,
        "collectives.collective-permute.count": 1,
        "collectives.collective-permute.operand_bytes": 32,
        "collectives.collective-broadcast.count": 0,
        "collectives.collective-broadcast.operand_bytes": 0,
        "collectives.collective-reduce.count": 0,
        "collectives.collective-reduce.operand_bytes": 0,
        "collectives.send.count": 1,
        "collectives.recv.count": 0,
        "collectives.group_size.2.count": 2,
        "collectives.group_size.2.operand_bytes": 64,
        "collectives.group_size.4.count": 1,
        "collectives.group_size.4.operand_bytes": 32,
    }
    counts = {
        name.removeprefix("collectives.").removesuffix(".count"): v for name, v in of_kind.items() if name.endswith("count")
    }
    assert counts == {"all-reduce": 1, "all-gather": 1, "reduce-scatter": 0, "all-to-all": 1, "ragged-all-to-all": 0}


def test_facts_of_a_step() -> None:
    """The runs of the loop are unknown: its condition never holds, but nothing counts up to it. The bound is one run."""
    facts = {name: value for name, value in collectives(TEXT).facts.items() if "executed" in name and value != 0}
    alone = (("all-gather", 32, 96), ("all-to-all", 32, 16), ("collective-permute", 32, 32))
    assert facts == {
        "collectives.executed_count": None,
        "collectives.executed_count.lower_bound": 4,
        "collectives.executed_operand_bytes": None,
        "collectives.executed_operand_bytes.lower_bound": 4 * 32,
        "collectives.executed_wire_bytes": None,
        "collectives.executed_wire_bytes.lower_bound": 32 + 96 + 16 + 32,
        **bounds("collectives.all-reduce", 1, 32, 32),
        **{f"collectives.{kind}.executed_count": 1 for kind, _, _ in alone},
        **{f"collectives.{kind}.executed_operand_bytes": size for kind, size, _ in alone},
        **{f"collectives.{kind}.executed_wire_bytes": size for kind, _, size in alone},
        "collectives.send.executed_count": 1,
        **bounds("collectives.axis.d1", 1 + 1 + 1, 96, 32 + 16 + 32),
        "collectives.axis.d0,d1.executed_count": 1,
        "collectives.axis.d0,d1.executed_operand_bytes": 32,
        "collectives.axis.d0,d1.executed_wire_bytes": 96,
        **bounds("collectives.phase.unknown", 4, 128, 176),
    }


def bounds(group: str, count: int, operand_bytes: int, wire_bytes: int) -> dict[str, int | None]:
    """Return the facts of one step of a group of which a part is unknown."""
    figures = {"count": count, "operand_bytes": operand_bytes, "wire_bytes": wire_bytes}
    least: dict[str, int | None] = {f"{group}.executed_{name}.lower_bound": least for name, least in figures.items()}
    return dict.fromkeys(f"{group}.executed_{name}" for name in figures) | least


def test_rows() -> None:
    report = collectives(TEXT)
    assert columns(report.table("collectives"), "name", "kind", "dtype", "shape", "group_size", "form", "line") == [
        ("g", "all-gather", "f32", "f32[32]", 4, "all-gather-start", 25),
        ("inside", "all-reduce", "f32", "f32[8]", 2, "all-reduce", 12),
        ("c", "collective-permute", "f32", "f32[8]", None, "collective-permute", 28),
        ("e", "all-to-all", "f32", "f32[8]", 2, "all-to-all", 27),
        ("send", "send", "f32", "f32[8]", None, "send", 30),
    ]
    assert columns(report.table("collectives"), "operand_bytes", "result_bytes", "wire_bytes") == [
        (32, 128, 96),
        (32, 32, 32),
        (32, 32, 32),
        (32, 32, 16),
        (0, 0, 0),  # only the number of send and recv counts
    ]
    names = ("replica_groups", "source_target_pairs", "channel_id", "reduction", "is_async", "computation", "op_name", "source")
    assert columns(report.table("collectives"), *names)[:4] == [
        ("{{0,1,2,3}}", "", 2, "", True, "main", "jit(f)/gather", "a.py:3"),
        ("[2,2]<=[4]", "", 1, "max", False, "body", "", ""),
        ("", "{{0,1},{1,0}}", 4, "", False, "main", "", ""),
        ("{{0,1},{2,3}}", "", 3, "", False, "main", "", ""),
    ]


def test_the_total_is_that_of_the_facts() -> None:
    report = collectives(TEXT)
    table = report.table("collectives")
    total = totals(table)
    for name in ("operand_bytes", "result_bytes", "wire_bytes"):
        assert total[name] == report.facts[f"collectives.{name}"]


def test_by_kind_and_group() -> None:
    """The order is by bytes sent in a step; send and recv are in no total. The runs of the sum are unknown: 1 or more."""
    names = (
        "kind",
        "group_size",
        "sites",
        "runs",
        "runs_lower_bound",
        "executed_wire_bytes",
        "executed_wire_bytes_lower_bound",
    )
    assert columns(collectives(TEXT).table("collectives_by_kind"), *names) == [
        ("all-gather", 4, 1, 1, 1, 96, 96),
        ("all-reduce", 2, 1, None, 1, None, 32),
        ("collective-permute", None, 1, 1, 1, 32, 32),
        ("all-to-all", 2, 1, 1, 1, 16, 16),
    ]
    as_printed = columns(collectives(TEXT).table("collectives_by_kind"), "kind", "async_count", "operand_bytes", "wire_bytes")
    assert as_printed[:2] == [("all-gather", 1, 32, 96), ("all-reduce", 0, 32, 32)]


def test_send_and_recv_have_a_table_of_their_own() -> None:
    assert columns(collectives(TEXT).table("point_to_point"), "kind", "sites", "runs") == [("send", 1, 1)]


def test_the_first_rows_send_the_most_in_a_step() -> None:
    """8 and 32 floats gathered from 2: in a loop of 5 runs the small one sends 160 bytes, the large one outside 128."""
    text = """HloModule m, num_partitions=2

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  small = f32[16] all-gather(v), channel_id=1, use_global_device_ids=true, dimensions={0}, replica_groups={{0,1}}
  w = f32[8] slice(small), slice={[0:8]}
  ROOT t = (s32[], f32[8]) tuple(i, w)
}

condition {
  s = (s32[], f32[8]) parameter(0)
  ROOT c = pred[] constant(true)
}

ENTRY main {
  p = f32[32] parameter(0)
  q = (s32[], f32[8]) parameter(1)
  large = f32[64] all-gather(p), channel_id=2, use_global_device_ids=true, dimensions={0}, replica_groups={{0,1}}
  loop = (s32[], f32[8]) while(q), condition=condition, body=body, backend_config={"known_trip_count":{"n":"5"}}
  again = (s32[], f32[8]) while(loop), condition=condition, body=body.2, backend_config={"known_trip_count":{"n":"2"}}
  ROOT x = f32[8] get-tuple-element(again), index=1
}
"""
    start, end = text.index("body {"), text.index("condition {")
    text = text[:end] + text[start:end].replace("body {", "body.2 {") + text[end:]
    report = collectives(text)
    names = ("name", "runs", "executed_operand_bytes", "executed_wire_bytes", "operand_bytes")
    assert columns(report.table("collectives"), *names) == [
        ("small", 5, 160, 160, 32),
        ("large", 1, 128, 128, 128),
        ("small", 2, 64, 64, 32),
    ]
    of_groups = ("kind", "shape", "sites", "runs", "executed_operand_bytes", "executed_wire_bytes", "names")
    assert columns(report.table("collective_groups"), *of_groups) == [
        ("all-gather", "f32[16]", 2, 7, 224, 224, "small.* × 2"),
        ("all-gather", "f32[64]", 1, 1, 128, 128, "large"),
    ]
    assert columns(report.table("collectives"), "loop") == [("loop",), (None,), ("again",)]
    assert columns(report.table("collective_groups"), "loop") == [("2 loops",), (None,)]
    loops = columns(
        report.table("loops"), "loop", "parent", "trip_count", "runs", "collectives", "executed_wire_bytes", "known_from"
    )
    assert loops == [
        ("loop", "", 5, 5, 5, 160, "known_trip_count"),
        ("again", "", 2, 2, 2, 64, "known_trip_count"),
    ]


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


def test_a_row_names_the_loops_around_it_innermost_first() -> None:
    """A mean over 2 devices within 4 micro-batches of 3 layers: 12 runs."""
    state, trips = "(f32[8])", 'backend_config={"known_trip_count":{"n":"%d"}}'
    text = f"""HloModule m, num_partitions=2

layer {{
  x = {state} parameter(0)
  v = f32[8] get-tuple-element(x), index=0
  mean = f32[8] all-to-all(v), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}}
  ROOT y = {state} tuple(mean)
}}

batch {{
  x = {state} parameter(0)
  ROOT layers = {state} while(x), condition=more, body=layer, {trips % 3}
}}

more {{
  x = {state} parameter(0)
  ROOT c = pred[] constant(false)
}}

ENTRY main {{
  p = {state} parameter(0)
  ROOT batches = {state} while(p), condition=more, body=batch, {trips % 4}
}}
"""
    report = collectives(text)
    assert columns(report.table("collectives"), "name", "runs", "loop") == [("mean", 12, "layers < batches")]
    assert columns(report.table("collective_groups"), "runs", "loop") == [(12, "layers < batches")]
    runs = next(row for row in hlo_inspect.inspect(text, "show", name="mean").headline if row.label == "runs")
    assert headline_text(runs) == "12 in a step, in layers (3 iterations, line 12) < batches (4 iterations, line 22)"


def test_a_string_of_a_caller_names_nothing_that_it_calls() -> None:
    """Each page counts the same runs of the collective of %callee."""
    text = """HloModule m, replica_count=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%callee (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %ar = f32[8]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
}

ENTRY %main (x0: f32[8]) -> f32[8] {
  %x0 = f32[8]{0} parameter(0)
  %r = f32[8]{0} call(%x0), to_apply=%callee, frontend_attributes={note="it, calls=nothing"}
  ROOT %neg = f32[8]{0} negate(%r)
}
"""
    counts = [hlo_inspect.inspect(text, name).facts["collectives.executed_count"] for name in ("collectives", "summary")]
    assert counts == [1, 1]


def test_equal_collectives_of_all_branches_count_once() -> None:
    """Each of two branches sums 8 floats over 2 devices: one run, though no site is known to run."""
    branch = """BRANCH {
  v = f32[8] parameter(0)
  ROOT sum = f32[8] all-reduce(v), channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, to_apply=add
}

"""
    text = f"""HloModule m, num_partitions=2

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

{branch.replace("BRANCH", "yes")}{branch.replace("BRANCH", "no")}ENTRY main {{
  p = pred[] parameter(0)
  v = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, v, v), true_computation=yes, false_computation=no
}}
"""
    report = collectives(text)
    assert columns(report.table("collective_groups"), "sites", "runs", "executed_wire_bytes") == [(2, 1, 32)]
    assert columns(report.table("collectives_by_kind"), "sites", "runs", "executed_wire_bytes") == [(2, 1, 32)]
    assert columns(report.table("collectives"), "runs", "runs_lower_bound") == [(None, 0), (None, 0)]


def test_a_conditional_has_the_bounds_of_its_branches() -> None:
    """The first branch sums 8 floats over 2 devices, the second nothing; another 8 floats are summed in any case."""
    text = """HloModule m, num_partitions=2

yes {
  v = f32[8] parameter(0)
  ROOT sum = f32[8] all-reduce(v), channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, to_apply=add
}

no {
  ROOT v = f32[8] parameter(0)
}

ENTRY main {
  p = pred[] parameter(0)
  v = f32[8] parameter(1)
  w = f32[8] all-reduce(v), channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, to_apply=add
  ROOT c = f32[8] conditional(p, w, w), true_computation=yes, false_computation=no
}
"""
    report = collectives(text)
    reason = "c (line 16) runs only one of its branches, which differ"
    assert report.facts["collectives.executed_count"] is None
    assert report.facts["collectives.executed_count.lower_bound"] == 1
    assert f"collectives.executed_count: {reason}: 1 to 2" in report.notes
    assert f"collectives.all-reduce.executed_wire_bytes: {reason}: 32 to 64 B" in report.notes


def test_groups_that_differ_in_size_are_a_finding() -> None:
    report = one("f32[8]{0} all-to-all(%p), replica_groups={{0,1},{2,3,4,5}}, dimensions={0}")
    (finding,) = report.findings
    assert (finding.rule, finding.severity, finding.subject, str(finding.location)) == ("HI202", "info", "c", "<text>:5")
    assert "4 devices" in finding.message
    assert report.facts["collectives.group_size.4.count"] == 1
    assert "collectives.group_size.2.count" not in report.facts


@pytest.mark.parametrize("groups", ["{{0,1},{x}}", "{}"])
def test_unknown_groups_are_a_finding(groups: str) -> None:
    (finding,) = one(f"f32[8]{{0}} all-to-all(%p), replica_groups={groups}, dimensions={{0}}").findings
    assert (finding.rule, finding.subject, str(finding.location), finding.stake) == ("HI201", "c", "<text>:5", 32)


def test_groups_of_all_devices_have_the_size_of_the_header() -> None:
    report = one("f32[8]{0} all-to-all(%p), replica_groups={}, dimensions={0}", header=", replica_count=8")
    assert report.findings == ()
    assert report.facts["collectives.wire_bytes"] == 28


@pytest.mark.parametrize(
    ("line", "unknown", "why"),
    [
        (
            "f32[8]{0} ragged-all-to-all(%p, %p, %p, %p, %p, %p), replica_groups={{0,1}}",
            {"wire_bytes"},
            {"wire_bytes": "sends what its operands say at run time"},
        ),
        (
            "f32[8]{0} all-to-all(%p), replica_groups={}, dimensions={0}",
            {"wire_bytes"},
            {"wire_bytes": "the group size of c (line 5) is unknown"},
        ),
        (
            "f32[?]{0} collective-permute(%gone), source_target_pairs={{0,1}}",
            {"operand_bytes", "result_bytes", "wire_bytes", "collective-permute.operand_bytes"}
            | {"phase.unknown.operand_bytes"},
            {"operand_bytes": "the shape of c (line 5)", "wire_bytes": "the shape of c (line 5)"},
        ),
        (
            "f32[?]{0} all-to-all(%gone), replica_groups={{0,1}}, dimensions={0}",
            {"operand_bytes", "result_bytes", "wire_bytes", "all-to-all.operand_bytes", "group_size.2.operand_bytes"}
            | {"phase.unknown.operand_bytes"},
            {"operand_bytes": "the shape of c (line 5)"},
        ),
    ],
)
def test_unknown_figures_of_collectives_have_a_note(line: str, unknown: set[str], why: dict[str, str]) -> None:
    report = one(line)
    facts: dict[str, Any] = {
        name: value for name, value in report.facts.items() if name.startswith("collectives.") and ".ex" not in name
    }
    assert {name.removeprefix("collectives.") for name, value in facts.items() if value is None} == unknown
    for name in unknown:
        reasons = [note for note in report.notes if note.startswith(f"collectives.{name}: ")]
        assert reasons, name
        assert why.get(name, "") in reasons[0]


def test_no_collectives() -> None:
    report = one("f32[8]{0} negate(%p)")
    assert {value for name, value in report.facts.items() if name.startswith("collectives.")} == {0}
    assert report.table("collectives").rows == ()
    assert report.findings == ()


def test_a_module_without_entry_and_roots() -> None:
    """Its last computation is the entry, and the last instruction of that one the root, which nobody asked for here."""
    text = """HloModule no_signatures

region_0 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

main.7 {
  a = f32[16] parameter(0)
  b = f32[16] all-reduce(a), replica_groups={{0,1}}, to_apply=region_0
  d = f32[16] subtract(a, b)
}
"""
    report = hlo_inspect.inspect(text, "collectives")
    assert report.facts["collectives.operand_bytes"] == 64
    assert [row[0] for row in report.table("collectives").rows] == ["b"]
    both = hlo_inspect.inspect(text, ("collectives", "params"))
    assert (both.facts["collectives.count"], both.facts["outputs.bytes"]) == (1, 64)


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
