"""The command `memory`: the largest arrays with their relation to parameters, and copies between host and device."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[1] / "data"

HEADER = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={()->()}\n"

RELATIONS = (
    HEADER
    + """
%transposing (a: f32[64,32]) -> f32[32,64] {
  %a = f32[64,32]{1,0} parameter(0)
  ROOT %t = f32[32,64]{1,0} transpose(%a), dimensions={1,0}
}

%body (s: (s32[], f32[8,64,32], f32[64,32])) -> (s32[], f32[8,64,32], f32[64,32]) {
  %s = (s32[], f32[8,64,32]{2,1,0}, f32[64,32]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %layers = f32[8,64,32]{2,1,0} get-tuple-element(%s), index=1
  %x = f32[64,32]{1,0} get-tuple-element(%s), index=2
  %zero = s32[] constant(0)
  %layer = f32[1,64,32]{2,1,0} dynamic-slice(%layers, %i, %zero, %zero), dynamic_slice_sizes={1,64,32}
  %flat = f32[64,32]{1,0} bitcast(%layer)
  %y = f32[64,32]{1,0} multiply(%x, %flat)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %state = (s32[], f32[8,64,32]{2,1,0}, f32[64,32]{1,0}) tuple(%next, %layers, %y)
}

%condition (s.1: (s32[], f32[8,64,32], f32[64,32])) -> pred[] {
  %s.1 = (s32[], f32[8,64,32]{2,1,0}, f32[64,32]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %eight = s32[] constant(8)
  ROOT %less = pred[] compare(%i.1, %eight), direction=LT
}

ENTRY %main (w: f32[64,32], stack: f32[8,64,32], b: f32[32]) -> (f32[64,32], f32[32,64], f32[64,32], f32[64,32]) {
  %w = f32[64,32]{1,0} parameter(0)
  %stack = f32[8,64,32]{2,1,0} parameter(1)
  %b = f32[32]{0} parameter(2)
  %turned = f32[32,64]{1,0} fusion(%w), kind=kLoop, calls=%transposing
  %half = bf16[64,32]{1,0} convert(%w)
  %again = bf16[64,32]{1,0} copy(%half)
  %rows = f32[64,32]{1,0} broadcast(%b), dimensions={1}
  %new = f32[64,32]{1,0} add(%w, %rows)
  %start = s32[] constant(0)
  %init = (s32[], f32[8,64,32]{2,1,0}, f32[64,32]{1,0}) tuple(%start, %stack, %rows)
  %loop = (s32[], f32[8,64,32]{2,1,0}, f32[64,32]{1,0}) while(%init), condition=%condition, body=%body
  %end = f32[64,32]{1,0} get-tuple-element(%loop), index=2
  ROOT %out = (f32[64,32]{1,0}, f32[32,64]{1,0}, f32[64,32]{1,0}, bf16[64,32]{1,0}) tuple(%new, %turned, %end, %again)
}
"""
)

HOST = """HloModule m, is_scheduled=true

%body (s: (s32[], f32[256])) -> (s32[], f32[256]) {
  %s = (s32[], f32[256]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[256]{0} get-tuple-element(%s), index=1
  %out = f32[256]{0:S(5)} copy(%x)
  %back = f32[256]{0} copy(%out)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %state = (s32[], f32[256]{0}) tuple(%next, %back)
}

%condition (s.1: (s32[], f32[256])) -> pred[] {
  %s.1 = (s32[], f32[256]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%i.1, %three), direction=LT
}

ENTRY %main (p: f32[256], q: f32[512]) -> (s32[], f32[256]) {
  %p = f32[256]{0} parameter(0)
  %q = f32[512]{0:S(5)} parameter(1)
  %start = (f32[512]{0}, f32[512]{0:S(5)}, u32[]) copy-start(%q)
  %done = f32[512]{0} copy-done(%start)
  %zero = s32[] constant(0)
  %init = (s32[], f32[256]{0}) tuple(%zero, %p)
  ROOT %loop = (s32[], f32[256]{0}) while(%init), condition=%condition, body=%body
}
"""


def columns(report: Report, table: str, *names: str) -> list[tuple[Value, ...]]:
    return [tuple(record[name] for name in names) for record in report.table(table).records()]


@pytest.fixture(scope="module")
def relations() -> dict[Value, tuple[Value, ...]]:
    report = hlo_inspect.inspect(RELATIONS, "memory")
    return {row[0]: row[1:] for row in columns(report, "largest_arrays", "name", "of_parameter", "relation", "padded_bytes")}


@pytest.mark.parametrize(
    ("name", "parameter", "relation", "size"),
    [
        ("w", "0", "parameter", 64 * 32 * 4),
        ("turned", "0", "transpose", 64 * 32 * 4),
        ("half", "0", "conversion", 64 * 32 * 2),
        ("again", "0", "conversion, copy", 64 * 32 * 2),
        ("rows", "2", "broadcast", 64 * 32 * 4),
        ("new", "0", "new value", 64 * 32 * 4),
        ("layer", "1", "slice", 64 * 32 * 4),
        ("y", None, None, 64 * 32 * 4),
    ],
)
def test_relations_to_parameters(
    relations: dict[Value, tuple[Value, ...]], name: str, parameter: str | None, relation: str | None, size: int
) -> None:
    assert relations[name] == (parameter, relation, size)


def test_instructions_that_make_no_array_are_left_out(relations: dict[Value, tuple[Value, ...]]) -> None:
    """The fused transpose, results of a loop or a tuple, and arrays below 1 % of the largest, which has 64 KiB."""
    assert relations.keys().isdisjoint({"t", "loop", "end", "flat", "s", "x", "layers", "out", "b", "next"})


def test_copies_of_parameters_are_summed_by_kind() -> None:
    """A weight of 64 × 32 floats is transposed once, and rounded to bf16; the rounded array is copied. A slice is no copy."""
    report = hlo_inspect.inspect(RELATIONS, "memory")
    assert columns(report, "parameter_copies", "relation", "arrays", "padded_bytes", "runs", "written_bytes") == [
        ("transpose", 1, 8192, 1, 8192),
        ("conversion", 1, 4096, 1, 4096),
        ("copy", 1, 4096, 1, 4096),
    ]


def test_copies_in_a_loop_count_each_run() -> None:
    """Each of 3 iterations rounds a layer of 64 floats to 128 bytes. Before fusion there is no sum."""
    text = """HloModule m{0}

%body (s: (s32[], f32[3,64])) -> (s32[], f32[3,64]) {{
  %s = (s32[], f32[3,64]{{1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = f32[3,64]{{1,0}} get-tuple-element(%s), index=1
  %zero.1 = s32[] constant(0)
  %layer = f32[1,64]{{1,0}} dynamic-slice(%w, %i, %zero.1), dynamic_slice_sizes={{1,64}}
  %half = bf16[1,64]{{1,0}} convert(%layer)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[3,64]{{1,0}}) tuple(%next, %w)
}}

%condition (s.1: (s32[], f32[3,64])) -> pred[] {{
  %s.1 = (s32[], f32[3,64]{{1,0}}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%i.1, %three), direction=LT
}}

ENTRY %main (p: f32[3,64]) -> (s32[], f32[3,64]) {{
  %p = f32[3,64]{{1,0}} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[3,64]{{1,0}}) tuple(%zero, %p)
  ROOT %loop = (s32[], f32[3,64]{{1,0}}) while(%init), condition=%condition, body=%body
}}
"""
    before, after = (hlo_inspect.inspect(text.format(words), "memory") for words in ("", ", is_scheduled=true"))
    assert columns(after, "parameter_copies", "relation", "arrays", "padded_bytes", "runs", "written_bytes") == [
        ("conversion", 1, 128, 3, 384)
    ]
    assert "parameter_copies" not in [table.name for table in before.tables]


def test_equal_arrays_share_a_row() -> None:
    text = """HloModule m
ENTRY %main (a: f32[1024], b: f32[1024]) -> f32[1024] {
  %a = f32[1024]{0} parameter(0)
  %b = f32[1024]{0} parameter(1)
  %copy.1 = f32[1024]{0} copy(%a)
  %copy.2 = f32[1024]{0} copy(%b)
  ROOT %sum = f32[1024]{0} add(%copy.1, %copy.2)
}
"""
    report = hlo_inspect.inspect(text, "memory")
    assert columns(report, "largest_arrays", "name", "count", "total_bytes", "of_parameter", "relation") == [
        ("* × 2", 2, 8192, "0-1", "parameter"),
        ("copy.* × 2", 2, 8192, "0-1", "copy"),
        ("sum", 1, 4096, "0", "new value"),  # of the first parameter of its shape, as the optimizer follows values
    ]


def test_a_branch_gets_the_operand_of_its_number() -> None:
    branches = "".join(
        f"%b{i} (x{i}: f32[1024]) -> f32[1024] {{\n  %x{i} = f32[1024]{{0}} parameter(0)\n"
        f"  ROOT %n{i} = f32[1024]{{0}} copy(%x{i})\n}}\n\n"
        for i in range(3)
    )
    text = f"""HloModule m

{branches}ENTRY %main (i: s32[], a: f32[1024], b: f32[1024]) -> f32[1024] {{
  %i = s32[] parameter(0)
  %a = f32[1024]{{0}} parameter(1)
  %b = f32[1024]{{0}} parameter(2)
  ROOT %r = f32[1024]{{0}} conditional(%i, %a, %b, %a), branch_computations={{%b0, %b1, %b2}}
}}
"""
    report = hlo_inspect.inspect(text, "memory")
    assert columns(report, "largest_arrays", "name", "of_parameter", "relation") == [
        ("* × 3", "1-2", "copy"),
        ("* × 2", "1-2", "parameter"),
    ]


def test_padding_of_tiles() -> None:
    """A minor dimension of 2 under tiles of 8 x 128 takes 64 times its size."""
    text = "HloModule m\nENTRY %e {\n  ROOT %p = f32[1024,2]{1,0:T(8,128)} parameter(0)\n}\n"
    report = hlo_inspect.inspect(text, "memory")
    assert columns(report, "largest_arrays", "bytes", "padded_bytes") == [(8192, 64 * 8192)]


def test_arrays_written_in_place_are_left_out_of_a_scheduled_text() -> None:
    text = """HloModule m{0}

%write (c: f32[64], u: f32[1], i: s32[]) -> f32[64] {{
  %c = f32[64]{{0}} parameter(0)
  %u = f32[1]{{0}} parameter(1)
  %i = s32[] parameter(2)
  ROOT %d = f32[64]{{0}} dynamic-update-slice(%c, %u, %i)
}}

ENTRY %e (c.1: f32[64], u.1: f32[1], i.1: s32[]) -> f32[64] {{
  %c.1 = f32[64]{{0}} parameter(0)
  %u.1 = f32[1]{{0}} parameter(1)
  %i.1 = s32[] parameter(2)
  ROOT %f = f32[64]{{0}} fusion(%c.1, %u.1, %i.1), kind=kLoop, calls=%write
}}
"""
    before, after = (hlo_inspect.inspect(text.format(words), "memory") for words in ("", ", is_scheduled=true"))
    assert columns(before, "largest_arrays", "name", "relation")[:2] == [("c.1", "parameter"), ("f", "update")]
    assert "f" not in {name for (name,) in columns(after, "largest_arrays", "name")}


def test_copies_between_host_and_device_by_their_runs() -> None:
    report = hlo_inspect.inspect(HOST, "memory")
    assert columns(report, "host_copies", "direction", "name", "sites", "runs", "bytes") == [
        ("to host", "out", 1, 3, 3 * 1024),
        ("to device", "back", 1, 3, 3 * 1024),
        ("to device", "start", 1, 1, 2048),
    ]


def test_copies_before_optimization() -> None:
    text = """HloModule m
ENTRY %e (a: f32[256]) -> f32[256] {
  %a = f32[256]{0} parameter(0)
  %h = f32[256]{0} custom-call(%a), custom_call_target="MoveToHost"
  ROOT %d = f32[256]{0} custom-call(%h), custom_call_target="MoveToDevice"
}
"""
    report = hlo_inspect.inspect(text, "memory")
    assert columns(report, "host_copies", "direction", "bytes") == [("to host", 1024), ("to device", 1024)]


DUMPS = sorted(path for folder in ("cpu", "gpu", "tpu", "jax_0_5_0") for path in (DATA / folder).glob("*.after.txt"))


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_live_arrays_add_up_to_the_peak(dump: Path) -> None:
    report = hlo_inspect.inspect(dump, "memory")
    peak = report.facts["memory.peak_bytes"]
    live = report.table("live_at_peak")
    assert peak is not None
    for table in ("live_at_peak", "live_at_peak_groups", "live_by_role", "live_by_source"):
        peak_table = report.table(table)
        index = [column.name for column in peak_table.columns].index("bytes")
        assert peak_table.total is not None
        assert peak_table.total[index] == peak
    padding = [record["padding_bytes"] for record in live.records()]
    assert sum(size for size in padding if isinstance(size, int)) == report.facts["memory.padding_bytes"]
    curve = [size for (size,) in columns(report, "live_bytes", "bytes") if isinstance(size, int)]
    assert max(curve, default=peak) == peak
    for first, last in columns(report, "live_at_peak", "live_from", "live_to"):
        assert first is None or (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last)


LIFE = """HloModule m, is_scheduled=true

ENTRY %main (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %a = f32[256]{0} exponential(%p)
  %b = f32[256]{0} sine(%a)
  %c = f32[256]{0} cosine(%a)
  %d = f32[256]{0} add(%b, %c)
  %e = f32[256]{0} tan(%d)
  ROOT %f = f32[256]{0} add(%e, %d)
}
"""


def test_the_life_of_a_buffer() -> None:
    """`a` is read at positions 2 and 3. Its place is that of the output, written at 6: XLA uses that memory before."""
    report = hlo_inspect.inspect(LIFE, "memory", name="%a")
    assert columns(report, "buffers", "bytes", "allocation", "live_from", "live_to") == [(1024, "output", 1, 3)]
    assert columns(report, "buffer_events", "time", "event", "by") == [
        (1, "defined", "a"),
        (2, "read", "b"),
        (3, "read", "c"),
        (3, "freed", "c"),
    ]
    assert ("f", 6, 7) in columns(report, "buffer_shared_with", "name", "live_from", "live_to")


def test_the_life_of_a_parameter_lasts_to_the_end() -> None:
    report = hlo_inspect.inspect(LIFE, "memory", name="p")
    assert columns(report, "buffers", "allocation", "live_from", "live_to") == [("parameter 0", 0, 7)]
    assert columns(report, "buffer_events", "event", "by")[-1] == ("freed", "(the end of the program)")


def test_a_live_range_needs_an_instruction_of_a_schedule() -> None:
    with pytest.raises(hlo_inspect.UsageError, match="g is not an instruction of the schedule of m"):
        hlo_inspect.inspect(LIFE, "memory", name="g")
    with pytest.raises(hlo_inspect.UsageError, match="the live range of a is unknown: the module is not scheduled"):
        hlo_inspect.inspect(LIFE.replace(", is_scheduled=true", ""), "memory", name="a")


def test_the_platform_can_be_named() -> None:
    """An index table of one pointer more or less: TPU rounds it up, and arrays without tiles to 1024 elements."""
    report = hlo_inspect.inspect(LIFE, "memory", platform="tpu")
    assert report.facts["memory.argument_bytes"] == 4096
    assert hlo_inspect.inspect(LIFE, "memory").facts["memory.argument_bytes"] == 1024


def test_gathered_parameters_of_one_start() -> None:
    """Two parameters that are gathered together; the second one is read by the forward and by the backward pass."""
    text = """HloModule m, is_scheduled=true, num_partitions=2

ENTRY %e (a: f32[256,1024], b: f32[256,1024]) -> f32[8] {
  %a = f32[256,1024]{1,0} parameter(0)
  %b = f32[256,1024]{1,0} parameter(1)
  %s = (SHARDS, (f32[512,1024]{1,0}, f32[512,1024]{1,0})) all-gather-start(%a, %b), replica_groups={{0,1}}, dimensions={0}
  %d = (f32[512,1024]{1,0}, f32[512,1024]{1,0}) all-gather-done(%s)
  %x = f32[512,1024]{1,0} get-tuple-element(%d), index=0
  %y = f32[512,1024]{1,0} get-tuple-element(%d), index=1
  %f = f32[8]{0} custom-call(%x, %y), custom_call_target="reads", metadata={op_name="jit(f)/jvp(layer)/dot"}
  ROOT %g = f32[8]{0} custom-call(%f, %y), custom_call_target="reads", metadata={op_name="jit(f)/transpose(jvp(layer))/dot"}
}
"""
    report = hlo_inspect.inspect(text.replace("SHARDS", "(f32[256,1024]{1,0}, f32[256,1024]{1,0})"), "memory")
    live = columns(report, "live_at_peak", "name", "shape_index", "role", "of_parameter")
    assert {row[1:] for row in live if row[0] == "s"} >= {("{1,0}", "input copy", 0), ("{1,1}", "input copy", 1)}
    (message,) = [finding.message for finding in report.findings if finding.rule == "HI307"]
    assert message.startswith("gathered parameter 1, 2.00 MiB, lives from the forward to the backward pass")


def test_the_temporaries_of_tpu_are_not_those_of_memory_analysis() -> None:
    """Only there the compiler reports another figure than the arena; without a schedule there is no figure at all."""
    on_tpu, on_gpu = hlo_inspect.inspect(LIFE, "memory", platform="tpu"), hlo_inspect.inspect(LIFE, "memory", platform="gpu")
    assert sum("On TPU memory_analysis()" in note for note in on_tpu.notes) == 1
    assert not any("On TPU memory_analysis()" in note for note in on_gpu.notes)
    unscheduled = hlo_inspect.inspect(LIFE.replace(", is_scheduled=true", ""), "memory", platform="tpu")
    assert not any("On TPU memory_analysis()" in note for note in unscheduled.notes)


@pytest.mark.parametrize("folder", ["xla_dump_to", "dump_jax_0_12"])
def test_the_temporaries_of_xla_are_those_of_its_file(folder: str, tmp_path: Path) -> None:
    """The buffer assignment has `allocation 8: size 896, page 0, preallocated-temp`; without it they are computed alone."""
    text = DATA / folder / "module_0000.jit_step.cpu_after_optimizations.txt"
    assert hlo_inspect.inspect(text, "memory").facts["memory.xla_temp_bytes"] == 896
    alone = tmp_path / text.name
    alone.write_bytes(text.read_bytes())
    facts = hlo_inspect.inspect(alone, "memory").facts
    assert (facts["memory.temp_bytes"], facts.get("memory.xla_temp_bytes")) == (896, None)


def test_empty_parts_are_left_out_of_the_sum() -> None:
    """LIFE has neither donated parameters nor constants, and no gaps: `a` to `e` are in two places."""
    report = hlo_inspect.inspect(LIFE, "memory")
    lines = {row.label: "".join(part for part in row.parts if isinstance(part, str)) for row in report.headline}
    assert lines["made of"] == "arguments  + outputs  + temporaries "
    assert lines["temporaries"] == " live at most"


def test_a_program_fits_into_what_the_runtime_leaves_to_it() -> None:
    """65,000 rows of 256 KiB are 15.87 GiB: less than a v5e has, and more than the 15.75 GiB that XLA leaves to a program."""
    rows = 65_000
    parameter = f"p = f32[{rows},65536]{{1,0:T(8,128)}} parameter(0)"
    text = f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  {parameter}\n  ROOT zero = f32[]{{:T(128)}} constant(0)\n}}\n"
    assert 15.75 < rows * 65536 * 4 / 2**30 < 16
    assert "does not fit in the 15.8 GiB of usable memory of tpu-v5e" in first_lines(text, "tpu-v5e")
    assert ": fits in the 30.8 GiB of usable memory of tpu-v4" in first_lines(text, "tpu-v4")


def test_the_share_that_jax_preallocates_is_named() -> None:
    text = (DATA / "memory" / "gpu_scan.hlo").read_text()
    assert first_lines(text, "h100-sxm").endswith("; JAX preallocates 75 % unless XLA_PYTHON_CLIENT_MEM_FRACTION is set")
    larger = text.replace("2048", "40960")  # more than 59.7 GiB of 79.6
    assert "left, but not in the 75 % that JAX preallocates unless" in first_lines(larger, "h100-sxm")


def first_lines(text: str, profile: str) -> str:
    """Return the first line of the page of `memory`."""
    report = hlo_inspect.inspect(text, "memory", profile=profile)
    return " ".join(headline_text(report.headline[0], raw_bytes=False).replace("\u00a0", " ").split())
