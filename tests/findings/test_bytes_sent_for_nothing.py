"""Rules on what a program sends, copies and computes for nothing; the examples of their documentation run on two devices.

An all-gather of two devices sends its operand, an all-reduce too (2 x 1/2).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings import RULES
from hlo_inspect.report.model import Finding

MIB = 1 << 20


def example(name: str) -> str:
    return RULES.load(name).page().example


def found_by(name: str, text: str, *thresholds: str) -> list[Finding]:
    report = hlo_inspect.inspect(text, "findings", thresholds=thresholds)
    return [finding for finding in report.findings if finding.name == name]


@pytest.mark.parametrize(
    ("name", "stake"),
    [
        ("sliced-all-reduce", 2 * MIB),  # 4 MiB are summed, a slice of 2 MiB is read
        ("sliced-all-gather", 4 * MIB - 4 * 4096),  # 4 MiB are gathered, 4 rows of 4 KiB are read
        ("wide-collective", MIB),  # 2 MiB of f32 are sent, bf16 takes half
        ("small-collectives", 8 * MIB // 4),  # 8 sums of 256 KiB
        ("repeated-collective", 2 * MIB),  # the second gather of 2 MiB
        ("constant-collective", 2 * MIB),  # a gather of 2 MiB
        ("accumulated-all-reduce", 2 * 4 * MIB),  # 3 sums of 4 MiB, of which the last is enough
        ("invariant-collective", 2 * 2 * MIB),  # 3 gathers of 2 MiB, of which the first is enough
        ("copied-loop-carry", 3 * 2 * MIB),  # a copy of 2 MiB in 3 iterations
        ("copied-update-slice", 3 * 2 * MIB),
        ("replicated-weight", 4096 * 2048 * 4 // 2),  # 32 MiB, of which a division by two saves half
        ("missing-recomputation", 8 * MIB),  # the product of 1024 x 2048 that the cosine reads
        ("missing-offload", 8 * MIB),  # an array of 2048 x 1024
        ("widened-matmul", 2 * 1024**3),  # of a product of 1024 x 1024 x 1024
        ("double-precision", 2 * 4096 * 1024),  # a conversion and a multiplication of each element
    ],
)
def test_stake_and_threshold(name: str, stake: int) -> None:
    """A threshold of exactly the stake lets the finding through, one byte more does not."""
    assert [finding.stake for finding in found_by(name, example(name))] == [stake]
    assert len(found_by(name, example(name), f"{name}={stake}")) == 1
    assert found_by(name, example(name), f"{name}={stake + 1}") == []


def test_a_loop_multiplies_the_stake() -> None:
    """Three iterations, each with a sum of 4 MiB of which 2 MiB are read."""
    text = example("sliced-all-reduce")
    start = text.index("ENTRY")
    body = """body {
  s = (s32[], f32[1024,1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  p = f32[1024,1024]{1,0} get-tuple-element(s), index=1
  o = s32[] constant(1)
  m = s32[] add(n, o)
  z = s32[] constant(0)
  r = f32[1024,1024]{1,0} all-reduce(p), replica_groups={{0,1}}, to_apply=add
  d = f32[512,1024]{1,0} dynamic-slice(r, n, z), dynamic_slice_sizes={512,1024}, metadata={op_name="dynamic_slice"}
  e = f32[1024,1024]{1,0} concatenate(d, d), dimensions={0}
  ROOT t = (s32[], f32[1024,1024]) tuple(m, e)
}

more {
  s = (s32[], f32[1024,1024]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  l = s32[] constant(3)
  ROOT c = pred[] compare(n, l), direction=LT
}

ENTRY main {
  p = f32[1024,1024]{1,0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[1024,1024]) tuple(z, p)
  ROOT w = (s32[], f32[1024,1024]) while(t), condition=more, body=body
}
"""
    assert [finding.stake for finding in found_by("sliced-all-reduce", text[:start] + body)] == [3 * 2 * MIB]


def test_slices_that_overlap_count_once() -> None:
    """Rows 0 to 4 and 2 to 8 are 8 rows."""
    slices = """s = f32[4,1024]{1,0} slice(g), slice={[0:4], [0:1024]}, metadata={op_name="jit(f)/slice"}
  u = f32[6,1024]{1,0} slice(g), slice={[2:8], [0:1024]}, metadata={op_name="jit(f)/slice"}
  ROOT t = (f32[4,1024], f32[6,1024]) tuple(s, u)"""
    text = example("sliced-all-gather")
    text = text[: text.index("ROOT")] + slices + "\n}\n"
    assert [finding.stake for finding in found_by("sliced-all-gather", text)] == [4 * MIB - 8 * 4096]


def test_a_combined_sum_whose_slices_read_all_of_it_is_silent() -> None:
    slices = """s = f32[512,1024]{1,0} slice(g), slice={[0:512], [0:1024]}, metadata={op_name="jit(f)/slice"}
  u = f32[512,1024]{1,0} slice(g), slice={[512:1024], [0:1024]}, metadata={op_name="jit(f)/slice"}
  ROOT t = (f32[512,1024], f32[512,1024]) tuple(s, u)"""
    text = example("sliced-all-gather")
    assert found_by("sliced-all-gather", text[: text.index("ROOT")] + slices + "\n}\n") == []


@pytest.mark.parametrize("name", ["sliced-all-reduce", "sliced-all-gather", "wide-collective"])
def test_what_a_compiler_adds_is_silent(name: str) -> None:
    """Slices of the partitioner and conversions of CPU have the name of a neighbor, or none."""
    line = next(line for line in example(name).split("\n") if "metadata" in line)
    named = line[: line.index(", metadata")] + ', metadata={op_name="jit(f)/dot_general"}'
    assert found_by(name, example(name).replace(line, named)) == []


def test_a_conversion_before_the_collective_counts_too() -> None:
    text = """HloModule step, replica_count=2

ENTRY main {
  p = bf16[512,1024]{1,0} parameter(0)
  c = f32[512,1024]{1,0} convert(p), metadata={op_name="jit(f)/convert_element_type"}
  r = f32[524288]{0} reshape(c)
  g = f32[1048576]{0} all-gather(r), replica_groups={{0,1}}, dimensions={0}
  ROOT n = f32[1048576]{0} negate(g)
}
"""
    assert [finding.stake for finding in found_by("wide-collective", text)] == [MIB]


TILED = """HloModule step, is_scheduled=true, num_partitions=2

ENTRY main {
  p = bf16[512,1024]{1,0:T(8,128)(2,1)} parameter(0)
  c = f32[512,1024]{1,0:T(8,128)} convert(p), metadata={op_name="jit(f)/all_to_all"}
  r = f32[524288]{0:T(1024)} reshape(c)
  a = f32[524288]{0:T(1024)} all-to-all(r), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  ROOT n = f32[524288]{0:T(1024)} negate(a), metadata={op_name="jit(f)/neg"}
}
"""


def test_a_tpu_sends_what_the_program_widens_under_any_name() -> None:
    """Half of 2 MiB leaves each of two devices; in bf16 half of that. A conversion back shows that the compiler made both."""
    assert [finding.stake for finding in found_by("wide-collective", TILED, "wide-collective=1")] == [MIB // 2]
    back = TILED.replace("f32[524288]{0:T(1024)} negate(a)", "bf16[524288]{0:T(1024)} convert(a)")
    assert found_by("wide-collective", back, "wide-collective=1") == []
    unnamed = TILED.replace(', metadata={op_name="jit(f)/all_to_all"}\n  r', "\n  r")
    assert found_by("wide-collective", unnamed, "wide-collective=1") == []


def test_the_text_before_optimizations_shows_conversions_of_the_program(tmp_path: Path) -> None:
    text = example("wide-collective").replace("convert_element_type", "transpose")
    after = tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt"
    before = tmp_path / "module_0001.jit_f.before_optimizations.txt"
    after.write_text(text, encoding="utf-8")
    for narrow, stakes in (("bf16", [MIB]), ("f16", [])):
        program = f"HloModule f\n\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n  ROOT c = {narrow}[8]{{0}} convert(p)\n}}\n"
        before.write_text(program, encoding="utf-8")
        findings = hlo_inspect.inspect(after, "findings").findings
        assert [finding.stake for finding in findings if finding.name == "wide-collective"] == stakes


def test_a_conversion_before_a_loop_counts_in_each_iteration() -> None:
    """Three gathers of 2 MiB, of which bf16 saves half: the loop never changes the widened array."""
    text = example("invariant-collective")
    entry = text[text.index("ENTRY") :]
    widened = (
        "ENTRY main {\n  i = s32[] parameter(0)\n"
        "  h = bf16[512,1024]{1,0} parameter(1)\n  y = f32[1024,1024]{1,0} parameter(2)\n"
        '  w = f32[512,1024]{1,0} convert(h), metadata={op_name="jit(f)/convert_element_type"}\n'
        "  s = (s32[], f32[512,1024], f32[1024,1024]) tuple(i, w, y)\n"
        "  ROOT r = (s32[], f32[512,1024], f32[1024,1024]) while(s), condition=more, body=body,\n"
        '    backend_config={"known_trip_count":{"n":"3"}}\n}\n'
    )
    assert found_by("wide-collective", text) == []
    assert [finding.stake for finding in found_by("wide-collective", text.replace(entry, widened))] == [3 * MIB]


def test_a_chain_of_small_sums_is_silent() -> None:
    """Each sum needs the one before."""
    lines = [f"  r{n} = f32[65536]{{0}} all-reduce(r{n - 1}), replica_groups={{{{0,1}}}}, to_apply=add" for n in range(1, 9)]
    text = example("small-collectives")
    start = text.index("  p = f32[65536]")
    chain = ["  r0 = f32[65536]{0} parameter(0)", *lines, "  ROOT o = f32[65536]{0} negate(r8)", "}", ""]
    assert found_by("small-collectives", text[:start] + "\n".join(chain)) == []


def test_layers_gather_their_small_weights_when_they_need_them() -> None:
    """Eight layers with a gather of 128 KiB each: the product of a layer reads that of the layer before."""
    header = "HloModule step, replica_count=2\n\nENTRY main {\n  x0 = f32[256,256]{1,0} parameter(0)\n"
    lines = [f"  p{n} = f32[128,256]{{1,0}} parameter({n})" for n in range(1, 9)]
    gathers = [
        f"  g{n} = f32[256,256]{{1,0}} all-gather(p{n}), replica_groups={{{{0,1}}}}, dimensions={{0}}" for n in range(1, 9)
    ]
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    chain = [f"  x{n} = f32[256,256]{{1,0}} dot(x{n - 1}, g{n}), {dims}" for n in range(1, 9)]
    apart = [line.replace(f"dot(x{n - 1}", "dot(x0") for n, line in enumerate(chain, 1)]
    root = f"  ROOT t = ({', '.join(['f32[256,256]'] * 8)}) tuple({', '.join(f'x{n}' for n in range(1, 9))})"
    layers, parallel = (header + "\n".join([*lines, *gathers, *each, root, "}", ""]) for each in (chain, apart))
    assert found_by("small-collectives", layers) == []
    assert [finding.stake for finding in found_by("small-collectives", parallel, "small-collectives=1MiB")] == [8 * MIB // 8]


def test_a_gather_of_the_backward_pass_is_no_repetition() -> None:
    text = example("repeated-collective")
    forward, backward = (f'metadata={{op_name="jit(f)/{name}/dot_general"}}' for name in ("jvp()", "transpose(jvp())"))
    gathers = text.split("dimensions={0}")
    assert len(gathers) == 3
    named = f"{gathers[0]}dimensions={{0}}, {forward}{gathers[1]}dimensions={{0}}, {backward}{gathers[2]}"
    assert found_by("repeated-collective", named) == []
    assert len(found_by("repeated-collective", named.replace(backward, forward))) == 1


def test_a_combined_sum_of_one_array_twice_is_a_repetition() -> None:
    """Two sums of 4 MiB in one all-reduce send 2 x 4 MiB over two devices."""
    text = """HloModule step, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  p = f32[1024,1024]{1,0} parameter(0)
  ROOT r = (f32[1024,1024], f32[1024,1024]) all-reduce(p, p), replica_groups={{0,1}}, to_apply=add
}
"""
    assert [finding.stake for finding in found_by("repeated-collective", text)] == [4 * MIB]


def test_a_reduce_scatter_in_a_loop_saves_memory() -> None:
    text = example("accumulated-all-reduce").replace("f = f32[1024,1024]", "f = f32[2048,1024]")
    text = text.replace("all-reduce(f), replica_groups={{0,1}}", "reduce-scatter(f), dimensions={0}, replica_groups={{0,1}}")
    assert "reduce-scatter(f)" in text
    assert found_by("accumulated-all-reduce", text) == []


def test_recomputation_is_no_repetition() -> None:
    text = example("repeated-collective")
    name = 'metadata={op_name="jit(f)/transpose(jvp(l))/rematted_computation/all_gather"}'
    assert found_by("repeated-collective", text.replace("dimensions={0}\n  ROOT", f"dimensions={{0}}, {name}\n  ROOT")) == []


def test_a_sum_that_each_iteration_reads_is_silent() -> None:
    text = example("accumulated-all-reduce").replace("custom-call(p, i)", "custom-call(p, i, t)")
    assert found_by("accumulated-all-reduce", text) == []


SELECT = """  q = s32[] constant(0)
  b = pred[] compare(n, q), direction=EQ
  k = pred[1024,1024]{1,0} broadcast(b), dimensions={}
  e = f32[] constant(0)
  z = f32[1024,1024]{1,0} broadcast(e), dimensions={}
  v = f32[1024,1024]{1,0} select(k, z, t)
  u = f32[1024,1024]{1,0} add(v, r)
"""


@pytest.mark.parametrize(
    ("old", "new", "stakes"),
    [
        ("", "", [2 * 4 * MIB]),  # TPU begins with zeros by a select in the first iteration
        ("e = f32[] constant(0)", "e = f32[] constant(1)", []),
        ("q = s32[] constant(0)", "q = s32[] replica-id()", []),  # another iteration on each device
        ("add(v, r)", "add(v, t)", []),  # the state is read twice
    ],
)
def test_a_sum_may_begin_with_selected_zeros(old: str, new: str, stakes: list[int]) -> None:
    """Three sums of 4 MiB, of which the last is enough."""
    text = example("accumulated-all-reduce").replace("  u = f32[1024,1024]{1,0} add(t, r)\n", SELECT.replace(old, new))
    assert "select(k, z, t)" in text
    assert [finding.stake for finding in found_by("accumulated-all-reduce", text)] == stakes


def test_a_gather_of_what_the_loop_changes_is_silent() -> None:
    new = "  q = f32[512,1024]{1,0} negate(p)\n  u = f32[1024,1024]{1,0} multiply"
    text = example("invariant-collective").replace("tuple(m, p, u)", "tuple(m, q, u)")
    text = text.replace("  u = f32[1024,1024]{1,0} multiply", new)
    assert found_by("invariant-collective", text) == []


def test_a_second_buffer_that_nobody_can_avoid_is_silent() -> None:
    """The copied element is computed from its own old value; no element becomes another."""
    text = example("copied-loop-carry").replace("tuple(m, u, c)", "tuple(m, u, q)")
    assert found_by("copied-loop-carry", text) == []


def test_a_product_that_the_compiler_widens_is_silent() -> None:
    text = example("widened-matmul").replace("convert_element_type", "dot_general")
    assert found_by("widened-matmul", text) == []


def test_a_program_with_f64_inputs_alone_computes_in_f64_on_purpose() -> None:
    text = example("double-precision").replace("x = f32", "x = f64")
    assert [finding.severity for finding in found_by("double-precision", example("double-precision"))] == ["warning"]
    assert [finding.severity for finding in found_by("double-precision", text)] == ["info"]


REMATERIALIZED = """W0101 00:00:00.0 1 spmd.cc:6] [SPMD] Involuntary full rematerialization. The compiler {wording}

HloModule step, replica_count=2

ENTRY main {{
  p = f32[512,1024]{{1,0}} parameter(0)
  t = f32[512,1024]{{1,0}} tanh(p), metadata={{op_name="jit(f)/tanh"}}
  g = f32[1024,1024]{{1,0}} all-gather(t), replica_groups={{{{0,1}}}}, dimensions={{0}}, metadata={{op_name="jit(f)/{name}"}}
  ROOT s = f32[1024,1024]{{1,0}} negate(g)
}}
"""
TO = "from sharding {devices=[2,1]<=[2]} to {devices=[1,2]<=[2]} "
OPERATION = (
    ' %c = f32[512,1024]{1,0} copy(%tanh.0), metadata={op_name="jit(f)/constraint"}. As the last resort, SPMD will replicate'
)


@pytest.mark.parametrize(
    "wording",
    [
        f"cannot go {TO}efficiently for HLO operation{OPERATION}",
        f"was not able to go {TO}without doing a full rematerialization of the tensor for HLO operation:{OPERATION}",
    ],
)
@pytest.mark.parametrize("name", ["constraint", "sin"])
def test_the_log_names_what_the_partitioner_replicated(wording: str, name: str) -> None:
    """HI215: the gather has the op_name of the operation, or that of its user and an operand of its shape: "HI215"."""
    text = REMATERIALIZED.format(wording=wording, name=name)
    assert [(f.stake, f.subject) for f in found_by("involuntary-rematerialization", text)] == [(2 * MIB, "g")]
    assert found_by("involuntary-rematerialization", text[text.index("HloModule") :]) == []


TWO_CONSTRAINTS = """FIRST
SECOND
HloModule jit_f, replica_count=8

ENTRY main {
  p = f32[256,1024]{1,0} parameter(0)
  q = f32[ROWS,1024]{1,0} parameter(1)
  a = f32[2048,1024]{1,0} all-gather(p), replica_groups=[1,8]<=[8], dimensions={0}, metadata={op_name="jit(f)/c"}
  b = f32[ALL,1024]{1,0} all-gather(q), replica_groups=[1,8]<=[8], dimensions={0}, metadata={op_name="jit(f)/c"}
  ROOT t = (f32[2048,1024]{1,0}, f32[ALL,1024]{1,0}) tuple(a, b)
}
"""
FROM_ROWS = (
    "W1128 21:56:59.7 1 spmd.cc:666] [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
    "{mesh['a'=4,'b'=2], [{'a', 'b'}, {}]} to {mesh['a'=4,'b'=2], [{}, {'a'}]} efficiently for HLO operation "
    "%c.N = f32[ROWS,1024]{1,0} copy(%tanh.N), sharding={mesh['a'=4,'b'=2], [{'a', 'b'}, {}]}, "
    'metadata={op_name="jit(f)/c"}. As the last resort, SPMD will replicate the tensor'
)


@pytest.mark.parametrize(("rows", "stakes"), [(256, [7 * MIB, 7 * MIB]), (512, [7 * MIB, 14 * MIB])])
def test_each_of_two_rematerializations_has_its_own_gather(rows: int, stakes: list[int]) -> None:
    """Compilers of 2026 print one op_name for all constraints of a function: a gather of 1 MiB over 8 devices sends 7 MiB."""
    first, second = (FROM_ROWS.replace(".N", f".{n}").replace("ROWS", str(r)) for n, r in ((0, 256), (2, rows)))
    text = TWO_CONSTRAINTS.replace("FIRST", first).replace("SECOND", second)
    text = text.replace("ROWS", str(rows)).replace("ALL", str(8 * rows))
    findings = found_by("involuntary-rematerialization", text)
    assert sorted((finding.subject, finding.stake) for finding in findings) == list(zip("ab", stakes, strict=True))


def test_a_profile_gives_stakes_in_seconds() -> None:
    """An H100 multiplies f32 in tf32 at 494.7 TFLOP/s, and reads and writes 6 MiB at 3352 GB/s (configs/hardware)."""
    seconds = {"widened-matmul": 2 * 1024**3 / 494.7e12, "copied-loop-carry": 2 * 6 * MIB / 3352e9}
    for name, expected in seconds.items():
        findings = hlo_inspect.inspect(example(name), "findings", profile="h100-sxm").findings
        (finding,) = (finding for finding in findings if finding.name == name)
        assert finding.stake == pytest.approx(expected)
        assert finding.stake_unit == "s"


def test_a_profile_leaves_stakes_of_device_memory_in_bytes() -> None:
    findings = hlo_inspect.inspect(example("replicated-weight"), "findings", profile="h100-sxm").findings
    assert [finding.stake_unit for finding in findings if finding.name == "replicated-weight"] == ["bytes"]
