"""`show`: an instruction in a block, its operands and users, and the paths between two."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.formats.terminal import render_table
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Value
from hlo_inspect.report.units import format_value
from tests.tables import column

DATA = Path(__file__).parents[1] / "data"

STEP = """HloModule step, is_scheduled=true, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

scaled {
  p.0 = f32[8]{0} parameter(0)
  p.1 = f32[] parameter(1)
  tenth = f32[] constant(0.1)
  less = f32[] subtract(p.1, tenth)
  wide = f32[8]{0} broadcast(less), dimensions={}
  ROOT product = f32[8]{0} multiply(p.0, wide)
}

body {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[8]{0} add(x, x)
  ROOT t = (s32[], f32[8]{0}) tuple(next, twice)
}

condition {
  c = (s32[], f32[8]{0}) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  limit = s32[] constant(5)
  ROOT less.1 = pred[] compare(j, limit), direction=LT
}

ENTRY main {
  w = f32[8,4]{1,0} parameter(0), metadata={op_name="weights['w1']"}
  v = f32[8]{0} parameter(1), metadata={op_name="x"}
  zero = s32[] constant(0)
  start = (s32[], f32[8]{0}) tuple(zero, v)
  loop = (s32[], f32[8]{0}) while(start), condition=condition, body=body
  out = f32[8]{0} get-tuple-element(loop), index=1
  gather = f32[8,16]{1,0} all-gather(w), replica_groups={{0,1,2,3}}, dimensions={1}, channel_id=1, use_global_device_ids=true
  n = f32[] constant(2)
  fusion.1 = f32[8]{0} fusion(out, n), kind=kLoop, calls=scaled
  dot.4 = f32[16]{0} dot(fusion.1, gather), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={METADATA}
  q = f32[] constant(0)
  total = f32[] reduce(dot.4, q), dimensions={0}, to_apply=add
  k = s32[] parameter(2)
  ROOT result = (f32[8,4]{1,0}, f32[]) tuple(w, total)
}
""".replace("METADATA", 'op_name="jit(step)/jvp(layer)/dot_general" source_file="/train/model.py" source_line=12')

TWO = """HloModule m
f {
  p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p)
}
ENTRY e {
  p = f32[2] parameter(0)
  ROOT c = f32[2] call(p), to_apply=f
}
"""


def show(name: str, text: str | Path = STEP, **asked: object) -> Report:
    return hlo_inspect.inspect(text, "show", name=name, **asked)  # type: ignore[arg-type]


def block(report: Report) -> dict[str, str]:
    return {row.label: headline_text(row).replace("\u00a0", " ") for row in report.headline}


def neighbours(report: Report) -> tuple[set[Value], set[Value]]:
    return set(column(report.table("feeds"), "name")), set(column(report.table("reads"), "name"))


def test_the_block_says_what_an_instruction_is() -> None:
    said = block(show("dot.4", profile="h100-sxm"))
    assert said[""] == "dot.4: dot on line 45, in the entry main"
    assert said["result"] == "f32[16], 64 B"
    assert said["operands"] == "fusion.1 f32[8], gather f32[8,16]"
    assert block(show("fusion.1"))["operands"] == "out (of loop) f32[8], n f32[]"
    assert said["attributes"] == "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    assert said["runs"] == "1 in a step"
    assert said["costs"].startswith("256 FLOP, 608 B accessed")  # 2 x 8 x 16; 4 x (8 + 128 + 16)
    assert said["phase"] == "forward, by its op_name"
    assert said["op_name"] == "jit(step) / jvp(layer) / dot_general"
    assert said["source"] == "/train/model.py:12"
    assert said["used by"] == "total"
    assert said["from"] == "param 0 weights['w1'] → gather → dot.4"
    assert said["and from"] == "param 1 x → loop → fusion.1 → dot.4"
    assert said["time"].startswith("bound 0.181 ns on h100-sxm, bound by memory")  # 608 B at 3352 GB/s


def test_a_collective_in_words() -> None:
    # 128 bytes of each of 4 devices: each sends them to 3 others
    assert block(show("gather"))["groups"] == "1 group of 4 devices along d0: {{0,1,2,3}}; takes 128 B, sends 384 B"


def test_groups_of_replicas_say_so() -> None:
    """With a channel and without global ids the ids are those of replicas: one replica of four partitions is four devices."""
    text = (
        "HloModule m, num_partitions=4\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(a, b)\n}\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n"
        "  ROOT r = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add\n}\n"
    )
    said = block(hlo_inspect.inspect(text, "show", name="r"))["groups"]
    assert said.startswith("1 group of 4 devices along d0: {{0}} (ids of replicas, each with all its partitions)")


def test_groups_of_several_sizes_are_counted() -> None:
    text = (
        "HloModule m, num_partitions=5\n\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        "  ROOT z = f32[] add(x, y)\n}\n\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-reduce(p), "
        "channel_id=1, replica_groups={{0,1,2},{3},{4}}, use_global_device_ids=true, to_apply=add\n}\n"
    )
    said = block(hlo_inspect.inspect(text, "show", name="r"))["groups"]
    assert said.startswith("3 groups of up to 3 devices")


def test_the_title_counts_operands_and_users() -> None:
    """More operands than are kept, and one reader: only of the operands there are more."""
    operands = "".join(f"  p{number} = f32[] parameter({number})\n" for number in range(2_100))
    names = ", ".join(f"p{number}" for number in range(2_100))
    shapes = ", ".join(["f32[]"] * 2_100)
    using = 'ROOT o = token[] custom-call(t), custom_call_target="x"'
    text = f"HloModule m\n\nENTRY e {{\n{operands}  t = ({shapes}) tuple({names})\n  {using}\n}}\n"
    titles = {table.name: table.title for table in hlo_inspect.inspect(text, "show", name="t").tables}
    assert titles["feeds"] == "Operands and their operands, within 2 steps: 2,000 or more instructions"
    assert titles["reads"] == "Users and their users, within 2 steps: 1 instruction"


def test_a_loop_is_made_of_its_start_and_of_its_body() -> None:
    feeds, reads = neighbours(show("loop", depth=1))
    assert feeds == {"zero", "v", "next", "twice"}
    assert reads == {"next", "twice", "fusion.1"}
    said = block(show("twice"))
    assert said["runs"] == "5 in a step, in loop (5 iterations, line 40)"
    assert said["from"] == "param 1 x → loop → twice"


def test_a_fusion_is_one_line() -> None:
    report = show("fusion.1", depth=1)
    assert block(report)["computes"] == "loop * (2 - 0.1)"
    assert neighbours(report) == ({"loop", "n"}, {"dot.4"})
    assert column(show("dot.4", depth=1).table("feeds"), "expression") == ["loop * (2 - 0.1)", None]


def test_inside_of_a_fusion_its_instructions_are_shown() -> None:
    report = show("product", depth=1)
    assert block(report)[""] == "product: multiply on line 15, in scaled, which fusion.1 (line 44) calls"
    assert neighbours(report) == ({"loop", "wide"}, {"dot.4"})


def test_an_alias_of_a_value_has_the_neighbours_of_the_value() -> None:
    assert neighbours(show("out", depth=1)) == ({"loop"}, {"twice", "fusion.1"})
    assert neighbours(show("w", depth=1)) == (set(), {"gather"})
    assert block(show("w"))["output"] == "of the program at {0}"
    assert block(show("total"))["output"] == "of the program at {1}"


def test_instructions_that_the_entry_does_not_reach_have_neighbours() -> None:
    """A computation that is applied to elements, and the condition of a loop."""
    assert neighbours(show("sum", depth=1)) == ({"a", "b"}, set())
    assert neighbours(show("less.1")) == ({"limit", "c"}, set())


def test_depth() -> None:
    assert neighbours(show("dot.4", depth=0)) == (set(), set())
    assert column(show("dot.4", depth=3).table("feeds"), "name") == ["fusion.1", "gather", "loop", "n", "w", "v", "twice"]
    assert column(show("dot.4", depth=3).table("feeds"), "steps") == [1, 1, 2, 2, 2, 3, 3]


def test_a_parameter_with_the_finding_that_names_it() -> None:
    report = show("mask", DATA / "cpu/sgd_unused.after.txt")
    assert block(report)["parameter"] == 'number 4, mask, divided ("d0",), not donated: no output has its shape and type'
    assert [(finding.rule, finding.message) for finding in report.findings] == [("HI102", "no instruction reads parameter 4")]
    assert show("x", DATA / "cpu/sgd_unused.after.txt").findings == ()


def test_live_ranges_and_times() -> None:
    said = block(show("all-reduce-start", DATA / "gpu/collectives.after.txt", profile="h100-sxm"))
    assert said["memory"].startswith("256 B live from 6 to 24")
    assert said["time"].startswith("bound 0.569 ns on h100-sxm, over nvlink")  # 256 B at 450 GB/s, reduced by the switch


@pytest.mark.parametrize(
    "asked", ["dot.4", "%dot.4", "45", "dot", "d*.4", "*layer*", "jit(step)/jvp(layer)/dot_general", "dot.4{}", "dot.* × 1"]
)
def test_ways_to_name_an_instruction(asked: str) -> None:
    assert column(show(asked).table("show"), "name") == ["dot.4"]


def test_several_that_fit_are_listed() -> None:
    report = show("constant")
    assert column(report.table("show"), "name") == ["tenth", "one", "limit", "zero", "n", "q"]
    assert column(report.table("show"), "computation") == ["scaled", "body", "condition", "main", "main", "main"]
    assert column(report.table("show"), "runs") == [None, 5, 6, 1, 1, 1]
    assert headline_text(report.headline[0]).startswith("6\u00a0instructions match 'constant'")


def test_a_name_in_several_computations() -> None:
    report = show("p", TWO)
    assert column(report.table("show"), "line") == [3, 7]
    assert headline_text(report.headline[0]).startswith("2\u00a0instructions are called p; ")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("dot.5", "step has no instruction 'dot.5'; did you mean 'dot.4'"),
        ("*nothing*", "no instruction of step fits '*nothing*', by its name, opcode or op_name"),
        ("body", "body is a computation of step (line 18), not an instruction"),
        ("2", "line 2 of step holds no instruction; the nearest is on line 4"),
        ("8", "line 8 of step holds no instruction; the nearest are on lines 6 and 10"),
        ("999", "line 999 is not one of step, lines 1 to 50"),
        ("99999999999999999999999999", "is not one of step"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_hint(asked: str, message: str) -> None:
    with pytest.raises(hlo_inspect.UsageError) as caught:
        show(asked)
    assert message in str(caught.value)


def test_paths_lead_from_one_instruction_to_another() -> None:
    report = show("v", to="total")
    assert column(report.table("ways"), "way") == ["param 1 x → loop → fusion.1 → dot.4 → total"]
    assert column(report.table("ways"), "lines") == ["37 → 40 → 44 → 45 → 47"]
    assert set(column(report.table("graph_nodes"), "name")) == {"v", "loop", "twice", "fusion.1", "dot.4", "total"}


def test_a_missing_path_and_a_backward_one_are_named() -> None:
    said = block(show("gather", to="fusion.1"))
    assert said == {"": "no path from gather to fusion.1, nor from fusion.1 to gather"}
    said = block(show("total", to="w"))
    assert said[""] == "no path from total to w; from w to total:"
    assert said["shortest"] == "3 steps: param 0 weights['w1'] → gather → dot.4 → total"


COLUMNS = {
    "show": "name opcode shape bytes expression computation runs runs_lower_bound flops accessed_bytes "
    "executed_wire_bytes executed_wire_bytes_lower_bound bound_s bound_s_lower_bound estimate_s estimate_s_lower_bound phase "
    "op_name source line",
    "operands": "number name shape",
    "users": "name opcode shape line",
    "feeds": "steps name opcode shape bytes into expression phase computation op_name source line",
    "reads": "steps name opcode shape bytes of expression phase computation op_name source line",
    "ways": "steps way lines",
    "graph_nodes": "node name opcode shape expression phase computation side steps line",
    "graph_edges": "source target",
}
"""The columns of each table, which scripts may rely on."""


def test_the_columns_of_all_tables() -> None:
    for report in (show("dot.4"), show("all-reduce-start", DATA / "gpu/collectives.after.txt")):
        columns_of_tables = {
            table.name: [column.name for column in report.table(table.name).columns]
            for table in report.tables
            if table.name in COLUMNS
        }
        assert columns_of_tables == {name: columns.split() for name, columns in COLUMNS.items()}


@pytest.mark.parametrize(
    ("dump", "name", "row"),
    [
        # 2 x 4096 x 8192 x 2048, and 2 x 4096 x 8192 of conversions
        (
            "gpu/gathered_matmul.after",
            "gemm_fusion_dot_general.6",
            {"opcode": "fusion", "runs": 1, "flops": 2 * 4096 * 2048 * 8192 + 2 * 4096 * 8192, "line": 83, "phase": "unknown"},
        ),
        # 4 x 8 numbers gathered from 2 devices, three times; 128 bytes are read and 256 written
        (
            "cpu/scan_fsdp.after",
            "all_gather.6",
            {"shape": "f32[8,8]", "bytes": 256, "runs": 3, "accessed_bytes": 3 * (128 + 256), "computation": "region_0.1_spmd"},
        ),
    ],
)
def test_the_row_of_an_instruction(dump: str, name: str, row: dict[str, Value]) -> None:
    (record,) = show(name, DATA / f"{dump}.txt").table("show").records()
    assert {column: record[column] for column in row} == row


def test_the_picture_shows_the_neighbours() -> None:
    report = show("fusion.1", depth=1)
    names = column(report.table("graph_nodes"), "name")
    assert names == ["fusion.1", "n", "loop", "dot.4"]
    edges = {(names[int(source)], names[int(target)]) for source, target in report.table("graph_edges").rows}  # type: ignore[arg-type]
    assert edges == {("n", "fusion.1"), ("loop", "fusion.1"), ("fusion.1", "dot.4")}
    of_value = show("out", depth=1)  # makes no array itself: it stands between the maker and the reader of one
    names = column(of_value.table("graph_nodes"), "name")
    edges = {(names[int(source)], names[int(target)]) for source, target in of_value.table("graph_edges").rows}  # type: ignore[arg-type]
    assert edges == {("loop", "out"), ("out", "twice"), ("out", "fusion.1")}


def test_names_of_a_dump_do_not_steer_the_page() -> None:
    text = STEP.replace("jit(step)/jvp(layer)/dot_general", "a\\033[31m<b>|`{evil}")
    page = StringIO()
    render_table([show("dot.4", text)], page, RenderOptions(width=80))
    assert "\033" not in page.getvalue()


def test_equal_fusions_have_neighbours_of_their_own() -> None:
    """The values of the second fused computation are those of the first one between other arguments."""
    fused = "{0} {{\n  {0}.p = f32[8]{{0}} parameter(0)\n  {0}.n = f32[8]{{0}} negate({0}.p)\n"
    fused += "  ROOT {0}.t = f32[8]{{0}} tanh({0}.n)\n}}\n\n"
    text = "HloModule m\n\n" + fused.format("one") + fused.format("other")
    text += "ENTRY e {\n  x = f32[8]{0} parameter(0)\n  a = f32[8]{0} fusion(x), kind=kLoop, calls=one\n"
    text += "  ROOT b = f32[8]{0} fusion(a), kind=kLoop, calls=other\n}\n"
    assert neighbours(show("one.p", text)) == ({"x"}, {"one.n", "one.t"})
    assert neighbours(show("other.p", text)) == ({"a", "x"}, {"other.n", "other.t"})


@pytest.mark.parametrize(
    ("dump", "profile", "part", "whole", "words"),
    [
        ("cpu/adamw_step.after", None, "bytes", "cost.executed_bytes_accessed", "accessed in a step, {} of the step's bytes"),
        ("cpu/adamw_step.before", None, "flops", "cost.executed_flops", "as written in a step, {} of the step's FLOPs"),
        ("gpu/gathered_matmul.after", "h100-sxm", "estimate_s", "time.estimate_step_s", "in a step, {} of the step's estimate"),
    ],
)
def test_the_share_of_an_instruction_says_of_what(dump: str, profile: str | None, part: str, whole: str, words: str) -> None:
    """Before, a share of time or FLOPs was called one of bytes."""
    report = hlo_inspect.inspect(DATA / f"{dump}.txt", ("top", "cost"), profile=profile)
    first = report.table("kernels").records()[0]
    costs = block(hlo_inspect.inspect(DATA / f"{dump}.txt", "show", name=str(first["line"]), profile=profile))["costs"]
    value, total = first[part], report.facts[whole]
    assert isinstance(value, int | float)
    assert isinstance(total, int | float)
    assert words.format(format_value(value / total, "share")) in costs
