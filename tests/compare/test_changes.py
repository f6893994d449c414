"""Changes of instructions, collectives, loops and parameters, on small modules written for it."""

from __future__ import annotations

import re

import pytest

from hlo_inspect.compare.changes import Aspect, ModuleChange
from hlo_inspect.compare.comparison import compare
from hlo_inspect.compare.edits import Edit, EditPlace
from hlo_inspect.compare.explanation import Explanation
from hlo_inspect.compare.instruction_changes import Regrouping
from hlo_inspect.compare.row_matching import RowMatcher
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.report.page import input_details
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.request import Request
from tests.compare.sides import changes, dump, module, words
from tests.linear_time import assert_linear

LOOP = """HloModule m, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

body {
  b = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[8] get-tuple-element(b), index=1
  IN_LOOP
  ROOT t = (s32[], f32[8]) tuple(next, LAST)
}

condition {
  c = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  k = s32[] constant(10)
  ROOT l = pred[] compare(j, k), direction=LT
}

ENTRY e {
  a = f32[8] parameter(0)
  BEFORE
  o = s32[] constant(0)
  u = (s32[], f32[8]) tuple(o, FIRST)
  w = (s32[], f32[8]) while(u), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""
REDUCE = "all-reduce({}), replica_groups={{{{0,1,2,3}}}}, channel_id=1, use_global_device_ids=true, to_apply=add"


def loop(*, inside: bool) -> str:
    """Write an all-reduce in the body of a loop, or before the loop."""
    text = LOOP.replace("LAST", "g" if inside else "v").replace("FIRST", "a" if inside else "g")
    text = text.replace("  IN_LOOP\n", f"  g = f32[8] {REDUCE.format('v')}\n" if inside else "")
    return text.replace("  BEFORE\n", "" if inside else f"  g = f32[8] {REDUCE.format('a')}\n")


def test_a_collective_that_moves_into_a_loop() -> None:
    """All-reduce sends 2·3/4 of its 32 bytes: 48 once, 480 in ten runs."""
    old, new = module(loop(inside=False)), module(loop(inside=True))
    (change,) = changes(old, new)
    assert (change.area, change.what, change.aspects, change.size) == (
        "collectives",
        "moved",
        (Aspect("runs", "1", "10"),),
        432,
    )


MERGED = """HloModule m, num_partitions=2

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[8] parameter(0)
  b = f32[16] parameter(1)
  BODY
  ROOT t = (f32[8], f32[16]) tuple(c, d)
}
"""
APART = """c = f32[8] all-reduce(a), replica_groups={{0,1}}, channel_id=1, to_apply=add
  d = f32[16] all-reduce(b), replica_groups={{0,1}}, channel_id=2, to_apply=add"""
TOGETHER = """both = (f32[8], f32[16]) all-reduce(a, b), replica_groups=[1,2]<=[2], channel_id=1, to_apply=add
  c = f32[8] get-tuple-element(both), index=0
  d = f32[16] get-tuple-element(both), index=1"""


def test_collectives_that_are_merged_or_split() -> None:
    apart, together = module(MERGED.replace("BODY", APART)), module(MERGED.replace("BODY", TOGETHER))
    (merged,), (split,) = changes(apart, together), changes(together, apart)
    assert (merged.what, split.what) == ("2 merged in one", "split in 2")
    assert merged.size == split.size == 0


def test_groups_that_mean_the_same_are_no_change() -> None:
    text = MERGED.replace("BODY", TOGETHER)
    assert changes(module(text), module(text.replace("[1,2]<=[2]", "{{0,1}}"))) == []


def test_operands_in_another_order_are_no_change_of_an_addition_and_one_of_a_subtraction() -> None:
    text = "HloModule m\n\nENTRY e {\n  a = f32[8] parameter(0)\n  b = f32[8] parameter(1)\n  ROOT c = f32[8] add(a, b)\n}\n"
    assert changes(module(text), module(text.replace("(a, b)", "(b, a)"))) == []
    text = text.replace("add", "subtract")
    (change,) = changes(module(text), module(text.replace("(a, b)", "(b, a)")))
    assert change.aspects == (Aspect("operand 0", "a", "b"), Aspect("operand 1", "b", "a"))


def test_a_parameter_in_front_of_the_others_is_the_one_that_is_new() -> None:
    rows = "  a = f32[8] parameter(0)\n  b = f32[4] parameter(1)\n  ROOT t = (f32[8], f32[4]) tuple(a, b)\n"
    text = f"HloModule m\n\nENTRY e {{\n{rows}}}\n"
    more = text.replace("parameter(1)", "parameter(2)").replace("parameter(0)", "parameter(1)")
    more = more.replace("ENTRY e {\n", "ENTRY e {\n  z = f32[2] parameter(0)\n")
    (change,) = changes(module(text), module(more))
    assert (change.area, change.what, change.kind, change.size) == ("parameters", "new", "f32[2] parameter", 8)


@pytest.mark.parametrize("name", ["cpu/scan_fsdp.after.txt", "tpu/bf16_master.after.txt", "gpu/collectives.after.txt"])
def test_other_names_are_no_change(name: str) -> None:
    """Each name has `.other` behind it; names of computations, too."""
    text = dump(name)
    assert "%" in text
    other = re.sub(r"%([A-Za-z_][\w.\-]*)", r"%\1.other", text)
    old, new = module(text), module(other)
    comparison = compare(old, new)
    assert changes(old, new) == []
    assert not comparison.is_different
    assert comparison.report.facts["diff.same_program"]
    assert comparison.report.facts["diff.same_schedule"]


PAIRS = (
    ("cpu/adamw_step.after.txt", "jax_0_5_0/adamw_step.after.txt"),
    ("cpu/scan_fsdp.after.txt", "cpu/scan_forward.after.txt"),
    ("cpu/collectives.before.txt", "cpu/collectives.after.txt"),
)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_there_and_back_are_mirror_images(old: str, new: str) -> None:
    """The differences of facts are those of the two reports."""
    first, second = module(dump(old)), module(dump(new))
    forward, back = compare(first, second).report, compare(second, first).report
    facts, mirrored = ({str(row[0]): row[1:5] for row in report.table("facts").rows} for report in (forward, back))
    assert facts.keys() == mirrored.keys()
    for name, (before, after, difference, _) in facts.items():
        assert mirrored[name][:2] == (after, before)
        assert mirrored[name][2] == (-difference if isinstance(difference, int | float) else None)
        assert before == first.report.facts[name]
        assert after == second.report.facts[name]
    shared = set(first.report.facts) & set(second.report.facts)
    assert {name for name in shared if first.report.facts[name] != second.report.facts[name]} <= facts.keys()
    areas = [sorted(str(row[0]) for row in report.table("changes").rows) for report in (forward, back)]
    assert areas[0]
    assert set(areas[0]) == set(areas[1])


def test_the_first_lines_name_the_cause() -> None:
    text = dump("cpu/adamw_step.after.txt")
    without = re.sub(r" input_output_alias=\{.*?\}, (?=[a-z_]+=)", " ", text, count=1)
    assert without != text
    (comparison,) = Comparisons(Request()).compare(ComparedInput(text), ComparedInput(without))
    rows = [
        "".join(part if isinstance(part, str) else str(part.value) for part in row.parts) for row in comparison.report.headline
    ]
    assert rows[0] == "different programs"
    assert rows[1].startswith("memory ")  # the step first, then why
    assert rows[1].endswith("; sent unchanged")
    assert any("not donated any more" in row for row in rows[2:4])
    assert ": not donated any more" in words(changes(module(text), module(without))[0])


def test_a_loop_that_carries_another_value_is_still_that_loop() -> None:
    """Recomputation in a scan: the loop of the backward pass carries fewer values, and no loop is new or gone."""
    differences = changes(module(dump("memory/cpu_scan.hlo")), module(dump("memory/cpu_scan_remat.hlo")))
    assert differences
    assert [change for change in differences if change.area == "loops"] == []


def test_checkpoint_that_changes_the_order_alone() -> None:
    """XLA joins what is computed twice in one computation: of unrolled layers nothing but the schedule is another one."""
    comparison = compare(module(dump("memory/cpu_unrolled.hlo")), module(dump("memory/cpu_unrolled_remat.hlo")))
    assert comparison.report.facts["diff.same_program"]
    assert not comparison.report.facts["diff.same_schedule"]
    assert comparison.is_different
    names = [row[0] for row in comparison.report.table("facts").rows]
    assert "memory.peak_bytes" in names


def test_parameters_of_another_type_are_one_change() -> None:
    first = changes(module(dump("memory/cpu_scan.hlo")), module(dump("memory/cpu_scan_bf16.hlo")))[0]
    assert (first.area, first.aspects, len(first.names)) == ("parameters", (Aspect("type", "f32", "bf16"),), 3)


def test_a_sharding_that_one_text_does_not_print_is_no_change() -> None:
    """The newer compiler printed none; a sharding that a text before partitioning lacks is one that the program lacks."""
    optimized = (
        "HloModule m, is_scheduled=true, num_partitions=2\n\nENTRY e_spmd {\n  ROOT p = f32[8] parameter(0)SHARDING\n}\n"
    )
    other = "HloModule m, num_partitions=2\n\nENTRY e {\n  p = f32[8] parameter(0)SHARDING\n  ROOT n = f32[8] negate(p)\n}\n"
    texts = [text.replace("SHARDING", own) for text in (optimized, other) for own in (", sharding={devices=[2]<=[2]}", "")]
    assert [change for change in changes(*map(module, texts[:2])) if change.area == "parameters"] == []
    (change,) = [change for change in changes(*map(module, texts[2:])) if change.area == "parameters"]
    assert [aspect.name for aspect in change.aspects] == ["sharding"]


DOT = """HloModule m, is_scheduled=true

FUSED
ENTRY e {
  a = f32[4,8]{1,0} parameter(0)
  b = f32[8,2]{1,0} parameter(1)
  c = f32[4,2]{1,0} KERNEL
  ROOT n = f32[4,2]{1,0} negate(c)
}
"""
PRODUCT = "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def test_a_dot_that_is_in_a_fusion_of_its_own_is_the_same_kernel() -> None:
    parameters = "  a = f32[4,8]{1,0} parameter(0)\n  b = f32[8,2]{1,0} parameter(1)\n"
    fused = f"f {{\n{parameters}  ROOT c = f32[4,2]{{1,0}} {PRODUCT}\n}}\n"
    old = module(DOT.replace("FUSED\n", "").replace("KERNEL", PRODUCT))
    new = module(DOT.replace("FUSED", fused).replace("KERNEL", "fusion(a, b), kind=kCustom, calls=f"))
    (change,) = changes(old, new)
    assert (change.what, change.aspects) == ("changed", (Aspect("kernel", "dot", "kCustom fusion"),))


def test_collectives_of_saved_reports_are_matched() -> None:
    apart, together = module(MERGED.replace("BODY", APART)), module(MERGED.replace("BODY", TOGETHER))
    (change,) = Explanation(apart.report, together.report, None).changes()
    assert (change.area, change.what) == ("collectives", "2 merged in one")


def test_tables_of_sums_before_and_after() -> None:
    """The peak of a scan falls by two stacks of 4 × 16 MiB with recomputation."""
    report = compare(module(dump("memory/cpu_scan.hlo")), module(dump("memory/cpu_scan_remat.hlo"))).report
    first = report.table("peak").records()[0]
    assert (first["shape"], first["old_arrays"], first["new_arrays"], first["difference"]) == (
        "f32[4,2048,2048]",
        2,
        0,
        -2 * 4 * 2048 * 2048 * 4,
    )
    moved = compare(module(loop(inside=False)), module(loop(inside=True))).report
    assert moved.table("axes").records() == [{"axis": "d0", "old_bytes": 48, "new_bytes": 480, "difference": 432}]


SCOPED = """HloModule m, is_scheduled=true

ENTRY e {{
  a = f32[8,8]{{1,0}} parameter(0)
  b = f32[8,{size}]{{1,0}} parameter(1)
  c = f32[8,8]{{1,0}} negate(a), metadata={{op_name="jit(f)/same/neg"}}
  d = f32[8,{size}]{{1,0}} PRODUCT, metadata={{op_name="jit(f)/{scope}/dot"}}
  ROOT t = (f32[8,{size}]{{1,0}}) tuple(d)
}}
""".replace("PRODUCT", "dot(c, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")


def test_scopes_whose_work_differs() -> None:
    """A product of 8 × 8 × n has 2 · 64 · n FLOPs. It accesses 4 · (64 + 16 n) bytes."""

    def scopes(**new: object) -> list[dict[str, object]]:
        old = module(SCOPED.format(size=2, scope="mlp"))
        table = compare(old, module(SCOPED.format(**{"size": 2, "scope": "mlp"} | new))).report.table("scopes")
        return [{name: value for name, value in record.items() if value} for record in table.records()]

    assert scopes(size=4) == [
        {"scope": "mlp", "old_bytes": 384, "new_bytes": 512, "bytes_difference": 128}
        | {"old_flops": 256, "new_flops": 512, "flops_difference": 256}
    ]
    assert scopes(size=4, scope="head") == [
        {"scope": "head", "new_bytes": 512, "bytes_difference": 512, "new_flops": 512, "flops_difference": 512},
        {"scope": "mlp", "old_bytes": 384, "bytes_difference": -384, "old_flops": 256, "flops_difference": -256},
    ]


def test_a_long_chain_of_which_each_link_changed_is_matched_in_one_go() -> None:
    """Additions of another type, each of which reads the one before it: pairs follow pairs, not rounds rounds."""

    def match(count: int) -> None:
        links = "\n".join(f"  a{number} = f32[8] add(a{number - 1}, a{max(0, number - 2)})" for number in range(1, count))
        text = f"HloModule m\n\nENTRY e {{\n  a0 = f32[8] parameter(0)\n{links}\n  ROOT r = f32[8] negate(a{count - 1})\n}}\n"
        old, new = (CanonicalModule(*_read(text.replace("f32", dtype))) for dtype in ("f32", "bf16"))
        matched = RowMatcher(old.computation("e"), new.computation("e"), [(0, 0)])
        assert matched.pairs == [(row, row) for row in range(count + 1)]

    assert_linear(match, 2_000)


def test_many_equal_kernels_that_are_gone_are_looked_at_in_linear_time() -> None:
    def regroup(count: int) -> None:
        rows = "\n".join(f"  n{number} = f32[8] negate(a)" for number in range(count))
        read = _read(f"HloModule m\n\nENTRY e {{\n  a = f32[8] parameter(0)\n{rows}\n}}\n")
        gone = [Edit("gone", EditPlace("e", number), None) for number in range(1, count + 1)]
        new = [Edit("new", None, EditPlace("e", number)) for number in range(1, count + 1)]
        sides = CanonicalModule(*read), CanonicalModule(*read)
        assert Regrouping(*sides, gone).found == []
        assert [kernels.edits for kernels in Regrouping(*sides, [*gone, *new]).found] == list(zip(gone, new, strict=True))

    assert_linear(regroup, 4_000)


def _read(text: str) -> tuple[Module, Views]:
    (module,) = read_modules(open_source(text), Wants(graph=True))
    return module, Views(module.computations)


def test_a_new_kernel_has_its_line_and_the_kernel_that_held_its_work() -> None:
    """The fusion of `sin` and `exp` loses `exp`, with its op_name, to a kernel of its own. Nothing else tells them apart."""
    head = "HloModule m, is_scheduled=true\n\n"
    old = """fused {
  a = f32[8] parameter(0)
  s = f32[8] sine(a), metadata={op_name="jit(f)/sin"}
  e = f32[8] exponential(a), metadata={op_name="jit(f)/exp"}
  ROOT r = (f32[8], f32[8]) tuple(s, e)
}

ENTRY main {
  x = f32[8] parameter(0)
  both = (f32[8], f32[8]) fusion(x), kind=kLoop, calls=fused, metadata={op_name="jit(f)/sin"}
  s = f32[8] get-tuple-element(both), index=0
  e = f32[8] get-tuple-element(both), index=1
  ROOT r = (f32[8], f32[8]) tuple(s, e)
}
"""
    new = """fused {
  a = f32[8] parameter(0)
  s = f32[8] sine(a), metadata={op_name="jit(f)/sin"}
  c = f32[8] cosine(s), metadata={op_name="jit(f)/cos"}
  ROOT r = (f32[8], f32[8]) tuple(s, c)
}

ENTRY main {
  x = f32[8] parameter(0)
  both = (f32[8], f32[8]) fusion(x), kind=kLoop, calls=fused, metadata={op_name="jit(f)/sin"}
  s = f32[8] get-tuple-element(both), index=0
  alone = f32[8] exponential(x), metadata={op_name="jit(f)/exp"}
  ROOT r = (f32[8], f32[8]) tuple(s, alone)
}
"""
    alone = [change for change in changes(module(head + old), module(head + new)) if "alone" in change.names]
    assert [words(change).partition(", +")[0] for change in alone] == ["exponential alone (line 14): new, was part of both"]


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        ("f32[8]", "f32[16]", "shape f32[8] → f32[16]"),
        (
            f"({'f32[8,8], ' * 9}f32[4], s32[])",
            f"({'f32[8,8], ' * 9}f32[5], s32[])",
            "shape …f32[4],… → …f32[5],…",
        ),
        (
            f"(s32[], {'f32[8,8], ' * 9}f32[4])",
            f"(s32[], {'f32[8,9], ' * 9}f32[4])",
            f"shape …{'f32[8,8], ' * 6}and 3 more… → …{'f32[8,9], ' * 6}and 3 more…",
        ),
        (f"{{{'0,' * 30}1}}", f"{{{'1,' * 30}2}}", f"shape {{{'0,' * 30}1}} → {{{'1,' * 30}2}}"),
    ],
)
def test_first_lines_show_the_differing_items_of_long_values(was: str, now: str, text: str) -> None:
    change = ModuleChange("kernels", "changed", ("k",), "fusion", (Aspect("shape", was, now),), new_line=3)
    assert words(change) == f"fusion k (line 3): {text}"


def test_lines_and_bytes_of_the_first_lines_are_those_of_new() -> None:
    old, new = module(dump("memory/gpu_scan.hlo")), module(dump("memory/gpu_scan_remat.hlo"))
    assert old.report.input.lines != new.report.input.lines
    assert input_details(compare(old, new).report, RenderOptions())[1] == f"NEW: {new.report.input.lines} lines"
